package ir

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestPowIsPrecise holds powers against products of as many digits as it takes, of which math.Pow
// loses more the larger the exponent is.
func TestPowIsPrecise(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 300 {
		x, n := math.Exp(r.NormFloat64()/8), r.IntN(2000)
		product := big.NewFloat(1).SetPrec(300)
		for range n {
			product.Mul(product, big.NewFloat(x))
		}
		for _, y := range []float64{float64(n), -float64(n)} {
			if y < 0 {
				product.Quo(big.NewFloat(1).SetPrec(300), product)
			}
			want, _ := product.Float64()
			if got := pow(x, y); math.Abs(got-want) > 2*(math.Nextafter(want, math.Inf(1))-want) {
				t.Errorf("%v to the power %v is %v, want %v", x, y, got, want)
			}
		}
	}
}

func TestPowOfSpecialValues(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e300, -1e300, 5e-324, -5e-324, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, x := range values {
		for _, y := range values {
			got, want := pow(x, y), math.Pow(x, y)
			if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) && math.Abs(got-want) > 1e-15*math.Abs(want) {
				t.Errorf("%v to the power %v is %v, want %v", x, y, got, want)
			}
		}
	}
}
