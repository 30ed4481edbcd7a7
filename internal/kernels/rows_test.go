package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/strided"
)

// TestReduceRows holds scatters by rows against those of one element at a time.
func TestReduceRows(t *testing.T) {
	t.Run("f32", testReduceRows[float32])
	t.Run("f64", testReduceRows[float64])
	t.Run("i64", testReduceRows[int64])
	t.Run("u8", testReduceRows[uint8])
}

func testReduceRows[T Number](t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	nan := math.NaN()
	for _, how := range []Combine{CombineSum, CombineProd, CombineMean, CombineMax, CombineMin} {
		for _, include := range []bool{false, true} {
			for _, d := range [][3]int{{1, 1, 1}, {5, 9, 7}, {40, 17, 3}, {3, 0, 5}, {6, 30, 64}} {
				size, n, inner := d[0], d[1], d[2]
				dst, src := make([]T, size*inner), make([]T, n*inner)
				for _, s := range [][]T{dst, src} {
					for i := range s {
						s[i] = T(rng.IntN(9))
						if half := 0.5; T(half) != 0 && rng.IntN(20) == 0 {
							s[i] = T(nan)
						}
					}
				}
				index, whole := make([]int64, n), make([]int64, n*inner)
				for i := range index {
					index[i] = rng.Int64N(int64(size))
					for j := range inner {
						whole[i*inner+j] = index[i]
					}
				}
				want := slices.Clone(dst)
				l, view := NewLines([]int{size, inner}, 0, []int{n, inner}), strided.Dense([]int{n, inner})
				ScatterReduce(want, whole, src, &view, &l, how, include, make([]int64, len(dst)), 0, l.Units())
				counts, firsts := make([]int64, size), make([]uint8, n)
				CountRows(counts, firsts, index, include)
				ReduceRows(dst, index, src, how, counts, firsts, inner, 0, inner/3)
				ReduceRows(dst, index, src, how, counts, firsts, inner, inner/3, inner)
				for i, v := range dst {
					if v != want[i] && (v == v || want[i] == want[i]) {
						t.Fatalf("how %v, include self %v, %v: element %d is %v, want %v", how, include, d, i, v, want[i])
					}
				}
			}
		}
	}
}
