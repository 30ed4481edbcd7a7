package dense

import (
	"cmp"
	"math"
	"slices"
)

// panel is at most block rows, and the same numbers as columns.
type panel struct {
	rows    *Matrix
	columns []float64 // rows of block elements
}

// newPanel has room for so many rows of n elements.
func newPanel(room *Room, n, rows int) *panel {
	return &panel{room.New(rows, n), room.zeros(n * block)}
}

// clear makes all zeros.
func (p *panel) clear() {
	clear(p.rows.Data)
	clear(p.columns)
}

// row returns row k, all of whose elements are set before it is put.
func (p *panel) row(k int) []float64 { return p.rows.Data[k*p.rows.Stride:][:p.rows.Stride] }

// put notes row k, which begins with an element, among the columns.
func (p *panel) put(k, from int) {
	row := p.row(k)
	clear(row[:from])
	for i := range p.rows.Cols {
		p.columns[i*block+k] = row[i]
	}
}

// products returns, with the sign changed, the products of all rows with v, which begins with an element.
func (p *panel) products(v []float64, from int) (w [block]float64) {
	subtract(w[:], block, 1, block, v, 1, 1, p.columns[from*block:], block, len(v))
	return w
}

// take subtracts from to, which begins with an element, the product of so many factors with the rows.
func (p *panel) take(to []float64, from, cols int, factors []float64, step, k int) {
	subtract(to, 0, 1, cols, factors, 1, step, p.rows.at(0, from), p.rows.Stride, k)
}

// start returns where whole tiles begin that have element i.
func start(i int) int { return i &^ (block - 1) }

// scaled divides m by a power of two, which it returns, if squares of its elements might not be numbers of
// full precision.
func (m *Matrix) scaled() (e int) {
	if s := squares(m.Data); s > 1e-150 && s < 1e150 {
		return 0
	}
	return normalized(m.Data)
}

// squares returns the sum of the squares of numbers; there are whole blocks of lanes.
func squares(x []float64) float64 {
	var sum [1]float64
	dots(sum[:], x, len(x), x, len(x))
	return sum[0]
}

// normalized divides numbers by a power of two, which it returns, so that the greatest are about 1.
func normalized(lists ...[]float64) (e int) {
	var most float64
	for _, x := range lists {
		for _, v := range x {
			if v = math.Abs(v); !(v <= most) { // NaN, too
				most = v
			}
		}
	}
	if most == 0 || math.IsNaN(most) || math.IsInf(most, 0) {
		return 0
	}
	_, e = math.Frexp(most)
	e = min(max(e, -1000), 1000) // so that the power of two is a number
	f := math.Ldexp(1, -e)
	for _, x := range lists {
		for i := range x {
			x[i] *= f
		}
	}
	return e
}

// Symmetric returns the eigenvalues of a symmetric matrix, which it changes, in order, and in the columns
// of v, if they are wanted, their vectors. It reports whether it found them.
func Symmetric(a *Matrix, vectors bool) (values []float64, v *Matrix, ok bool) {
	if a.Rows == 0 {
		return nil, a.room.New(0, 0), true
	}
	e := a.scaled()
	d, off, all := tridiagonal(a, vectors)
	e += normalized(d, off)
	switch {
	case !vectors:
		ok = rootFreeQL(d, off)
		slices.Sort(d)
		values = d
	case a.Rows <= leaf:
		v = a.room.accumulated(all, a.Rows, a.Rows)
		ok = v.implicitQL(d, off)
		values, v = ordered(d, v, cmp.Compare[float64])
		v = v.Transposed()
	default:
		if values, v, ok = byHalves(a.room, d, off); ok {
			v = v.Transposed()
			for i := len(all) - 1; i >= 0; i-- {
				all[i].apply(v, 0, false)
			}
		}
	}
	if !ok {
		return nil, nil, false
	}
	for i := range values {
		values[i] = math.Ldexp(values[i], e)
	}
	return values, v, true
}

// ordered returns numbers in an order, and the rows of a matrix with them.
func ordered(d []float64, v *Matrix, compare func(x, y float64) int) ([]float64, *Matrix) {
	order, values := make([]int, len(d)), make([]float64, len(d))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(d[i], d[j]) })
	for i, k := range order {
		values[i] = d[k]
	}
	return values, v.permuted(order)
}

// permuted returns rows in an order, then those that the order does not name; nil for nil.
func (m *Matrix) permuted(order []int) *Matrix {
	if m == nil {
		return nil
	}
	to := m.room.New(m.Rows, m.Cols)
	for i := range m.Rows {
		k := i
		if i < len(order) {
			k = order[i]
		}
		copy(to.row(i), m.row(k))
	}
	return to
}

