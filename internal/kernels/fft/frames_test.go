package fft

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFrames holds frames against lines that hold what the frames times the window are.
func TestFrames(t *testing.T) {
	for i, k := range available[float32]() {
		t.Run(fmt.Sprint("f32 ", i), func(t *testing.T) { testFrames(t, k) })
	}
	for i, k := range available[float64]() {
		t.Run(fmt.Sprint("f64 ", i), func(t *testing.T) { testFrames(t, k) })
	}
}

func testFrames[T Float](t *testing.T, k *kernels[T]) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, n := range []int{1, 2, 7, 8, 12} {
		for _, hop := range []int{1, 2, 5, 9} {
			for _, kind := range []Kind{RealToHalf, RealToAll} {
				f := Frames{Count: 21, Hop: hop, Size: n + 20*hop + hop/2}
				src, window := random[T](rng, 2*f.Size), random[T](rng, n)
				out, lines := Layout{f.Count, n}, 2*f.Count
				if kind == RealToHalf {
					out.Len = n/2 + 1
				}
				var apart []T
				for u := range lines {
					for j, w := range window {
						apart = append(apart, src[u/f.Count*f.Size+u%f.Count*hop+j]*w)
					}
				}
				got, want := make([]T, 2*lines*out.Len), make([]T, 2*lines*out.Len)
				l := newFrames(kind, n, f, out, 0.5, k)
				l.RunFrames(got, src, window, make([]T, l.Scratch()), lines, 0, Blocks[T](lines))
				l = newLines(kind, n, false, Layout{1, n}, out, 0.5, k)
				l.Run(want, apart, make([]T, l.Scratch()), lines, 0, Blocks[T](lines))
				if !slices.Equal(got, want) {
					t.Errorf("kind %d: frames of %d, %d apart, are not their lines", kind, n, hop)
				}
			}
		}
	}
}

func random[T Float](rng *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.Float64()*2 - 1)
	}
	return x
}
