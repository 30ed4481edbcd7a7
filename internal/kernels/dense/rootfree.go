package dense

import "math"

// rootFreeQL finds the eigenvalues of a matrix of three diagonals, d and e, which d becomes, and changes e.
// It is the QL algorithm on the squares of e, which takes no roots but for shifts.
func rootFreeQL(d, e []float64) bool {
	n := len(d)
	for i, v := range e {
		e[i] = v * v
	}
	for l := 0; l < n; {
		m := l
		for m < n-1 && !apart(e[m], d[m], d[m+1]) {
			m++
		}
		for step := 0; m > l+1; step++ {
			if step == maxSteps {
				return false
			}
			m = rootFreeStep(d, e, l, m)
		}
		if m == l {
			l++
			continue
		}
		if d[l], d[m] = pair(d[l], e[l], d[m]); math.IsNaN(d[l] + d[m]) {
			return false
		}
		l += 2
	}
	return true
}

// apart reports whether the square of an element beside x and y on the diagonal is taken for 0.
func apart(square, x, y float64) bool {
	size := epsilon * (math.Abs(x) + math.Abs(y))
	return square <= size*size || square <= negligible*negligible
}

// pair returns the eigenvalues of the matrix of a and c with the root of square beside them.
func pair(a, square, c float64) (x, y float64) {
	half := (a - c) / 2
	r := math.Sqrt(half*half + square)
	if a+c < 0 {
		r = -r
	}
	// The one of greater size is exact to its last digits, and the product of both is the determinant.
	x = (a+c)/2 + r
	if x == 0 {
		return 0, 0
	}
	return x, a/x*c - square/x
}

// least is the least number that rootFreeStep divides by.
const least = 0x1p-960

// rootFreeStep is one step of the algorithm on rows l to m. It returns the first row that is then apart
// from the next, or m.
func rootFreeStep(d, squares []float64, l, m int) int {
	e := math.Sqrt(squares[l])
	half := (d[l+1] - d[l]) / (2 * e)
	shift := d[l] - e/(half+math.Copysign(math.Sqrt(half*half+1), half))
	c, s, gamma := 1.0, 0.0, d[m]-shift
	p, last := gamma*gamma, m
	var after float64 // what d[i+2] has become
	for i := m - 1; i >= l; i-- {
		// The next p takes one division's time, since it does not wait for c and s.
		b, alpha := squares[i], d[i]
		r := p + b
		f, inverse := 1/r, r/p
		next := math.FMA(p, alpha-shift, -b*gamma) * f
		became := gamma + (alpha - next)
		if d[i+1] = became; i < m-1 {
			beside := s * r
			if squares[i+1] = beside; apart(beside, became, after) {
				last = i + 1
			}
		}
		after, gamma = became, next
		if s = b * f; p > least {
			c, p = p*f, next*next*inverse
		} else {
			c, p = 0, c*b
		}
	}
	squares[l], d[l] = s*p, shift+gamma
	if apart(s*p, d[l], after) {
		return l
	}
	return last
}
