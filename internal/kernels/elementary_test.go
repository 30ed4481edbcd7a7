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

func checkElementary(t *testing.T, x []float32) {
	for _, c := range []struct {
		name string
		run  func(dst, a []float32)
		want func(float64) float64
	}{
		{"exp", Exp, math.Exp},
		{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"tanh", Tanh, math.Tanh},
		{"silu", Silu, func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
		{"gelu", Gelu, func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }},
		{"gelu tanh", GeluTanh, func(x float64) float64 { return x / (1 + math.Exp(-2*geluSlope*(x+0.044715*x*x*x))) }},
	} {
		got := make([]float32, len(x))
		c.run(got, x)
		for i, v := range x {
			want := c.want(float64(v))
			if w := float32(want); w != w || want == 0 || math.IsInf(float64(w), 0) {
				if !sameBits(float64(got[i]), float64(w)) {
					t.Errorf("%s(%v) = %v, want %v", c.name, v, got[i], w)
				}
				continue
			}
			w := float32(math.Abs(want))
			ulp := float64(math.Nextafter32(w, float32(inf)) - w)
			if d := math.Abs(float64(got[i])-want) / ulp; d > 0.75 {
				t.Errorf("%s(%v) = %v, want %v: off by %.2f ulps", c.name, v, got[i], want, d)
			}
		}
	}
}
