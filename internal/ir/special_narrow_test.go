package ir

import (
	"math"
	"testing"
)

// TestNarrowSpecialFunctions holds the forms of special functions for f32 and bf16 against those for f64,
// within one unit in the last place. Where lgamma is nearly 0 between negative integers its parts cancel.
func TestNarrowSpecialFunctions(t *testing.T) {
	digits := map[DType]float64{F32: 0x1p-23, BF16: 0x1p-7, F16: 0x1p-10}
	least := map[DType]float64{F32: 0x1p-149, BF16: 0x1p-133, F16: 0x1p-24}
	nothing := func(float64) float64 { return 0 }
	for _, c := range []struct {
		name     string
		d        DType
		absolute func(x float64) float64
	}{
		{"lgamma", F32, func(x float64) float64 {
			if x < -1 {
				return 1e-8
			}
			return 0
		}},
		{"special_i1", F32, nothing},
		{"special_i1e", F32, nothing},
	} {
		op, ok := Lookup(c.name)
		if !ok {
			t.Fatalf("%s is not registered", c.name)
		}
		b := expanding()
		value := func(d DType, x float64) float64 {
			return (&evaluator{}).eval(b.Call1(op, []any{leafOf(scalar{d: d, F: x}, 1)})).F
		}
		check := func(x float64) {
			x = RoundFloat(c.d, x)
			got, want := value(c.d, x), value(F64, x)
			unit := max(math.Abs(want)*digits[c.d], least[c.d])
			switch rounded := RoundFloat(c.d, want); {
			case got == rounded || math.IsNaN(got) && math.IsNaN(want):
			case !(math.Abs(got-want) <= max(unit, c.absolute(x))):
				t.Errorf("%s(%v) of %v = %v, want %v", c.name, x, c.d, got, rounded)
			}
		}
		for _, x := range []float64{0, math.Inf(1), math.NaN(), 1, 2, 1e-45, 1e-39, 1e-20, 0.49999997, 0.99999994, 1.0000001, 1.9999999,
			2.0000002, 1.5, 2.5, 2.5000002, 8, 20, 3e38, 8388609} {
			check(x)
			check(-x)
		}
		for x := -20.0; x < 40; x += 0.471 {
			check(x)
			check(math.Exp(x))
			check(-math.Exp(x))
		}
	}
}
