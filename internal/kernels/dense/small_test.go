package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
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
		m := matrixOf(a, c.rows, c.cols)
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
				x, want := slices.Clone(b), matrixOf(b, n, c.sides)
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

// TestDeterminant3 holds it to the factors of the transposed matrix, bit for bit, with ties of pivots, zeros
// and numbers that are not finite.
func TestDeterminant3(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	values := []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, -3, math.NaN(), math.Inf(1), 0x1p-1070}
	for i := range 20000 {
		x, lu := make([]float64, 9), make([]float64, 9)
		for j := range x {
			if x[j] = values[rng.IntN(len(values))]; i%4 == 0 {
				x[j] = rng.NormFloat64()
			} else if i%4 == 1 {
				x[j] = values[rng.IntN(7)]
			}
			lu[j%3*3+j/3] = x[j]
		}
		var pivots [3]int
		SmallLU(lu, 3, 3, pivots[:])
		want := 1.0
		for j, p := range pivots {
			if want *= lu[j*4]; p != j {
				want = -want
			}
		}
		if got := Determinant3(x); math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
			t.Fatalf("determinant of %v is %v, want %v", x, got, want)
		}
	}
}

// TestSmallFactors holds those of Cholesky, QR and the exponential to the loops for larger matrices.
func TestSmallFactors(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {2, 2}, {5, 5}, {16, 16}, {7, 3}, {3, 7}, {16, 9}} {
		rows, cols := s[0], s[1]
		k := min(rows, cols)
		m := random(rows, cols)
		a, tau, want := make([]float64, rows*cols), make([]float64, k), make([]float64, k)
		m.To(a)
		f := copied(m)
		QR(f, want)
		SmallQR(a, rows, cols, tau)
		near(t, "QR", matrixOf(a, rows, cols), f)
		near(t, "tau", matrixOf(tau, 1, k), matrixOf(want, 1, k))
		q := make([]float64, rows*k)
		(*Room)(nil).identity(rows, k).To(q)
		SmallMultiplyQ(a, cols, tau, q, rows, k, false, true)
		near(t, "Q", matrixOf(q, rows, k), Q(f, want, k))
		for _, transposed := range []bool{false, true} {
			x := random(rows, 19)
			b := make([]float64, rows*19)
			x.To(b)
			SmallMultiplyQ(a, cols, tau, b, rows, 19, transposed, false)
			MultiplyQ(f, want, x, transposed)
			near(t, "product with Q", matrixOf(b, rows, 19), x)
		}
		if rows != cols {
			continue
		}
		for _, size := range []float64{1e-3, 0.3, 2, 40, math.Inf(1)} {
			x := random(rows, rows)
			for i := range x.Data {
				x.Data[i] *= size
			}
			b, e := make([]float64, rows*rows), make([]float64, rows*rows)
			x.To(b)
			(*Room)(nil).SmallExp(e, b, rows, false)
			if big := Exp(x, false); math.IsInf(size, 0) {
				if e[0] == e[0] || big.Data[0] == big.Data[0] {
					t.Errorf("the exponential of what is not finite is %v, %v", e[0], big.Data[0])
				}
			} else {
				nearTo(t, "exponential", matrixOf(e, rows, rows), big)
			}
		}
		l := definite(rows)
		l.To(a)
		wrong := append([]float64(nil), a...)
		wrong[(rows-1)*(rows+1)] = -1
		if order := SmallCholesky(wrong, rows); order != rows {
			t.Errorf("the minor that is not positive is said to be of order %d, not %d", order, rows)
		}
		SmallCholesky(a, rows)
		Cholesky(l)
		for i := range rows {
			clear(a[i*rows+i+1 : (i+1)*rows])
		}
		same(t, "factor of Cholesky's", a, l)
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

// TestSmallSymmetric holds the eigenvalues to those of the form for larger matrices, and the vectors to what
// they are.
func TestSmallSymmetric(t *testing.T) {
	for n := range Small + 1 {
		for name, a := range hard(n) {
			a.Mirror(true)
			what := fmt.Sprint(n, " ", name)
			want, _, _ := Symmetric(copied(a), false)
			x, values, v, room := make([]float64, n*n), make([]float64, n), make([]float64, n*n), make([]float64, RoomOfSymmetric(n))
			a.To(x)
			if !SmallSymmetric(x, n, values, nil, room) {
				t.Fatalf("%s: nothing found", what)
			}
			ascending(t, what, values)
			sameValues(t, what, values, want)
			a.To(x)
			if !SmallSymmetric(x, n, values, v, room) {
				t.Fatalf("%s: no vectors found", what)
			}
			ascending(t, what, values)
			sameValues(t, what, values, want)
			vectors := matrixOf(v, n, n)
			orthogonal(t, what, vectors)
			nearTo(t, what, Product(Product(vectors, diagonal(n, n, values)), vectors.Transposed()), a)
		}
		if x := []float64{1, math.NaN(), math.NaN(), 2}; n == 2 && SmallSymmetric(x, 2, make([]float64, 2), make([]float64, 4), make([]float64, 12)) {
			t.Error("vectors of no numbers")
		}
	}
}

// TestSmallSingular holds singular values to those of the form for larger matrices, and vectors to what they are.
func TestSmallSingular(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {5, 1}, {2, 2}, {3, 3}, {4, 4}, {7, 5}, {16, 2}, {16, 16}} {
		rows, cols := s[0], s[1]
		for name, square := range hard(rows) {
			a, what := newMatrix(rows, cols), fmt.Sprint(s, " ", name)
			for i := range rows {
				copy(a.row(i), square.row(i))
			}
			want, _, _, _ := Singular(copied(a), false, false)
			x, values, room := make([]float64, rows*cols), make([]float64, cols), make([]float64, RoomOfSingular(rows, cols))
			for _, vectors := range []bool{false, true} {
				a.To(x)
				u, v, ok := (*Room)(nil).SmallSingular(x, rows, cols, values, room, vectors)
				if !ok {
					t.Fatalf("%s: nothing found", what)
				}
				sameValues(t, what, values, want)
				if vectors {
					orthogonal(t, what, u)
					orthogonal(t, what, v)
					nearTo(t, what, Product(Product(u.Transposed(), diagonal(rows, cols, values)), v), a)
				}
			}
		}
	}
}