// blockTridiagonal is tridiagonal, whose reflections it returns always.
func blockTridiagonal(a *Matrix) (d, e []float64, all []*reflections) {
	n := a.Rows
	d, e = a.room.zeros(n), a.room.zeros(max(n-1, 0))
	most := max(min(block, n-1), 0)
	v, w := newPanel(a.room, n, most), newPanel(a.room, n, most)
	for j0 := 0; j0 < n-1; j0 += block {
		end := min(j0+block, n-1)
		r := newReflections(a.room, j0+1, n, end-j0)
		v.clear()
		w.clear()
		for j := j0; j < end; j++ {
			k, c := j-j0, start(j)
			v.take(a.at(j, c), c, n-c, w.rows.Data[j:], w.rows.Stride, k)
			w.take(a.at(j, c), c, n-c, v.rows.Data[j:], v.rows.Stride, k)
			d[j] = a.at(j, j)[0]
			x := v.row(k)[j+1 : n]
			copy(x, a.row(j)[j+1:])
			var tau float64
			e[j], tau = reflection(x)
			r.add(x, tau)
			v.put(k, j+1)
			// w is tau·(A·x), then less its part along x.
			c = start(j + 1)
			y := w.row(k)
			a.timesUpper(y, v.row(k), c)
			for i, f := range y[c:] {
				y[c+i] = -f
			}
			alongW, alongV := w.products(x, j+1), v.products(x, j+1)
			v.take(y[c:], c, n-c, alongW[:], 1, k)
			w.take(y[c:], c, n-c, alongV[:], 1, k)
			var sums [4]float64
			for i, f := range x {
				y[j+1+i] *= -tau
				sums[i%4] += f * y[j+1+i]
			}
			half := -tau / 2 * (sums[0] + sums[1] + sums[2] + sums[3])
			for i, f := range x {
				y[j+1+i] += half * f
			}
			w.put(k, j+1)
		}
		r.finish()
		all = append(all, r)
		for i := end; i < n; i += block { // what is left of the diagonal is not read
			c, rows := start(i), min(block, n-i)
			subtract(a.at(i, c), a.Stride, rows, n-c, v.rows.Data[i:], 1, v.rows.Stride, w.rows.at(0, c), w.rows.Stride, end-j0)
			subtract(a.at(i, c), a.Stride, rows, n-c, w.rows.Data[i:], 1, w.rows.Stride, v.rows.at(0, c), v.rows.Stride, end-j0)
		}
	}
	if n > 0 {
		d[n-1] = a.at(n-1, n-1)[0]
	}
	return d, e, all
}

// Steps of an iteration for one value, and what is taken for 0 where the matrix is of about 1.
const (
	maxSteps   = 60
	epsilon    = 0x1p-53
	negligible = epsilon * epsilon
)

// turn returns the cosine and the sine of the angle that takes (x, y) to (r, 0).
func turn(x, y float64) (c, s, r float64) {
	if y == 0 {
		return 1, 0, x
	}
	r = math.Sqrt(x*x + y*y)
	if r < 1e-140 { // the squares are no numbers of full precision
		r = math.Hypot(x, y)
		return x / r, y / r, r
	}
	f := 1 / r
	return x * f, y * f, r
}

// implicitQL is the function of this name with the rows of v as what becomes the vectors.
func (v *Matrix) implicitQL(d, e []float64) bool {
	n := len(d)
	cosines, sines := v.room.zeros(n), v.room.zeros(n)
	return implicitQL(d, e, cosines, sines, func(first, count int) { v.rotate(first, true, cosines[:count], sines) })
}

// implicitQL finds the eigenvalues of a matrix of three diagonals, d and e, which d becomes. It calls
// rotate in each of its steps, which turns a row of what becomes the vectors and the one before it, then that
// one and the one before, and so on, by a count of angles, the first of cosines and sines.
func implicitQL(d, e, cosines, sines []float64, rotate func(first, count int)) bool {
	n := len(d)
	for l := range n {
		for step := 0; ; step++ {
			m := l
			for ; m < n-1; m++ {
				if size := math.Abs(e[m]); size <= epsilon*(math.Abs(d[m])+math.Abs(d[m+1])) || size <= negligible {
					e[m] = 0
					break
				}
			}
			if m == l {
				break
			}
			if step == maxSteps {
				return false
			}
			// The eigenvalue of the first two rows that is nearer to d[l] is the shift.
			half := (d[l+1] - d[l]) / (2 * e[l])
			g := d[m] - d[l] + e[l]/(half+math.Copysign(math.Hypot(half, 1), half))
			c, s, below := 1.0, 1.0, 0.0
			for i := m - 1; i >= l; i-- {
				f, b := s*e[i], c*e[i]
				var r float64
				c, s, r = turn(g, f)
				if i < m-1 {
					e[i+1] = r
				}
				cosines[m-1-i], sines[m-1-i] = c, s
				g = d[i+1] - below
				r = (d[i]-g)*s + 2*c*b
				below = s * r
				d[i+1] = g + below
				g = c*r - b
			}
			d[l] -= below
			e[l] = g
			rotate(m, m-l)
		}
	}
	return true
}
