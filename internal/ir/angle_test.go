package ir

import (
	"math"
	"testing"

	"github.com/loris-ml/loris/internal/twooverpi/angles"
)

func TestAngles(t *testing.T) {
	for _, a := range angles.All {
		for i, got := range []float64{sin(a[0]), cos(a[0]), tan(a[0])} {
			want := a[i+1]
			if unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want); !(math.Abs(got-want) <= 2*unit) {
				t.Errorf("function %d of %v is %v, want %v", i, a[0], got, want)
			}
		}
	}
	for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		if s, c := sinCos(x); !math.IsNaN(s) || !math.IsNaN(c) || !math.IsNaN(tan(x)) {
			t.Errorf("of %v: %v, %v", x, s, c)
		}
	}
	if z := math.Copysign(0, -1); !math.Signbit(sin(z)) || !math.Signbit(tan(z)) || cos(z) != 1 {
		t.Error("of -0")
	}
}
