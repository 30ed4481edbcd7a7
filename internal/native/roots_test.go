package native

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
)

// nearMiddle returns floats whose roots are next to the middle of two floats: c less than 2¹⁰ from a square (2q+1)² of 54
// bits, in units in which they are multiples of 2⁵⁵ or 2⁵⁴.
func nearMiddle() (x []float64) {
	for _, zeros := range []int{54, 55} { // behind 53 bits
		for c := int64(-1023); c < 1024; c += 2 {
			if c&7 != 1 {
				continue // not a square
			}
			// Roots of c modulo 2^zeros, bit by bit: r² = c modulo 2^(i+1) has a root r or r + 2^(i-1).
			r := uint64(1)
			for i := 3; i < zeros; i++ {
				if (r*r-uint64(c))>>i&1 != 0 {
					r += 1 << (i - 1)
				}
			}
			mask := uint64(1)<<zeros - 1
			for _, root := range []uint64{r, -r, r + 1<<(zeros-1), -r + 1<<(zeros-1)} {
				root &= mask
				for ; root < 1<<54; root += 1 << zeros {
					if root < 1<<53 {
						continue
					}
					// (2q+1)² - c of 107 or 108 bits, without its zeros.
					hi, lo := bits.Mul64(root, root)
					if c > 0 && lo < uint64(c) {
						hi--
					} else if c < 0 && lo > math.MaxUint64-uint64(-c) {
						hi++
					}
					lo -= uint64(c)
					if m := hi<<(64-zeros) | lo>>zeros; lo&mask == 0 && m < 1<<53 {
						x = append(x, math.Ldexp(float64(m), zeros-108))
					}
				}
			}
		}
	}
	return x
}

// TestRoots64 holds square roots of f64 to those of package math, which are rounded correctly.
func TestRoots64(t *testing.T) {
	x := nearMiddle()
	if len(x) < 400 {
		t.Fatalf("only %d roots are near the middle of two floats", len(x))
	}
	inf := math.Inf(1)
	x = append(x, 0, math.Copysign(0, -1), inf, -inf, math.NaN(), -1, -5e-324, 5e-324, 1e-320, 0x1p-1022, math.MaxFloat64, 1, 2, 3, 4, 0.5, 0.25,
		math.Nextafter(1, 0), math.Nextafter(1, 2), math.Nextafter(4, 0), math.Nextafter(2, 0))
	for _, v := range nearMiddle()[:100] {
		x = append(x, math.Ldexp(v, 1000), math.Ldexp(v, -900), math.Ldexp(v, 2))
	}
	r := rand.New(rand.NewPCG(5, 64))
	for range 200_000 {
		x = append(x, math.Abs(math.Float64frombits(r.Uint64())), 1+3*r.Float64())
	}
	y := make([]float64, len(x))
	for _, isa := range Available() {
		run1(t, isa, aten.Sqrt, x, y)
		for i, v := range x {
			if want := math.Sqrt(v); math.Float64bits(y[i]) != math.Float64bits(want) && (want == want || y[i] == y[i]) {
				t.Fatalf("%v: √%x is %x, want %x", isa, v, y[i], want)
			}
		}
		run1(t, isa, aten.Rsqrt, x, y)
		for i, v := range x {
			if off := unitsOff64(y[i], 1/math.Sqrt(v)); !(off <= 2) {
				t.Fatalf("%v: 1/√%v is %v, %.1f units off", isa, v, y[i], off)
			}
		}
	}
}
