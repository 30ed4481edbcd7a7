package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLinearScan holds lines that go along together, and parts of them, against lines by themselves. Factors where lines
// begin are NaN, since nothing is before them.
func TestLinearScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	for _, d := range [][3]int{{1, 5, 1}, {7, 3, 1}, {4, 1, 1}, {9, 6, 1}, {2, 4, 5}, {1, 3, 11}, {2, 5, 70}, {3, 0, 1}, {3, 0, 2}} {
		for _, reverse := range []bool{false, true} {
			linearScans[float32](t, rng, reverse, d[0], d[1], d[2])
			linearScans[float64](t, rng, reverse, d[0], d[1], d[2])
		}
	}
}

func linearScans[T Float](t *testing.T, rng *rand.Rand, reverse bool, outer, n, inner int) {
	t.Helper()
	a, b := make([]T, outer*n*inner), make([]T, outer*n*inner)
	for i := range a {
		a[i], b[i] = T(rng.Float64()*4-2), T(rng.Float64()*4-2)
	}
	want := make([]T, len(a))
	for l := range outer * inner {
		p, step := l/inner*n*inner+l%inner, inner
		if reverse {
			p, step = p+(n-1)*inner, -inner
		}
		s := 0.0
		for k := range n {
			if k == 0 {
				a[p] = T(math.NaN())
				s = float64(b[p])
			} else {
				s *= float64(a[p])
				s += float64(b[p])
			}
			want[p] = T(s)
			p += step
		}
	}
	lines := outer * inner
	got, over := make([]T, len(a)), append([]T(nil), b...)
	LinearScan(got, a, b, reverse, n, inner, 0, lines/3)
	LinearScan(got, a, b, reverse, n, inner, lines/3, lines)
	LinearScan(over, a, over, reverse, n, inner, 0, lines)
	for i := range want {
		if !sameBits(float64(got[i]), float64(want[i])) || !sameBits(float64(over[i]), float64(want[i])) {
			t.Fatalf("[%d, %d, %d], reverse %v: element %d is %v, over its terms %v, want %v", outer, n, inner, reverse, i, got[i], over[i], want[i])
		}
	}
}
