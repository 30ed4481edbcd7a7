package dense

import "math"

// exponents are the approximations of eˣ by quotients of polynomials of a degree, for matrices of at most
// a norm: N. Higham, The Scaling and Squaring Method for the Matrix Exponential Revisited (2005).
var exponents = []struct {
	degree int
	norm   float64
}{{3, 0.015}, {5, 0.25}, {7, 0.95}, {9, 2.1}, {13, 5.4}}

// Exp returns the exponential of a square matrix. That of one with elements that are not finite is all
// NaN.
func Exp(a *Matrix) *Matrix {
	norm := a.norm()
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		c := New(a.Rows, a.Cols)
		for i := range c.Data {
			c.Data[i] = math.NaN()
		}
		return c
	}
	for _, e := range exponents {
		if norm <= e.norm {
			return approximate(a, e.degree)
		}
	}
	last := exponents[len(exponents)-1]
	_, halvings := math.Frexp(norm / last.norm)
	scaled := New(a.Rows, a.Cols)
	scaled.add(a, math.Ldexp(1, -halvings))
	x := approximate(scaled, last.degree)
	for range halvings {
		x = Product(x, x)
	}
	return x
}

// norm is the greatest sum of the sizes of the elements of a column; NaN if one is.
func (m *Matrix) norm() (most float64) {
	sums := make([]float64, m.Cols)
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
	square := Product(a, a)
	odd, even := New(n, n), New(n, n)
	power, c := identity(n, n), 1.0
	for k := 0; ; k++ {
		// c is the coefficient of degree k, (2q−k)!·q! / ((2q)!·k!·(q−k)!).
		if k%2 == 0 {
			if k > 0 {
				power = Product(power, square)
			}
			even.add(power, c)
		} else {
			odd.add(power, c)
		}
		if k == degree {
			break
		}
		c *= float64(degree-k) / float64((2*degree-k)*(k+1))
	}
	u := Product(a, odd)
	below, above := New(n, n), New(n, n)
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
