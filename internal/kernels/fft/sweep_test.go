package fft

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// TestAllLengths holds the transforms of every short length against the definition: with each radix
// and each mixture of them, by each kind of kernels.
func TestAllLengths(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for n := 1; n <= 300; n++ {
		x := make([]complex128, n)
		for i := range x {
			x[i] = complex(rng.Float64()*2-1, rng.Float64()*2-1)
		}
		y := slow(x, false, 1)
		for i, k := range available[float32]() {
			sweep(t, fmt.Sprint("f32 ", i), k, x, y, 1e-6)
		}
		for i, k := range available[float64]() {
			sweep(t, fmt.Sprint("f64 ", i), k, x, y, 2e-15)
		}
	}
}

// sweep transforms x, whose transform is y, there and back, and its real part to the half and back.
func sweep[T Float](t *testing.T, name string, k *kernels[T], x, y []complex128, eps float64) {
	t.Helper()
	n := len(x)
	half := make([]complex128, n/2+1)
	for j := range half {
		half[j] = (y[j] + cmplx.Conj(y[(n-j)%n])) / 2
	}
	reals := make([]complex128, n)
	for j, v := range x {
		reals[j] = complex(real(v), 0)
	}
	for _, c := range []struct {
		kind      Kind
		inverse   bool
		from, to  []complex128
		fromReals bool
		toReals   bool
	}{
		{Complex, false, x, y, false, false}, {Complex, true, y, x, false, false},
		{RealToHalf, false, reals, half, true, false}, {HalfToReal, true, half, reals, false, true},
	} {
		l := newLines(c.kind, n, c.inverse, Layout{1, len(c.from)}, Layout{1, len(c.to)}, 1, k)
		src, dst := floats[T](c.from, c.fromReals), floats[T](c.to, c.toReals)
		clear(dst)
		l.Run(dst, src, make([]T, l.Scratch()), 1, 0, 1)
		want, factor, worst, norm := floats[float64](c.to, c.toReals), 1.0, 0.0, 0.0
		if c.inverse {
			factor = 1 / float64(n)
		}
		for i, w := range want {
			worst, norm = max(worst, math.Abs(float64(dst[i])*factor-w)), max(norm, math.Abs(w))
		}
		if !(worst <= eps*norm) {
			t.Errorf("%s, kind %d, inverse %v, n %d: off by %v of %v", name, c.kind, c.inverse, n, worst, norm)
		}
	}
}

// floats returns the parts of numbers, or only the real ones.
func floats[T Float](x []complex128, narrow bool) (y []T) {
	for _, v := range x {
		if y = append(y, T(real(v))); !narrow {
			y = append(y, T(imag(v)))
		}
	}
	return y
}
