package fft

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestChirp holds lines whose length has a large prime in steps against those in one.
func TestChirp(t *testing.T) {
	t.Run("f32", func(t *testing.T) { testChirp[float32](t, 2e-6) })
	t.Run("f64", func(t *testing.T) { testChirp[float64](t, 1e-14) })
}

func testChirp[T Float](t *testing.T, eps float64) {
	for _, n := range []int{2053, 2 * 1031, 8209} {
		for _, kind := range []Kind{Complex, RealToHalf, RealToAll, HalfToReal} {
			for _, inner := range []int{1, 3} {
				for _, short := range []int{0, 5, -2} {
					checkChirp[T](t, kind, n, inner, short, eps)
				}
			}
		}
	}
}

// checkChirp transforms inner lines that lack so many elements, and those of an inverse.
func checkChirp[T Float](t *testing.T, kind Kind, n, inner, short int, eps float64) {
	t.Helper()
	lines := inner
	if inner == 1 {
		lines = 2
	}
	have, results, width, of := n, n, 2, 2
	switch kind {
	case RealToHalf:
		results, width = n/2+1, 1
	case RealToAll:
		width = 1
	case HalfToReal:
		have, of = n/2+1, 1
	}
	in, out := Layout{inner, have - short}, Layout{inner, results}
	src := random[T](rand.New(rand.NewPCG(uint64(n), 3)), width*lines*in.Len)
	for _, inverse := range []bool{false, true} {
		if inverse != (kind == HalfToReal) && kind != Complex {
			continue
		}
		l := New[T](kind, n, inverse, in, out, 0.5)
		want := make([]T, of*lines*results)
		l.Run(want, src, make([]T, l.Scratch()), lines, 0, Blocks[T](lines))
		c := newSteps[T](kind, n, inverse, in, out, 0.5)
		got, between, other := make([]T, len(want)), make([]T, 2*lines*c.Size()), make([]T, 2*lines*c.Size())
		step := func(f func(dst, src []T, lo, hi int), dst, src []T) {
			units := c.Units(lines)
			f(dst, src, units/2, units)
			f(dst, src, 0, units/2)
		}
		transform := func(x []T, inverse bool) {
			first, second, n1, n2, _ := apart[T](c.Size(), lines, inverse, 1)
			mid := make([]T, len(x))
			first.Run(mid, x, make([]T, first.Scratch()), lines*n2, 0, Blocks[T](lines*n2))
			second.Run(x, mid, make([]T, second.Scratch()), lines*n1, 0, Blocks[T](lines*n1))
		}
		step(c.Begin, between, src)
		transform(between, false)
		step(c.Convolve, other, between)
		transform(other, true)
		step(c.End, got, other)
		for i, v := range want {
			if d := math.Abs(float64(got[i] - v)); !(d <= eps*math.Sqrt(float64(n))) {
				t.Fatalf("kind %d, %d elements in rows of %d, %d fewer: float %d is %v, want %v", kind, n, inner, short, i, got[i], v)
			}
		}
	}
}
