package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProductsOfOthers holds rows against products of what is before and behind each element.
func TestProductsOfOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	toEighths := func(line []float32) {
		for i, v := range line {
			line[i] = float32(math.Round(float64(v)*8)) / 8
		}
	}
	for _, round := range []func([]float32){nil, toEighths} {
		for _, n := range []int{0, 1, 2, 3, 8, 511, 512, 513, 1030} {
			const rows = 3
			x, got, room := make([]float32, rows*n), make([]float32, rows*n), make([]float32, OthersRoom)
			for i := range x {
				x[i] = 1 + (rng.Float32()-0.5)/8
			}
			if n > 3 {
				x[n/2], x[n+1], x[3*n-2] = 0, float32(math.NaN()), float32(math.Inf(-1))
			}
			ProductsOfOthers(got, x, n, round, room, 0, 2)
			ProductsOfOthers(got, x, n, round, room, 2, rows)
			for i, v := range got {
				first := i / n * n
				before, behind := 1.0, 1.0
				for _, v := range x[first:i] {
					before *= float64(v)
				}
				for j := first + n - 1; j > i; j-- {
					behind *= float64(x[j])
				}
				factors := []float32{float32(before), float32(behind)}
				if round != nil {
					round(factors)
				}
				if want := factors[0] * factors[1]; !sameBits(float64(v), float64(want)) {
					t.Fatalf("rows of %d, rounded %v: element %d is %v, want %v", n, round != nil, i, v, want)
				}
			}
		}
	}
}
