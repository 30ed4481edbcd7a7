package ir

import (
	"math"
	"testing"
)

// TestNormalCDF holds it against values of 50 digits. Rounding the argument of erfc alone would be off by 1,000
// units in the tail.
func TestNormalCDF(t *testing.T) {
	for x, want := range map[float64]float64{
		0.3:   0.61791142218895263307,
		1.1:   0.86433393905361734418,
		-0.3:  0.38208857781104736693,
		-1.1:  0.13566606094638265582,
		-5.7:  5.9903714010635281878e-9,
		-10.3: 3.5230650789264125919e-25,
		-20.1: 3.6896808637213895544e-90,
		-30.7: 2.8458302208738191641e-207,
		-37.3: 8.2054948449307733469e-305,
	} {
		if got := normalCDF(x); math.Abs(got-want) > 4*0x1p-53*want {
			t.Errorf("ndtr(%v) = %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]float64{math.Inf(1): 1, math.Inf(-1): 0, 0: 0.5, -50: 0, 50: 1} {
		if got := normalCDF(x); got != want {
			t.Errorf("ndtr(%v) = %v, want %v", x, got, want)
		}
	}
	if got := normalCDF(math.NaN()); got == got {
		t.Errorf("ndtr(NaN) = %v", got)
	}
}
