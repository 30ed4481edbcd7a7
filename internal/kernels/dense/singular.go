package dense

import (
	"cmp"
	"math"
)

// Singular returns the singular values of a matrix, which it changes, the greatest first, and, if they
// are wanted, in the rows of u and v the vectors of the left and of the right: all that there are in
// their spaces if full, else as many as there are values. It reports whether it found them.
func Singular(a *Matrix, vectors, full bool) (values []float64, u, v *Matrix, ok bool) {
	if a.Rows < a.Cols {
		values, v, u, ok = Singular(a.Transposed(), vectors, full)
		return values, u, v, ok
	}
	e := a.scaled()
	d, off, left, right := bidiagonal(a, vectors)
	e += normalized(d, off)
	if vectors {
		cols := a.Cols
		if full {
			cols = a.Rows
		}
		u, v = a.room.accumulated(left, a.Rows, cols), a.room.accumulated(right, a.Cols, a.Cols)
	}
	if vectors {
		ok = implicitQR(d, off, u, v)
	} else {
		ok = differentialQD(a.room, d, off)
	}
	if !ok {
		return nil, nil, nil, false
	}
	for i, x := range d {
		if d[i] = math.Abs(x); x < 0 && v != nil {
			for j, y := range v.row(i) {
				v.row(i)[j] = -y
			}
		}
	}
	descending := func(x, y float64) int { return cmp.Compare(y, x) }
	values, v = ordered(d, v, descending)
	if vectors {
		_, u = ordered(d, u, descending)
	}
	for i := range values {
		values[i] = math.Ldexp(values[i], e)
	}
	return values, u, v, true
}

// accumulated returns, as rows, the first columns of the product of reflections over so many rows.
func (r *Room) accumulated(all []*reflections, rows, cols int) *Matrix {
	q := r.identity(rows, cols)
	for i := len(all) - 1; i >= 0; i-- {
		all[i].apply(q, start(all[i].from), false)
	}
	return q.Transposed()
}

// blockBidiagonal is bidiagonal, whose reflections it returns always.
func blockBidiagonal(a *Matrix) (d, e []float64, left, right []*reflections) {
	m, n := a.Rows, a.Cols
	d, e = a.room.zeros(n), a.room.zeros(max(n-1, 0))
	column := a.room.zeros(start(m + block - 1))
	// What is left of a is less v·y and x·u, of columns times rows.
	most := min(block, n)
	v, x, y, u := newPanel(a.room, m, most), newPanel(a.room, m, most), newPanel(a.room, n, most), newPanel(a.room, n, most)
	for j0 := 0; j0 < n; j0 += block {
		end := min(j0+block, n)
		for _, p := range []*panel{v, x, y, u} {
			p.clear()
		}
		l, r := newReflections(a.room, j0, m, end-j0), newReflections(a.room, min(j0+1, n), n, end-j0)
		for j := j0; j < end; j++ {
			k := j - j0
			for i := j; i < m; i++ {
				column[i] = a.at(i, j)[0]
			}
			c := start(j)
			v.take(column[c:], c, m-c, y.rows.Data[j:], y.rows.Stride, k)
			x.take(column[c:], c, m-c, u.rows.Data[j:], u.rows.Stride, k)
			to := v.row(k)[j:m]
			copy(to, column[j:])
			var tau float64
			d[j], tau = reflection(to)
			l.add(to, tau)
			v.put(k, j)
			if j == n-1 {
				break
			}
			c = start(j + 1)
			across := y.row(k)
			subtract(across[c:], 0, 1, n-c, to, 1, 1, a.at(j, c), a.Stride, m-j)
			alongV, alongX := v.products(to, j), x.products(to, j)
			y.take(across[c:], c, n-c, alongV[:], 1, k)
			u.take(across[c:], c, n-c, alongX[:], 1, k)
			for i := range across {
				across[i] *= -tau
			}
			y.put(k, j+1)

			row := a.at(j, c)
			y.take(row, c, n-c, v.rows.Data[j:], v.rows.Stride, k+1)
			u.take(row, c, n-c, x.rows.Data[j:], x.rows.Stride, k)
			to = u.row(k)[j+1 : n]
			copy(to, a.row(j)[j+1:])
			e[j], tau = reflection(to)
			r.add(to, tau)
			u.put(k, j+1)
			down := x.row(k)
			dots(down[j+1:m], a.at(j+1, c), a.Stride, u.row(k)[c:], n-c)
			alongY, alongU := y.products(to, j+1), u.products(to, j+1)
			c = start(j + 1)
			for i := range down {
				down[i] = -down[i]
			}
			v.take(down[c:], c, m-c, alongY[:], 1, k+1)
			x.take(down[c:], c, m-c, alongU[:], 1, k)
			for i := range down {
				down[i] *= -tau
			}
			x.put(k, j+1)
		}
		l.finish()
		left = append(left, l)
		if r.count > 0 {
			r.finish()
			right = append(right, r)
		}
		if end < n {
			subtract(a.at(end, end), a.Stride, m-end, n-end, v.rows.Data[end:], 1, v.rows.Stride, y.rows.at(0, end), y.rows.Stride, end-j0)
			subtract(a.at(end, end), a.Stride, m-end, n-end, x.rows.Data[end:], 1, x.rows.Stride, u.rows.at(0, end), u.rows.Stride, end-j0)
		}
	}
	return d, e, left, right
}

