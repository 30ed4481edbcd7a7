package ir_test

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Rows so few and long that their distances are computed pair by pair have those of the definition, and their
// gradients.
func TestDistancesOfFewLongRows(t *testing.T) {
	const n, m, k = 3, 2, 1030
	rng := rand.New(rand.NewPCG(29, 30))
	x, y, g, h := rnd(rng, n, k), rnd(rng, m, k), rnd(rng, n, m), rnd(rng, 3)
	xs, ys, gs, hs := first(t, call("neg", x)), first(t, call("neg", y)), first(t, call("neg", g)), first(t, call("neg", h))
	for _, p := range []float64{0, 1, 2, 3, math.Inf(1)} {
		var want, pairs []float64
		for i := range n {
			for j := range m {
				want = append(want, distanceOf(xs[i*k:][:k], ys[j*k:][:k], p))
			}
			for j := i + 1; j < n; j++ {
				pairs = append(pairs, distanceOf(xs[i*k:][:k], xs[j*k:][:k], p))
			}
		}
		nearly(t, "cdist", first(t, call("cdist", x, y, p)), want)
		nearly(t, "pdist", first(t, call("pdist", x, p)), pairs)
		if p != 1 && p != 2 {
			continue
		}
		slopes, own := make([]float64, n*k), make([]float64, n*k)
		for i := range n {
			for j := range m {
				addSlopes(slopes[i*k:][:k], xs[i*k:][:k], ys[j*k:][:k], gs[i*m+j], want[i*m+j], p)
			}
			for j := range n {
				if i != j {
					pair := i + j - 1
					addSlopes(own[i*k:][:k], xs[i*k:][:k], xs[j*k:][:k], hs[pair], pairs[pair], p)
				}
			}
		}
		nearly(t, "gradient of cdist", first(t, call("_cdist_backward", g, x, y, p, g)), slopes)
		nearly(t, "gradient of pdist", first(t, call("_pdist_backward", h, x, p, h)), own)
	}
}

func distanceOf(x, y []float64, p float64) (norm float64) {
	for i := range x {
		switch d := math.Abs(x[i] - y[i]); {
		case p == 0 && d != 0:
			norm++
		case math.IsInf(p, 1):
			norm = max(norm, d)
		case p > 0:
			norm += math.Pow(d, p)
		}
	}
	if p == 0 || math.IsInf(p, 1) {
		return norm
	}
	return math.Pow(norm, 1/p)
}

// addSlopes adds the derivatives of a distance by x, of negated operands and cotangents.
func addSlopes(dst, x, y []float64, g, norm, p float64) {
	for i := range x {
		d := x[i] - y[i]
		if p == 1 {
			dst[i] += g * d / math.Abs(d)
		} else {
			dst[i] += g * d / norm
		}
	}
}

func nearly(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	for i, v := range want {
		if !(math.Abs(got[i]-v) <= 1e-9*(1+math.Abs(v))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], v)
		}
	}
}
