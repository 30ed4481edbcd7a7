package cpu

import (
	"math"
	"testing"
)

// TestTallPlaces holds the places of extrema in tall columns, some of which have NaN, nothing but
// infinities, or the same number again, against the reference backend.
func TestTallPlaces(t *testing.T) {
	const outer, rows, cols = 2, 700, 190
	x := make([]float64, outer*rows*cols)
	for i := range x {
		x[i] = float64(i * 7919 % 1009)
		switch c := i % cols; {
		case c%5 == 0:
			x[i] = math.Inf(c%2*2 - 1)
		case c%7 == 0 && i%11 == 0:
			x[i] = math.NaN()
		}
	}
	for _, d := range []string{"f32", "f64", "bf16"} {
		for _, b := range []*Backend{New(), NewPortable()} {
			sameAsRef(t, b, `program @p {
				%x = parameter "x" : `+d+`[2,700,190]
				return argmax(%x, 1), argmin(%x, 1), amax(%x, [1])
			}`, 0, x)
		}
	}
}
