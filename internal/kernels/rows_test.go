package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/strided"
)

// TestCombineChained holds scatters by rows against those of one element at a time.
func TestCombineChained(t *testing.T) {
	t.Run("f32", testCombineChained[float32])
	t.Run("f64", testCombineChained[float64])
	t.Run("i64", testCombineChained[int64])
	t.Run("u8", testCombineChained[uint8])
}

func testCombineChained[T Number](t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	nan := math.NaN()
	for _, how := range []Combine{CombineSum, CombineProd, CombineMean, CombineMax, CombineMin} {
		for _, include := range []bool{false, true} {
			for _, d := range [][3]int{{1, 1, 1}, {5, 9, 7}, {40, 17, 3}, {3, 0, 5}, {6, 30, 64}, {3, 5, ChainColumns + 9}} {
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
				heads, next := make([]int64, size), make([]int64, n)
				Chain(heads, next, index)
				units, apart := ChainUnits(size, inner), make([]T, len(dst))
				for lo := range units {
					CombineChained(apart, dst, heads, next, src, how, include, inner, lo, lo+1)
				}
				CombineChained(dst, dst, heads, next, src, how, include, inner, 0, units)
				for i, v := range dst {
					if v != want[i] && (v == v || want[i] == want[i]) || apart[i] != v && v == v {
						t.Fatalf("how %v, include self %v, %v: element %d is %v in its place, %v elsewhere, want %v", how, include, d, i, v, apart[i], want[i])
					}
				}
			}
		}
	}
}
