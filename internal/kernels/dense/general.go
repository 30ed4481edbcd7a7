package dense

import "math"

// General returns the eigenvalues of a square matrix, which it changes, as real and imaginary parts; pairs of
// conjugates are neighbours, the one with the positive part first. The rows of v, if they are wanted, are
// the vectors of length 1 of real ones, and for a pair the real and the imaginary part of the first's. It
// reports whether it found them. What is smaller than a part epsilon of its neighbours is taken for 0.
func General(a *Matrix, vectors bool, epsilon float64) (re, im []float64, v *Matrix, ok bool) {
	for i := range a.Rows {
		for _, x := range a.row(i) {
			if x-x != 0 {
				return nil, nil, nil, false
			}
		}
	}
	e := a.scaled()
	b := balance(a)
	var z *Matrix
	if a.Rows <= Small {
		z = smallHessenberg(a, vectors)
	} else if all := hessenberg(a); vectors {
		z = a.room.accumulated(all, a.Rows, a.Rows)
	}
	s := newSchur(a, z)
	if !s.run(epsilon) {
		return nil, nil, nil, false
	}
	if vectors {
		v = s.vectors()
		for i := range a.Rows {
			b.undo(v.row(i))
		}
		for i := 0; i < a.Rows; i++ {
			if s.im[i] == 0 {
				normalize(v.row(i), nil)
			} else {
				normalize(v.row(i), v.row(i+1))
				i++
			}
		}
	}
	for i := range s.re {
		s.re[i], s.im[i] = math.Ldexp(s.re[i], e), math.Ldexp(s.im[i], e)
	}
	return s.re, s.im, v, true
}

// normalize makes the length of a vector, whose imaginary part is y if that is not nil, 1, and the greatest
// element of one that is not real a real number.
func normalize(x, y []float64) {
	var most float64
	for _, p := range [2][]float64{x, y} {
		for _, v := range p {
			most = max(most, math.Abs(v))
		}
	}
	if most == 0 {
		return
	}
	var sum, greatest float64
	at, c, s := 0, 1.0, 0.0
	for i := range x {
		x[i] /= most
		square := x[i] * x[i]
		if y != nil {
			y[i] /= most
			if square += y[i] * y[i]; square > greatest {
				r := math.Sqrt(square)
				greatest, at, c, s = square, i, x[i]/r, y[i]/r
			}
		}
		sum += square
	}
	f := 1 / math.Sqrt(sum)
	for i := range x {
		if y == nil {
			x[i] *= f
			continue
		}
		x[i], y[i] = f*(c*x[i]+s*y[i]), f*(c*y[i]-s*x[i])
	}
	if y != nil {
		y[at] = 0
	}
}

// Elements of vectors above this make their column smaller; less than the other is no quotient.
const (
	tooLarge = 0x1p300
	tooSmall = 0x1p-300
)

// vectors returns, as rows, the eigenvectors of the triangle that h is now, multiplied by the rows of z.
func (s *schur) vectors() *Matrix {
	n, t := s.h.Rows, s.h
	x := t.room.identity(n, n)
	for j := range n {
		if s.im[j] > 0 {
			// The vector of its rows is (1, i·im/b) or (-im/c, i) for the block with b and c beside the diagonal.
			if b, c := t.at(j, j+1)[0], t.at(j+1, j)[0]; math.Abs(b) >= math.Abs(c) {
				x.at(j+1, j+1)[0] = s.im[j] / b
			} else {
				x.at(j, j)[0] = -s.im[j] / c
			}
		}
	}
	for end := n; end > 0; {
		first := max(end-block, 0)
		if s.im[first] < 0 { // the second of a pair
			first++
		}
		if c := start(end); end < n {
			subtract(x.at(first, c), x.Stride, end-first, n-c, t.at(first, end), t.Stride, 1, x.at(end, c), x.Stride, n-end)
		}
		for i := end - 1; i >= first; i-- {
			top, c := i, start(i+1)
			if s.im[i] < 0 {
				top--
			}
			if i+1 < end {
				subtract(x.at(top, c), x.Stride, i+1-top, n-c, t.at(top, i+1), t.Stride, 1, x.at(i+1, c), x.Stride, end-i-1)
			}
			s.divide(x, top, i, first)
			i = top
		}
		end = first
	}
	v := t.room.New(n, n)
	for j := 0; j < n; j += block {
		rows := min(block, n-j)
		subtract(v.at(j, 0), v.Stride, rows, n, x.Data[j:], 1, x.Stride, s.z.Data, s.z.Stride, min(j+block+1, n))
	}
	for i, f := range v.Data {
		v.Data[i] = 0 - f
	}
	return v
}

// divide makes what is known of rows top to i of x, one or those of a pair, elements of the vectors of the
// values behind them. first is the first row that has some of their sums.
func (s *schur) divide(x *Matrix, top, i, first int) {
	n := s.h.Rows
	for j := i + 1; j < n; j++ {
		width := 1
		if s.im[j] > 0 {
			width = 2
		}
		least := max(epsilon*(math.Abs(s.re[j])+math.Abs(s.im[j])), tooSmall)
		var most float64
		switch lower := x.at(i, j); {
		case top == i && width == 1:
			d := s.h.at(i, i)[0] - s.re[j]
			if math.Abs(d) < least {
				d = least
			}
			lower[0] /= d
			most = math.Abs(lower[0])
		case top == i:
			d, w := s.h.at(i, i)[0]-s.re[j], s.im[j]
			re, im := quotient(lower[0], lower[1], d, -w, least)
			lower[0], lower[1] = re, im
			most = max(math.Abs(re), math.Abs(im))
		default:
			most = s.divideTwo(x.at(top, j)[:width], lower[:width], top, j, least)
		}
		if most > tooLarge {
			for k := first; k <= min(j+1, n-1); k++ {
				for l := range width {
					x.at(k, j+l)[0] /= tooLarge
				}
			}
		}
		j += width - 1
	}
}

// divideTwo solves for two elements that belong to the rows of a pair, real ones or complex ones of two
// numbers, and returns the size of the greatest.
func (s *schur) divideTwo(upper, lower []float64, top, j int, least float64) (most float64) {
	a, b, c, _ := s.corner(top)
	d := a - s.re[j]
	if len(upper) == 1 {
		det := d*d - b*c // b and c have different signs
		det = max(det, least*least)
		upper[0], lower[0] = (d*upper[0]-b*lower[0])/det, (d*lower[0]-c*upper[0])/det
		return max(math.Abs(upper[0]), math.Abs(lower[0]))
	}
	w := -s.im[j]
	re, im := d*d-w*w-b*c, 2*d*w
	floor := least * max(math.Abs(b), math.Abs(c))
	x0, x1 := d*upper[0]-w*upper[1]-b*lower[0], d*upper[1]+w*upper[0]-b*lower[1]
	y0, y1 := d*lower[0]-w*lower[1]-c*upper[0], d*lower[1]+w*lower[0]-c*upper[1]
	upper[0], upper[1] = quotient(x0, x1, re, im, floor)
	lower[0], lower[1] = quotient(y0, y1, re, im, floor)
	return max(math.Abs(upper[0]), math.Abs(upper[1]), math.Abs(lower[0]), math.Abs(lower[1]))
}

// quotient is (x + iy) / (c + is), or by least if the divisor is less.
func quotient(x, y, c, s, least float64) (re, im float64) {
	square := c*c + s*s
	if square < least*least {
		return x / least, y / least
	}
	f := 1 / square
	return (x*c + y*s) * f, (y*c - x*s) * f
}
