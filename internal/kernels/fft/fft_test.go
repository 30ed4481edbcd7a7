package fft

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// lengths has powers, odd primes with and without passes, and mixtures.
var lengths = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 24, 31, 32, 60, 64, 97, 100, 101, 128, 202, 243, 256, 1000}

// slow is the transform by its definition, in float64, times scale.
func slow(x []complex128, inverse bool, scale float64) []complex128 {
	n := len(x)
	y, roots := make([]complex128, n), make([]complex128, n)
	for j := range roots {
		sin, cos := math.Sincos(-2 * math.Pi * float64(j) / float64(n))
		if inverse {
			sin = -sin
		}
		roots[j] = complex(cos, sin)
	}
	for k := range y {
		for j, v := range x {
			y[k] += v * roots[j*k%n]
		}
		y[k] *= complex(scale, 0)
	}
	return y
}

func TestLines(t *testing.T) {
	for i, k := range available[float32]() {
		t.Run(fmt.Sprint("f32 ", i), func(t *testing.T) { testLines(t, k, 3e-7) })
	}
	for i, k := range available[float64]() {
		t.Run(fmt.Sprint("f64 ", i), func(t *testing.T) { testLines(t, k, 6e-16) })
	}
}

// testLines holds transforms of all kinds against their definition, and looks whether they write
// beyond the results.
func testLines[T Float](t *testing.T, k *kernels[T], eps float64) {
	for _, n := range lengths {
		for _, inner := range []int{1, 3, 40} {
			for _, kind := range []Kind{Complex, RealToHalf, RealToAll, HalfToReal} {
				testKind(t, k, kind, n, inner, eps)
			}
		}
	}
}

func testKind[T Float](t *testing.T, k *kernels[T], kind Kind, n, inner int, eps float64) {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(inner)))
	inverse, scale, outer := n%3 == 0 && kind == Complex, 0.75, 2
	if inner == 1 {
		outer = Lanes[T]() + 3
	}
	in, out := Layout{inner, n}, Layout{inner, n}
	inWidth, outWidth := 2, 2
	switch kind {
	case RealToHalf:
		inWidth, out.Len = 1, n/2+1
	case RealToAll:
		inWidth = 1
	case HalfToReal:
		outWidth, in.Len = 1, n/2+1
	}
	lines := outer * inner
	src, dst := make([]T, lines*in.Len*inWidth), make([]T, lines*out.Len*outWidth+8)
	for i := range src {
		src[i] = T(rng.Float64()*2 - 1)
	}
	for i := range dst {
		dst[i] = 99
	}
	l := newLines(kind, n, inverse, in, out, scale, k)
	blocks := Blocks[T](lines)
	l.Run(dst, src, make([]T, l.Scratch()), lines, 0, blocks/2)
	l.Run(dst, src, make([]T, l.Scratch()), lines, blocks/2, blocks)
	for i := range 8 {
		if dst[len(dst)-1-i] != 99 {
			t.Fatalf("kind %d, n %d, inner %d: wrote beyond the results", kind, n, inner)
		}
	}
	for _, u := range []int{0, lines / 2, lines - 1} {
		x := make([]complex128, n)
		for j := range x {
			switch p := in.at(u) + j*inner; {
			case inWidth == 1:
				x[j] = complex(float64(src[p]), 0)
			case j < in.Len:
				x[j] = complex(float64(src[2*p]), float64(src[2*p+1]))
			default:
				q := in.at(u) + (n-j)*inner
				x[j] = complex(float64(src[2*q]), -float64(src[2*q+1]))
			}
		}
		want := slow(x, inverse || kind == HalfToReal, scale)
		worst, norm := 0.0, 0.0
		for j := range out.Len {
			p := out.at(u) + j*inner
			got := complex(float64(dst[p*outWidth]), imag(want[j]))
			if outWidth == 2 {
				got = complex(float64(dst[2*p]), float64(dst[2*p+1]))
			}
			d := got - want[j]
			worst = max(worst, math.Hypot(real(d), imag(d)))
			if math.IsNaN(worst) || cmplx.IsNaN(d) {
				t.Fatalf("kind %d, n %d, inner %d: line %d, element %d is %v, want %v", kind, n, inner, u, j, got, want[j])
			}
			norm = max(norm, math.Hypot(real(want[j]), imag(want[j])))
		}
		if worst > eps*(3+math.Log2(float64(n)))*norm {
			t.Fatalf("kind %d, n %d, inner %d: line %d is off by %v of %v", kind, n, inner, u, worst, norm)
		}
	}
}

// TestLong holds lines in two steps against those in one.
func TestLong(t *testing.T) {
	t.Run("f32", func(t *testing.T) { testLong[float32](t, 1e-6) })
	t.Run("f64", func(t *testing.T) { testLong[float64](t, 2e-15) })
}

func testLong[T Float](t *testing.T, eps float64) {
	for _, n := range []int{512, 1000, 8 * 97, 4096} {
		for _, inverse := range []bool{false, true} {
			const count = 3
			first, second, n1, n2, ok := apart[T](n, count, inverse, 0.5)
			if !ok {
				t.Fatalf("%d is not taken apart", n)
			}
			rng := rand.New(rand.NewPCG(uint64(n), 2))
			src, mid := make([]T, 2*n*count), make([]T, 2*n*count)
			for i := range src {
				src[i] = T(rng.Float64()*2 - 1)
			}
			got, want := make([]T, len(src)), make([]T, len(src))
			first.Run(mid, src, make([]T, first.Scratch()), count*n2, 0, Blocks[T](count*n2))
			second.Run(got, mid, make([]T, second.Scratch()), count*n1, 0, Blocks[T](count*n1))
			whole := New[T](Complex, n, inverse, Layout{1, n}, Layout{1, n}, 0.5)
			whole.Run(want, src, make([]T, whole.Scratch()), count, 0, 1)
			for i, v := range want {
				if d := math.Abs(float64(got[i] - v)); !(d <= eps*math.Sqrt(float64(n))) {
					t.Fatalf("%d elements: float %d is %v, want %v", n, i, got[i], v)
				}
			}
		}
	}
	if _, _, _, _, ok := apart[T](1031*2, 1, false, 1); ok {
		t.Error("a large prime has passes")
	}
}
