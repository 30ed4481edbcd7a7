package dense

import "math"

// exponents are the approximations of eˣ by quotients of polynomials of a degree, for matrices of at most
// a norm: N. Higham, The Scaling and Squaring Method for the Matrix Exponential Revisited (2005).
var exponents = []struct {
	degree int
	norm   float64
}{{3, 0.015}, {5, 0.25}, {7, 0.95}, {9, 2.1}, {13, 5.4}}

// approximation returns the degree for a matrix of a norm, and how often it is halved before; ok is false
// for norms that are no numbers.
func approximation(norm float64) (degree, halvings int, ok bool) {
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, 0, false
	}
	for _, e := range exponents {
		if norm <= e.norm {
			return e.degree, 0, true
		}
	}
	last := exponents[len(exponents)-1]
	_, halvings = math.Frexp(norm / last.norm)
	return last.degree, halvings, true
}

// coefficient returns that of degree k+1, of those (2q−k)!·q! / ((2q)!·k!·(q−k)!), from that of degree k.
func coefficient(c float64, q, k int) float64 {
	return c * float64(q-k) / float64((2*q-k)*(k+1))
}

// Exp returns the exponential of a square matrix. That of one with elements that are not finite is all
// NaN.
func Exp(a *Matrix) *Matrix {
	degree, halvings, ok := approximation(a.norm())
	if !ok {
		c := a.room.New(a.Rows, a.Cols)
		for i := range c.Data {
			c.Data[i] = math.NaN()
		}
		return c
	}
	if halvings > 0 {
		scaled := a.room.New(a.Rows, a.Cols)
		scaled.add(a, math.Ldexp(1, -halvings))
		a = scaled
	}
	x := approximate(a, degree)
	for range halvings {
		x = Product(x, x)
	}
	return x
}

// norm is the greatest sum of the sizes of the elements of a column; NaN if one is.
func (m *Matrix) norm() (most float64) {
	sums := m.room.zeros(m.Cols)
	for i := range m.Rows {
		for j, v := range m.row(i) {
			sums[j] += math.Abs(v)
		}
	}
	for _, s := range sums {
		most = max(most, s)
	}
	return most
}

// add adds f·x.
func (m *Matrix) add(x *Matrix, f float64) {
	for i, v := range x.Data {
		m.Data[i] += f * v
	}
}

// approximate returns (v−u)⁻¹·(v+u), where u and v are the terms of odd and of even degree of the
// polynomial of a.
func approximate(a *Matrix, degree int) *Matrix {
	n := a.Rows
	odd, even := polynomials(a, degree)
	u := Product(a, odd)
	below, above := a.room.New(n, n), a.room.New(n, n)
	for i, v := range even.Data {
		below.Data[i], above.Data[i] = v-u.Data[i], v+u.Data[i]
	}
	pivots := make([]int, n)
	LU(below, pivots)
	for i, p := range pivots {
		if i != p {
			x, y := above.row(i), above.row(p)
			for j, v := range x {
				x[j], y[j] = y[j], v
			}
		}
	}
	Solve(below, above, false, true)
	Solve(below, above, true, false)
	return above
}

// polynomials returns the terms of even degree of the polynomial, and those of odd degree less a factor a.
func polynomials(a *Matrix, degree int) (odd, even *Matrix) {
	n := a.Rows
	powers := []*Matrix{a.room.identity(n, n), Product(a, a)} // of a²
	most := degree / 2
	if degree == 13 { // the terms from the fourth on have the third power as a factor
		most = 3
	}
	for len(powers) <= most {
		powers = append(powers, Product(powers[len(powers)-1], powers[1]))
	}
	odd, even = a.room.New(n, n), a.room.New(n, n)
	highOdd, highEven := a.room.New(n, n), a.room.New(n, n)
	for k, c := 0, 1.0; k <= degree; k++ {
		to, high, power := even, highEven, k/2
		if k%2 == 1 {
			to, high = odd, highOdd
		}
		if power > most {
			to, power = high, power-most
		}
		to.add(powers[power], c)
		c = coefficient(c, degree, k)
	}
	if most < degree/2 {
		odd.add(Product(powers[most], highOdd), 1)
		even.add(Product(powers[most], highEven), 1)
	}
	return odd, even
}
