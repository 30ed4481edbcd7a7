package philox

import (
	"math"
	"testing"
)

// The statistics below are of fixed seeds, so that a run never fails by chance;
// the bounds are four to five standard deviations of a good generator's.

const samples = 1 << 18

func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x)-1)
}

// checkChiSquared bins x, of which each is in [0, 1), and tests the counts
// against equal ones.
func checkChiSquared(t *testing.T, x []float64) {
	t.Helper()
	const bins = 256
	var count [bins]int
	for _, v := range x {
		count[int(v*bins)]++
	}
	expected := float64(len(x)) / bins
	chi2 := 0.0
	for _, c := range count {
		d := float64(c) - expected
		chi2 += d * d / expected
	}
	// χ² of 255 degrees of freedom: mean 255, standard deviation √510 ≈ 22.6.
	if chi2 < 255-4*22.6 || chi2 > 255+5*22.6 {
		t.Errorf("chi-squared of %d bins is %.1f", bins, chi2)
	}
}

func checkMoments(t *testing.T, x []float64, mean, variance float64) {
	t.Helper()
	m, v := moments(x)
	n := float64(len(x))
	if tol := 5 * math.Sqrt(variance/n); math.Abs(m-mean) > tol {
		t.Errorf("mean %v, want %v ± %v", m, mean, tol)
	}
	// The variance of the sample variance is at most 2σ⁴/n for both laws.
	if tol := 5 * variance * math.Sqrt(2/n); math.Abs(v-variance) > tol {
		t.Errorf("variance %v, want %v ± %v", v, variance, tol)
	}
}

func checkUncorrelated(t *testing.T, what string, x, y []float64) {
	t.Helper()
	mx, vx := moments(x)
	my, vy := moments(y)
	cov := 0.0
	for i := range x {
		cov += (x[i] - mx) * (y[i] - my)
	}
	r := cov / float64(len(x)) / math.Sqrt(vx*vy)
	if math.Abs(r) > 5/math.Sqrt(float64(len(x))) {
		t.Errorf("%s: correlation %v", what, r)
	}
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func uniform(seed, offset uint64) []float64 {
	x := make([]float64, samples)
	UniformF64(x, seed, offset, 0)
	return x
}

func TestUniformStatistics(t *testing.T) {
	x32 := make([]float32, samples)
	UniformBits(x32, 11, 0, 0, 24)
	for name, x := range map[string][]float64{"f32": widen(x32), "f64": uniform(12, 0)} {
		t.Run(name, func(t *testing.T) {
			checkMoments(t, x, 0.5, 1.0/12)
			checkChiSquared(t, x)
			low := make([]float64, len(x)) // the bits below the leading eight
			for i, v := range x {
				_, low[i] = math.Modf(v * 256)
			}
			checkChiSquared(t, low)
		})
	}
}

func TestNormalStatistics(t *testing.T) {
	x := make([]float64, samples)
	NormalF64(x, 21, 4, 0)
	x32 := make([]float32, samples)
	NormalF32(x32, 22, 4, 0)
	for name, x := range map[string][]float64{"f64": x, "f32": widen(x32)} {
		t.Run(name, func(t *testing.T) {
			checkMoments(t, x, 0, 1)
			p := make([]float64, len(x)) // uniform when x is normal
			fourth := 0.0
			for i, v := range x {
				p[i] = 0.5 * math.Erfc(-v/math.Sqrt2)
				fourth += v * v * v * v
			}
			checkChiSquared(t, p)
			// E z⁴ = 3, with variance 96.
			if k := fourth / samples; math.Abs(k-3) > 5*math.Sqrt(96.0/samples) {
				t.Errorf("fourth moment %v", k)
			}
			even, odd := make([]float64, 0, samples/2), make([]float64, 0, samples/2)
			for i := 0; i < samples; i += 2 {
				even, odd = append(even, x[i]), append(odd, x[i+1])
			}
			checkUncorrelated(t, "cosine and sine", even, odd)
		})
	}
}

func TestNeighboursAreUncorrelated(t *testing.T) {
	x := uniform(31, 8)
	checkUncorrelated(t, "next element", x[:samples-1], x[1:])
	checkUncorrelated(t, "next offset", x, uniform(31, 9))
	checkUncorrelated(t, "next seed", x, uniform(32, 8))
}

func BenchmarkUniformBits(b *testing.B) {
	dst := make([]float32, 4096)
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		UniformBits(dst, 1, 2, 0, 24)
	}
}

func BenchmarkNormalF32(b *testing.B) {
	dst := make([]float32, 4096)
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		NormalF32(dst, 1, 2, 0)
	}
}
