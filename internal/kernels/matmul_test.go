package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveMatMul multiplies an m×k with a k×n matrix, both dense.
func naiveMatMul[T Number](a, b []T, m, n, k int) []T {
	c := make([]T, m*n)
	for i := range m {
		for j := range n {
			for p := range k {
				c[i*n+j] += a[i*k+p] * b[p*n+j]
			}
		}
	}
	return c
}

func randomInts[T Number](rng *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.IntN(19) - 9)
	}
	return x
}

func transposed[T any](x []T, rows, cols int) []T {
	out := make([]T, len(x))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = x[i*cols+j]
		}
	}
	return out
}

func TestMatMul(t *testing.T) {
	t.Run("uint8", testMatMul[uint8])
	t.Run("int8", testMatMul[int8])
	t.Run("int32", testMatMul[int32])
	t.Run("int64", testMatMul[int64])
}

func testMatMul[T Integer](t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, c := range [][3]int{{1, 1, 1}, {2, 4, 3}, {3, 5, 1}, {5, 7, 9}, {8, 8, 8}, {1, 9, 30}, {17, 1, 6}, {4, 6, 0}, {13, 11, 600}, {3, 300, 20}} {
		m, n, k := c[0], c[1], c[2]
		a, b := randomInts[T](rng, m*k), randomInts[T](rng, k*n)
		want := naiveMatMul(a, b, m, n, k)
		at, bt := transposed(a, m, k), transposed(b, k, n)
		for _, layout := range []struct {
			name         string
			a, b         []T
			aRow, aK     int
			bK, bCol     int
			aOff, bOff   int
			rowsA, colsB int
		}{
			{"nn", a, b, k, 1, n, 1, 0, 0, m, n},
			{"tn", at, b, 1, m, n, 1, 0, 0, m, n},
			{"nt", a, bt, k, 1, 1, k, 0, 0, m, n},
			{"tt", at, bt, 1, m, 1, k, 0, 0, m, n},
		} {
			rows, cols := (m+MR-1)/MR, (n+NR-1)/NR
			pa, pb := make([]T, PackedLen(m, k, MR)), make([]T, PackedLen(n, k, NR))
			Pack(pa, layout.a, MR, m, k, layout.aOff, layout.aRow, layout.aK, 0, rows)
			Pack(pb, layout.b, NR, n, k, layout.bOff, layout.bCol, layout.bK, 0, cols)
			got := make([]T, m*n)
			for lo := 0; lo < rows; lo += 2 {
				MatMul(got, pa, pb, m, n, k, lo, min(lo+2, rows), 0, cols/2)
				MatMul(got, pa, pb, m, n, k, lo, min(lo+2, rows), cols/2, cols)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v %s packed: %v, want %v", c, layout.name, got, want)
			}
			clear(got)
			for i := range m {
				MatVec(got, layout.a, layout.b, n, k, layout.aOff, layout.aRow, layout.aK, layout.bOff, layout.bK, layout.bCol, i, i+1)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v %s unpacked: %v, want %v", c, layout.name, got, want)
			}
		}
	}
}
