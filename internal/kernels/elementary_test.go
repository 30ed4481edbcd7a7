package kernels

import (
	"fmt"
	"math"
	"testing"
)

// TestElementary compares each function with float64's over all exponents, in
// units in the last place of float32.
func TestElementary(t *testing.T) {
	var x []float32
	for e := -149; e <= 127; e++ {
		for m := 1.0; m < 2; m += 1.0 / 37 {
			v := float32(math.Ldexp(m, e))
			x = append(x, v, -v)
		}
	}
	for v := -120.0; v < 100; v += 0.0137 {
		x = append(x, float32(v), float32(v/50), float32(v/700))
	}
	for v := 700.0; v < 720; v += 0.137 {
		x = append(x, float32(v), float32(-v))
	}
	x = append(x, 0, float32(negZ), float32(inf), float32(-inf), float32(nan), tanhSmall, -tanhSmall, expMost, -expMost)
	t.Run("go", func(t *testing.T) {
		defer func(all []*elementary) { elementaries = all }(elementaries)
		elementaries = nil
		checkElementary(t, x)
	})
	for i, l := range elementaries {
		t.Run(fmt.Sprint(l.lanes, " lanes"), func(t *testing.T) {
			defer func(all []*elementary) { elementaries = all }(elementaries)
			elementaries = elementaries[i:]
			checkElementary(t, x)
		})
	}
}

// bound is how far a function may be from the exact result, in units in the last
// place: of the result for operands of at least from, and of the operand for those
// below.
type bound struct{ result, from, operand float64 }

func checkElementary(t *testing.T, x []float32) {
	for _, c := range []struct {
		name  string
		run   func(dst, a []float32)
		want  func(float64) float64
		bound bound
	}{
		{"exp", Exp, math.Exp, bound{0.75, math.Inf(-1), 0}},
		{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, bound{1.5, math.Inf(-1), 0}},
		{"tanh", Tanh, math.Tanh, bound{1.6, math.Inf(-1), 0}},
		{"silu", Silu, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, bound{2, -80, 0x1p-100}},
		{"gelu", Gelu, func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }, bound{2.5, -1, 0.4}},
		{"gelu tanh", GeluTanh, func(x float64) float64 { return x / (1 + math.Exp(-2*geluSlope*(x+0.044715*x*x*x))) }, bound{2.5, -1, 0.4}},
	} {
		got := make([]float32, len(x))
		c.run(got, x)
		var most bound
		for i, v := range x {
			want := c.want(float64(v))
			if w := float32(want); w != w || want == 0 || math.IsInf(float64(w), 0) {
				if !sameBits(float64(got[i]), float64(w)) {
					t.Errorf("%s(%v) = %v, want %v", c.name, v, got[i], w)
				}
				continue
			}
			off := math.Abs(float64(got[i]) - want)
			if float64(v) < c.bound.from {
				most.operand = max(most.operand, off/ulp(v))
			} else {
				most.result = max(most.result, off/ulp(float32(want)))
			}
		}
		t.Logf("%s: %.3g units of the result, %.3g of the operand", c.name, most.result, most.operand)
		if !(most.result <= c.bound.result && most.operand <= c.bound.operand) {
			t.Errorf("%s is off by %.3g units of the result or %.3g of the operand, at most %v", c.name, most.result, most.operand, c.bound)
		}
	}
}

// ulp is the distance from |x| to the next float.
func ulp(x float32) float64 {
	x = float32(math.Abs(float64(x)))
	return float64(math.Nextafter32(x, float32(inf)) - x)
}
