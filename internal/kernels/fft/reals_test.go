package fft

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestReals holds lines of reals in steps, there and back, against those in one.
func TestReals(t *testing.T) {
	t.Run("f32", func(t *testing.T) { testReals[float32](t, 1e-6) })
	t.Run("f64", func(t *testing.T) { testReals[float64](t, 2e-15) })
}

func testReals[T Float](t *testing.T, eps float64) {
	const count = 3
	run := func(l *Lines[T], src []T, floats, lines int) []T {
		dst := make([]T, floats)
		l.Run(dst, src, make([]T, l.Scratch()), lines, 0, Blocks[T](lines))
		return dst
	}
	step := func(kind Kind, n int, src []T, floats int) []T {
		r, dst := NewReals[T](kind, n, 0.5), make([]T, floats)
		units := r.Units(count)
		r.Run(dst, src, 0, units/2)
		r.Run(dst, src, units/2, units)
		return dst
	}
	for _, n := range []int{1024, 2 * 8 * 97, 2 * 675, 4 * 4096} {
		for _, kind := range []Kind{RealToHalf, HalfToReal} {
			first, second, n1, n2, ok := apart[T](n/2, count, kind == HalfToReal, 1)
			if !ok {
				t.Fatalf("%d is not taken apart", n)
			}
			all, half := count*n, count*(n+2)
			var src, got, want []T
			if kind == RealToHalf {
				src = random[T](rand.New(rand.NewPCG(uint64(n), 3)), all)
				got = step(kind, n, run(second, run(first, src, all, count*n2), all, count*n1), half)
				want = run(New[T](kind, n, false, Layout{1, n}, Layout{1, n/2 + 1}, 0.5), src, half, count)
			} else {
				src = random[T](rand.New(rand.NewPCG(uint64(n), 4)), half)
				got = run(second, run(first, step(kind, n, src, all), all, count*n2), all, count*n1)
				want = run(New[T](kind, n, true, Layout{1, n/2 + 1}, Layout{1, n}, 0.5), src, all, count)
			}
			for i, v := range want {
				if d := math.Abs(float64(got[i] - v)); !(d <= eps*math.Sqrt(float64(n))) {
					t.Fatalf("kind %d, %d elements: float %d is %v, want %v", kind, n, i, got[i], v)
				}
			}
		}
	}
}
