package dense

import "math"

// SingularOfSingles is Singular of a matrix whose elements are of float32's precision. Its values are the
// roots of the eigenvalues of aᵀ·a, which float64 has to within its rounding of the greatest: an error of
// 1e-8 of the greatest singular value, a fifth of what float32 rounds by.
func SingularOfSingles(a *Matrix, vectors, full bool) (values []float64, u, v *Matrix, ok bool) {
	if a.Rows < a.Cols {
		values, v, u, ok = SingularOfSingles(a.Transposed(), vectors, full)
		return values, u, v, ok
	}
	if s := squares(a.Data); !(s < 1e100) || a.Cols == 1 { // elements that are not finite are Singular's
		return Singular(a, vectors, full)
	}
	values, v, ok = Symmetric(a.minusGram(), vectors)
	if !ok {
		return nil, nil, nil, false
	}
	for i, x := range values { // the least of -aᵀ·a is the greatest
		values[i] = math.Sqrt(max(-x, 0))
	}
	if vectors {
		v = v.Transposed()
		u = a.leftVectors(values, v, full)
	}
	return values, u, v, true
}

// minusGram returns -mᵀ·m.
func (m *Matrix) minusGram() *Matrix {
	g := m.room.New(m.Cols, m.Cols)
	for i := 0; i < g.Rows; i += block {
		rows := min(block, g.Rows-i)
		subtract(g.at(i, i), g.Stride, rows, g.Cols-i, m.at(0, i), 1, m.Stride, m.at(0, i), m.Stride, m.Rows)
	}
	g.Mirror(true)
	return g
}

// farValues is how many times the least singular value the greatest may be for the product of a matrix and
// its right vectors to be of orthogonal columns, to float32's precision.
const farValues = 1 << 12

// leftVectors returns the left singular vectors of m as rows, by its singular values and right vectors, the
// rows of v.
func (m *Matrix) leftVectors(values []float64, v *Matrix, full bool) *Matrix {
	k, t := len(values), m.Transposed()
	p := m.room.New(k, m.Rows)
	subtract(p.Data, p.Stride, k, m.Rows, v.Data, v.Stride, 1, t.Data, t.Stride, m.Cols)
	if values[0] <= farValues*values[k-1] && values[0] > 0 && (!full || k == m.Rows) {
		for i, x := range values {
			f := -1 / x
			for j, y := range p.row(i) {
				p.row(i)[j] = f * y
			}
		}
		return p
	}
	f, tau := p.Transposed(), m.room.zeros(k)
	QR(f, tau)
	cols := k
	if full {
		cols = m.Rows
	}
	u := Q(f, tau, cols).Transposed()
	for i := range k {
		if f.at(i, i)[0] > 0 { // the product is that with -m
			for j, y := range u.row(i) {
				u.row(i)[j] = -y
			}
		}
	}
	return u
}
