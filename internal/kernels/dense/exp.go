package dense

import (
	"math"
	"slices"
)

// exponents are the approximations of eˣ by quotients of polynomials of a degree, for matrices of at most
// a norm: N. Higham, The Scaling and Squaring Method for the Matrix Exponential Revisited (2005).
type exponents []struct {
	degree int
	norm   float64
}

// Those of float64 are as exact as its numbers, those for results that are rounded to float32 are 2⁻³² of the matrix
// off.
var (
	exponentsOfDoubles = exponents{{3, 0.015}, {5, 0.25}, {7, 0.95}, {9, 2.1}, {13, 5.4}}
	exponentsOfSingles = exponents{{3, 0.16}, {5, 1.05}, {7, 2.6}}
)

// exponentsFor returns the approximations for results that are rounded to float32, or aren't.
func exponentsFor(singles bool) exponents {
	if singles {
		return exponentsOfSingles
	}
	return exponentsOfDoubles
}

// approximation returns the degree for a matrix of a norm, and how often it is halved before; ok is false
// for norms that are no numbers.
func (list exponents) approximation(norm float64) (degree, halvings int, ok bool) {
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, 0, false
	}
	for _, e := range list {
		if norm <= e.norm {
			return e.degree, 0, true
		}
	}
	last := list[len(list)-1]
	_, halvings = math.Frexp(norm / last.norm)
	return last.degree, halvings, true
}

// coefficient returns that of degree k+1, of those (2q−k)!·q! / ((2q)!·k!·(q−k)!), from that of degree k.
func coefficient(c float64, q, k int) float64 {
	return c * float64(q-k) / float64((2*q-k)*(k+1))
}

// Exp returns the exponential of a square matrix, exact enough to be rounded to float32 if singles. That of one with
// elements that are not finite is all NaN.
func Exp(a *Matrix, singles bool) *Matrix {
	list := exponentsFor(singles)
	norm := a.norm()
	if _, _, ok := list.approximation(norm); !ok {
		c := a.room.New(a.Rows, a.Cols)
		for i := range c.Data {
			c.Data[i] = math.NaN()
		}
		return c
	}
	x, is := a.dual()
	if is {
		// The slope's error is the derivative of the value's, which is greater by 2q+1: the norms at which the two are
		// the same are at most so much less.
		norm = 1.4 * x.value.norm()
	}
	degree, halvings, _ := list.approximation(norm)
	if halvings > 0 {
		scaled := x.zeros()
		scaled.add(x, math.Ldexp(1, -halvings))
		x = scaled
	}
	e := approximate(x, degree)
	for range halvings {
		e = e.times(e)
	}
	return e.matrix()
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
	to := m.Data[:len(x.Data)]
	for i, v := range x.Data {
		to[i] += f * v
	}
}

// approximate returns (v−u)⁻¹·(v+u), where u and v are the terms of odd and of even degree of the
// polynomial of a.
func approximate(a dual, degree int) dual {
	odd, even := polynomials(a, degree)
	u := a.times(odd)
	below, above := even.zeros(), even
	below.add(even, 1)
	below.add(u, -1)
	above.add(u, 1)
	pivots := make([]int, a.value.Rows)
	LU(below.value, pivots)
	solve := func(x *Matrix) {
		for i, p := range pivots {
			x.SwapRows(i, p)
		}
		Solve(below.value, x, false, true)
		Solve(below.value, x, true, false)
	}
	solve(above.value)
	if above.slope != nil {
		above.slope.minus(0, 0, above.slope.Rows, above.slope.Cols, below.slope.Data, below.slope.Stride, 1, above.value.Data, above.value.Stride, below.slope.Cols)
		solve(above.slope)
	}
	return above
}

// polynomials returns the terms of even degree of the polynomial, and those of odd degree less a factor a.
func polynomials(a dual, degree int) (odd, even dual) {
	square := a.times(a)
	powers := []dual{{}, square} // of a², the first is the identity
	most := degree / 2
	if degree == 13 { // the terms from the fourth on have the third power as a factor
		most = 3
	}
	for len(powers) <= most {
		powers = append(powers, powers[len(powers)-1].times(square))
	}
	odd, even = a.zeros(), a.zeros()
	var highOdd, highEven dual
	if most < degree/2 {
		highOdd, highEven = a.zeros(), a.zeros()
	}
	for k, c := 0, 1.0; k <= degree; k++ {
		to, high, power := even, highEven, k/2
		if k%2 == 1 {
			to, high = odd, highOdd
		}
		if power > most {
			to, power = high, power-most
		}
		if power == 0 {
			for i := range to.value.Rows {
				to.value.at(i, i)[0] += c
			}
		} else {
			to.add(powers[power], c)
		}
		c = coefficient(c, degree, k)
	}
	if most < degree/2 {
		odd.add(powers[most].times(highOdd), 1)
		even.add(powers[most].times(highEven), 1)
	}
	return odd, even
}

// dual is a matrix and the slope of it along a direction, if that is wanted: of functions of the matrix they are what is
// on and above the diagonal of the function of a matrix of twice the size, which has two of the matrix on its diagonal
// and the slope above.
type dual struct{ value, slope *Matrix }

// dual returns what a matrix has on and above its diagonal if it is of that form, and the matrix itself otherwise.
func (m *Matrix) dual() (d dual, is bool) {
	n := m.Rows / 2
	if m.Rows%2 != 0 || n <= Small {
		return dual{value: m}, false
	}
	for i := range n {
		low := m.row(n + i)
		if !slices.Equal(low[n:], m.row(i)[:n]) || slices.ContainsFunc(low[:n], func(v float64) bool { return v != 0 }) {
			return dual{value: m}, false
		}
	}
	d = dual{m.room.New(n, n), m.room.New(n, n)}
	for i := range n {
		copy(d.value.row(i), m.row(i))
		copy(d.slope.row(i), m.row(i)[n:])
	}
	return d, true
}

// matrix is the reverse of Matrix.dual.
func (d dual) matrix() *Matrix {
	if d.slope == nil {
		return d.value
	}
	n := d.value.Rows
	m := d.value.room.New(2*n, 2*n)
	for i := range n {
		copy(m.row(i), d.value.row(i))
		copy(m.row(i)[n:], d.slope.row(i))
		copy(m.row(n + i)[n:], d.value.row(i))
	}
	return m
}

// zeros returns one of the same form.
func (d dual) zeros() (z dual) {
	z.value = d.value.room.New(d.value.Rows, d.value.Cols)
	if d.slope != nil {
		z.slope = d.value.room.New(d.value.Rows, d.value.Cols)
	}
	return z
}

// add adds f·x.
func (d dual) add(x dual, f float64) {
	d.value.add(x.value, f)
	if d.slope != nil {
		d.slope.add(x.slope, f)
	}
}

// times returns the product.
func (d dual) times(x dual) (p dual) {
	p.value = Product(d.value, x.value)
	if d.slope != nil {
		p.slope = Product(d.value, x.slope)
		p.slope.add(Product(d.slope, x.value), 1)
	}
	return p
}
