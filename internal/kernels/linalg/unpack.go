package linalg

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// unpackCost is that of writing three matrices.
func unpackCost(a ir.Args) float64 {
	m, n := sizes(a.In[0])
	return float64(m * max(m, n))
}

func unpack(a ir.Args) mover {
	if a.In[0].DType() == ir.F32 {
		return unpacked[float32](a)
	}
	return unpacked[float64](a)
}

// unpacked writes each element of the permutation, of the lower and of the upper triangle once.
func unpacked[T float32 | float64](a ir.Args) mover {
	m, n := sizes(a.In[0])
	data, order := a.Bool("unpack_data"), a.Bool("unpack_pivots")
	return func(in, out [][]byte) error {
		if data {
			triangles(numbers[T](out[1]), numbers[T](out[2]), numbers[T](in[0]), m, n)
		}
		if !order {
			return nil
		}
		p := numbers[T](out[0])
		clear(p)
		rows := make([]int, m)
		for i := range rows {
			rows[i] = i
		}
		for i, p := range numbers[int32](in[1]) {
			if p < 1 || int(p) > m {
				return fmt.Errorf("pivot %v of %d rows", p, m)
			}
			rows[i], rows[p-1] = rows[p-1], rows[i]
		}
		for i, r := range rows {
			p[r*m+i] = 1
		}
		return nil
	}
}

// triangles makes l and u the factors of an m×n matrix that has both.
func triangles[T float32 | float64](l, u, lu []T, m, n int) {
	k := min(m, n)
	for i := range m {
		row, below := lu[i*n:][:n], l[i*k:][:k]
		if i >= k {
			copy(below, row)
			continue
		}
		copy(below, row[:i])
		below[i] = 1
		clear(below[i+1:])
		above := u[i*n:][:n]
		clear(above[:i])
		copy(above[i:], row[i:])
	}
}
