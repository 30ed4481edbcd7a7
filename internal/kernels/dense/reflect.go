package dense

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// reflections is a product of at most block reflections I - tau·v·vᵀ as I - V·T·Vᵀ.
type reflections struct {
	from  int       // the first row that they change; reflection k leaves from+k-1 and those before it
	v     []float64 // rows of block elements: a column is a vector
	t     []float64 // as v; a row for each reflection
	count int
}

// newReflections has room for so many reflections, at most block, of the rows from a first one on.
func newReflections(room *Room, from, rows, most int) *reflections {
	return &reflections{from: from, v: room.zeros((rows - from) * block), t: room.zeros(most * block)}
}

// add adds a reflection by its vector, from its own row on; the first element is 1.
func (r *reflections) add(v []float64, tau float64) {
	for i, x := range v {
		r.v[(r.count+i)*block+r.count] = x
	}
	r.t[r.count*block+r.count] = tau
	r.count++
}

// take takes the columns that v has as vectors of reflections, by their factors.
func (r *reflections) take(tau []float64) {
	r.count = len(tau)
	for j, f := range tau {
		r.t[j*block+j] = f
	}
	r.finish()
}

// finish makes the triangle T.
func (r *reflections) finish() {
	var products [block * block]float64
	rows := len(r.v) / block
	subtract(products[:], block, r.count, r.count, r.v, 1, block, r.v, block, rows)
	for j := range r.count {
		tau := r.t[j*block+j]
		for i := range j {
			var sum float64
			for l := i; l < j; l++ {
				sum += r.t[i*block+l] * products[l*block+j]
			}
			r.t[i*block+j] = tau * sum
		}
	}
}

// apply makes columns of x, from one on that is a multiple of block, the product with them, of the
// reflections in the other order if transposed.
func (r *reflections) apply(x *Matrix, col int, transposed bool) {
	n, rows := x.Cols-col, len(r.v)/block
	if n <= 0 || r.count == 0 {
		return
	}
	down, along := block, 1
	if transposed {
		down, along = 1, block
	}
	x.strips(n, rows*n*r.count, func(lo, hi int) {
		n := hi - lo
		var first, second [block * strip]float64
		part := x.at(r.from, col+lo)
		subtract(first[:], strip, r.count, n, r.v, 1, block, part, x.Stride, rows)
		subtract(second[:], strip, r.count, n, r.t, down, along, first[:], strip, r.count)
		subtract(part, x.Stride, rows, n, r.v, block, 1, second[:], strip, r.count)
	})
}

// reflection makes x the vector, whose first element is 1, of a reflection that maps x to a multiple of
// the first unit vector, beta. Where x is one already tau is 0.
func reflection(x []float64) (beta, tau float64) {
	var most float64
	for _, v := range x[1:] {
		most = max(most, math.Abs(v))
	}
	alpha := x[0]
	x[0] = 1
	if most == 0 {
		return alpha, 0
	}
	scale := 1.0
	if most = max(most, math.Abs(alpha)); most < 1e-100 || most > 1e100 {
		_, e := math.Frexp(most)
		scale = math.Ldexp(1, -min(max(e, -1000), 1000))
	}
	sums := [4]float64{alpha * scale * (alpha * scale)}
	for i, v := range x[1:] {
		sums[i%4] += v * scale * (v * scale)
	}
	beta = math.Sqrt(sums[0]+sums[1]+sums[2]+sums[3]) / scale
	if alpha > 0 {
		beta = -beta
	}
	for i := range x[1:] {
		x[1+i] /= alpha - beta
	}
	return beta, (beta - alpha) / beta
}

// QR makes m its factor R and, below its diagonal, the vectors of the reflections whose product is Q,
// and tau their factors. The columns of a block are treated as rows, whose elements adjoin.
func QR(m *Matrix, tau []float64) {
	stride := start(m.Rows + block - 1)
	room := m.room.zeros(2 * block * stride)
	columns, vectors := room[:block*stride], room[block*stride:]
	r := newReflections(m.room, 0, m.Rows, block)
	for j0 := 0; j0 < len(tau); j0 += block {
		rows := m.Rows - j0
		clear(room)
		gemm.Transpose(columns, stride, m.at(j0, j0), m.Stride, rows, block)
		taus := tau[j0:min(j0+block, len(tau))]
		reflectColumns(columns, vectors, stride, rows, taus)
		gemm.Transpose(m.at(j0, j0), m.Stride, columns, stride, block, rows)
		r.from, r.v = j0, r.v[:rows*block]
		gemm.Transpose(r.v, block, vectors, stride, len(taus), rows)
		r.take(taus)
		r.apply(m, j0+block, true)
	}
}

// reflectColumns is QR of a block of columns, which are rows stride apart. It leaves the vectors of the
// reflections in rows of zeros, too.
func reflectColumns(columns, vectors []float64, stride, rows int, tau []float64) {
	for k := range tau {
		x, v := columns[k*stride:][:rows], vectors[k*stride:][:stride]
		copy(v[k:], x[k:])
		x[k], tau[k] = unitReflection(v, k, rows)
		copy(x[k+1:], v[k+1:])
		rest := block - k - 1
		if rest == 0 {
			break
		}
		var along [block]float64
		others := columns[(k+1)*stride:]
		dots(along[:rest], others, stride, v, rows)
		for i := range along {
			along[i] *= tau[k]
		}
		subtract(others, stride, rest, rows, along[:], 1, 1, v, stride, 1)
	}
}

// unitReflection is reflectionAt with a vector whose first element that counts is 1.
func unitReflection(x []float64, at, n int) (beta, tau float64) {
	alpha := x[at]
	beta, tau = reflectionAt(x, at, n)
	if tau != 0 {
		f := 1 / x[at]
		for i := range x[at:n] {
			x[at+i] *= f
		}
		tau = (beta - alpha) / beta
	}
	x[at] = 1
	return beta, tau
}

// reflectionsOf returns the reflections of the columns of m from one on, a multiple of block.
func reflectionsOf(m *Matrix, tau []float64, j0 int) *reflections {
	taus := tau[j0:min(j0+block, len(tau))]
	r := newReflections(m.room, j0, m.Rows, len(taus))
	for i := range m.Rows - j0 {
		to := r.v[i*block:][:len(taus)]
		if i >= len(taus) {
			copy(to, m.at(j0+i, j0))
			continue
		}
		copy(to[:i], m.at(j0+i, j0))
		to[i] = 1
	}
	r.take(taus)
	return r
}

// Q returns the first columns of the product of the reflections that QR leaves, or others of that form.
func Q(m *Matrix, tau []float64, cols int) *Matrix {
	q := m.room.identity(m.Rows, cols)
	for j0 := (len(tau) - 1) / block * block; j0 >= 0 && len(tau) > 0; j0 -= block {
		reflectionsOf(m, tau, j0).apply(q, j0, false)
	}
	return q
}

// MultiplyQ makes x the product of Q, transposed or not, with x.
func MultiplyQ(m *Matrix, tau []float64, x *Matrix, transposed bool) {
	blocks := (len(tau) + block - 1) / block
	for i := range blocks {
		if !transposed {
			i = blocks - 1 - i
		}
		reflectionsOf(m, tau, i*block).apply(x, 0, transposed)
	}
}
