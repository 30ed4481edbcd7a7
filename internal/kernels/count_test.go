package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRange holds the range of lines of any length against the least and the greatest of all elements.
func TestRange(t *testing.T) {
	testRange[float32](t)
	testRange[float64](t)
}

func testRange[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := 1; n < 3*rangeLanes; n += 1 + n/8 {
		x := make([]T, n)
		for round := range 3 {
			for i := range x {
				x[i] = T(rng.NormFloat64())
			}
			if round == 1 {
				x[rng.IntN(n)] = T(math.Inf(1 - 2*rng.IntN(2)))
			}
			if round == 2 {
				x[rng.IntN(n)] = T(math.NaN())
			}
			lo, hi := Range(x)
			if want := [2]T{slices.Min(x), slices.Max(x)}; !sameBits(float64(lo), float64(want[0])) || !sameBits(float64(hi), float64(want[1])) {
				t.Fatalf("%d of %T: %v to %v, want %v", n, x[0], lo, hi, want)
			}
		}
	}
}
