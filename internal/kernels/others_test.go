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

// TestPartsOfOthers holds the parts of a row against the whole.
func TestPartsOfOthers(t *testing.T) {
	const n, parts = 4*OthersPart + 9, 5
	for name, element := range map[string]func(i int) float64{
		"numbers":           func(i int) float64 { return 1 + math.Sin(float64(i))/64 },
		"to zero":           func(i int) float64 { return math.Sin(float64(i)) },
		"infinite":          func(i int) float64 { return -2 - math.Sin(float64(i)) },
		"a zero":            func(i int) float64 { return float64(min(1, max(i-n/2, n/2-i))) },
		"NaN":               func(i int) float64 { return math.Sqrt(float64(max(i-n/2, n/2-i)) - 0.25) },
		"zero and infinite": func(i int) float64 { return 1 + float64(i-n/2)/n },
		"to and fro":        func(i int) float64 { return math.Pow(2, float64(1-i/64%2*2)*10) },
	} {
		row, got, want := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range row {
			row[i] = element(i)
		}
		ProductsOfOthers(want, row, n, nil, nil, 0, 1)
		part := func(x []float64, i int) []float64 { return x[i*OthersPart : min((i+1)*OthersPart, n)] }
		products, ends := make([]float64, parts), make([]Ends, parts)
		for i := range parts {
			products[i] = Product(part(row, i))
		}
		PartEnds(ends, products, func(i int) []float64 { return part(row, i) })
		alike := 0
		for i := range parts {
			to, from := part(got, i), part(row, i)
			by, ok := AlikeOthers[float64](ends[i], products[i])
			if !ok {
				OthersOfPart(to, from, ends[i], nil, nil)
				continue
			}
			alike++
			for j, v := range from {
				to[j] = v * by
			}
		}
		for i, v := range want {
			if w := got[i]; !(math.Abs(w-v) <= 1e-12*math.Abs(v)) && !sameBits(w, v) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, w, v)
			}
		}
		t.Logf("%s: %d parts are alike", name, alike)
	}
}
