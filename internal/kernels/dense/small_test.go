package dense

import (
	"math"
	"slices"
	"testing"
)

// TestSmall holds the loops for small matrices to the results of those for larger ones.
func TestSmall(t *testing.T) {
	for _, c := range []struct{ rows, cols, sides int }{{1, 1, 1}, {2, 2, 3}, {6, 6, 6}, {11, 11, 3}, {16, 16, 17}, {7, 12, 1}, {13, 4, 2}, {0, 0, 0}} {
		a := make([]float64, c.rows*c.cols)
		for i := range a {
			a[i] = math.Sin(float64(i*i + 1))
		}
		if c.rows == 6 {
			clear(a[6:12]) // a matrix that is singular
		}
		n := min(c.rows, c.cols)
		small, pivots, more := slices.Clone(a), make([]int, n), make([]int, n)
		SmallLU(small, c.rows, c.cols, pivots)
		m := From(a, c.rows, c.cols)
		LU(m, more)
		same(t, "factors", small, m)
		if !slices.Equal(pivots, more) {
			t.Errorf("pivots %v, want %v", pivots, more)
		}
		if c.rows != c.cols || c.rows == 6 {
			continue
		}
		b := make([]float64, n*c.sides)
		for i := range b {
			b[i] = math.Cos(float64(i * i))
		}
		for _, upper := range []bool{false, true} {
			for _, unit := range []bool{false, true} {
				x, want := slices.Clone(b), From(b, n, c.sides)
				SmallSolve(small, n, n, 1, x, c.sides, upper, unit)
				Solve(m, want, upper, unit)
				same(t, "solution", x, want)
				SmallSolve(small, n, 1, n, x, c.sides, upper, unit)
				Solve(m.Transposed(), want, upper, unit)
				same(t, "solution by the transposed triangle", x, want)
			}
		}
	}
}

func same(t *testing.T, what string, got []float64, m *Matrix) {
	t.Helper()
	want := make([]float64, len(got))
	m.To(want)
	for i, v := range got {
		if v != want[i] {
			t.Fatalf("%s: element %d of %d×%d is %v, want %v", what, i, m.Rows, m.Cols, v, want[i])
		}
	}
}