// iteration is the state of implicitQR.
type iteration struct {
	d, e        []float64
	left, right *rotations // of the rows of u, and of v
}

// implicitQR finds the singular values of a matrix of two diagonals, d and the e above it, which d
// becomes but for signs, and turns the rows of u and v to their vectors.
func implicitQR(d, e []float64, u, v *Matrix) bool {
	it := iteration{d, e, newRotations(u), newRotations(v)}
	steps := 0
	for hi := len(d) - 1; hi > 0; {
		lo := hi
		for ; lo > 0; lo-- {
			if size := math.Abs(e[lo-1]); size <= epsilon*(math.Abs(d[lo-1])+math.Abs(d[lo])) || size <= negligible {
				e[lo-1] = 0
				break
			}
		}
		if lo == hi {
			hi--
			steps = 0
			continue
		}
		if steps++; steps > maxSteps {
			return false
		}
		if !it.removeZero(lo, hi) {
			it.step(lo, hi)
		}
	}
	it.left.finish()
	it.right.finish()
	return true
}

// removeZero makes e zero beside an element of d that is, if there is one.
func (it *iteration) removeZero(lo, hi int) bool {
	d, e := it.d, it.e
	for i := lo; i <= hi; i++ {
		if math.Abs(d[i]) > negligible {
			continue
		}
		d[i] = 0
		if i < hi { // the row is zero but for e: it is turned with those below
			f := e[i]
			e[i] = 0
			it.left.finish()
			for j := i + 1; j <= hi && f != 0; j++ {
				var c, s float64
				c, s, d[j] = turn(d[j], f)
				if j < hi {
					f, e[j] = -s*e[j], c*e[j]
				}
				it.left.m.turnRows(j, i, c, s)
			}
			return true
		}
		f := e[hi-1]
		e[hi-1] = 0
		it.right.finish()
		for j := hi - 1; j >= lo && f != 0; j-- {
			var c, s float64
			c, s, d[j] = turn(d[j], f)
			if j > lo {
				f, e[j-1] = -s*e[j-1], c*e[j-1]
			}
			it.right.m.turnRows(j, hi, c, s)
		}
		return true
	}
	return false
}

// turnRows makes two rows c·x+s·y and c·y-s·x.
func (m *Matrix) turnRows(i, j int, c, s float64) {
	x, y := m.row(i), m.row(j)
	for k, v := range x {
		x[k], y[k] = math.FMA(c, v, s*y[k]), math.FMA(c, y[k], -s*v)
	}
}

// shift is the smaller singular value of the triangle f, g over h.
func shift(f, g, h float64) float64 {
	f, g, h = math.Abs(f), math.Abs(g), math.Abs(h)
	small, great := min(f, h), max(f, h)
	if small == 0 {
		return 0
	}
	// The values are those whose product is f·h and the sum of whose squares is f²+g²+h².
	sum := math.Sqrt((great+small)*(great+small)+g*g) + math.Sqrt((great-small)*(great-small)+g*g)
	return 2 * small * (great / sum)
}

// step is one step of the QR algorithm on rows lo to hi.
func (it *iteration) step(lo, hi int) {
	d, e := it.d, it.e
	by := shift(d[hi-1], e[hi-1], d[hi])
	f, g := (math.Abs(d[lo])-by)*(math.Copysign(1, d[lo])+by/d[lo]), e[lo]
	rightC, rightS := it.right.sweep(lo, hi-lo)
	leftC, leftS := it.left.sweep(lo, hi-lo)
	for k := lo; k < hi; k++ {
		c, s, r := turn(f, g)
		if k > lo {
			e[k-1] = r
		}
		rightC[k-lo], rightS[k-lo] = c, s
		f, e[k] = c*d[k]+s*e[k], c*e[k]-s*d[k]
		g, d[k+1] = s*d[k+1], c*d[k+1]
		c, s, d[k] = turn(f, g)
		leftC[k-lo], leftS[k-lo] = c, s
		f, d[k+1] = c*e[k]+s*d[k+1], c*d[k+1]-s*e[k]
		if k < hi-1 {
			g, e[k+1] = s*e[k+1], c*e[k+1]
		}
	}
	e[hi-1] = f
}
