package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/internal/strided"
	"github.com/loris-ml/loris/ir"
)

func init() { lowerings[ir.OpMatMul] = matmul }

// batch is a batch of products of matrices: the views of its operands are
// [batch..., m, k] and [batch..., k, n].
type batch struct {
	x, y    value
	dims    []int // of the batch
	m, n, k int
}

// batchOf sees a vector as a row on the left and a column on the right.
func batchOf(x, y value) *batch {
	x, y = x.asMatrix(true), y.asMatrix(false)
	b := &batch{m: x.shape.Dim(-2), n: y.shape.Dim(-1), k: x.shape.Dim(-1)}
	all, _ := ir.BroadcastDims(leading(x), leading(y)) // Infer has checked that they do
	b.dims = all.Dims()
	b.x, b.y = x.spread(b.dims), y.spread(b.dims)
	b.fold()
	return b
}

// fold makes rows of the innermost dimensions of the batch along which the right
// operand stays, as in a layer and in heads that share keys, as far as the rows of the
// left one are evenly spaced then.
func (b *batch) fold() {
	for r := len(b.dims); r > 0; r = len(b.dims) {
		n, step, row := b.dims[r-1], b.x.view.Strides[r-1], b.x.view.Strides[r]
		even := step == b.m*row
		if b.m == 1 {
			even, row = step >= b.k, step
		}
		switch {
		case n == 1:
			row = b.x.view.Strides[r]
		case !even || b.y.view.Strides[r-1] != 0:
			return
		}
		b.dims = b.dims[:r-1]
		b.m *= n
		b.x = b.x.matrices(b.dims, b.m, b.k, row, b.x.view.Strides[r+1])
		b.y = b.y.matrices(b.dims, b.k, b.n, b.y.view.Strides[r], b.y.view.Strides[r+1])
	}
}

// matrices returns the value with other matrices in the first dimensions of its batch.
func (v value) matrices(lead []int, rows, cols, row, col int) value {
	r := len(lead)
	view := strided.View{Offset: v.view.Offset, Rank: r + 2}
	copy(view.Dims[:], append(slices.Clone(lead), rows, cols))
	copy(view.Strides[:], append(slices.Clone(v.view.Strides[:r]), row, col))
	return v.as(v.shape.WithDims(view.Dims[:r+2]...), view)
}

// asMatrix gives a vector a second dimension, in front or behind.
func (v value) asMatrix(row bool) value {
	if v.view.Rank > 1 {
		return v
	}
	dims := []int{v.shape.Dim(0), 1}
	if row {
		slices.Reverse(dims)
	}
	view, _ := v.view.Reshape(dims) // one more dimension of size 1 is always possible
	return v.as(v.shape.WithDims(dims...), view)
}

func leading(v value) ir.Shape {
	dims := v.shape.Dims()
	return v.shape.WithDims(dims[:len(dims)-2]...)
}

// spread broadcasts the dimensions before the matrix.
func (v value) spread(lead []int) value {
	dims := append(slices.Clone(lead), v.shape.Dim(-2), v.shape.Dim(-1))
	return v.as(v.shape.WithDims(dims...), v.view.Expand(dims))
}

// matmul is the library's for the floats that it has, and a kernel for integers.
func matmul(c *call) {
	b := batchOf(c.in[0], c.in[1])
	s := c.outs[0]
	switch {
	case s.Numel() == 0:
		c.kernels(&emit.Plan{}, 1, c.result())
		return
	case b.k == 0:
		v := c.l.constant(ir.MakeShape(s.DType()), make([]byte, s.DType().Size()))
		c.copyTo(c.result(), v.as(s, v.view.Expand(s.Dims())))
		return
	case s.DType().IsFloat() && c.l.opt.Product != nil && c.libraryProduct(b):
		return
	}
	r := len(b.dims)
	g := emit.Product{
		DType: s.DType(), M: b.m, N: b.n, K: b.k, Batch: b.dims, XBatch: b.x.view.Strides[:r], YBatch: b.y.view.Strides[:r],
		XRow: b.x.view.Strides[r], XCol: b.x.view.Strides[r+1], YRow: b.y.view.Strides[r], YCol: b.y.view.Strides[r+1],
		XAlign: aligned(Alignment, b.x), YAlign: aligned(Alignment, b.y), TF32: c.l.opt.TF32,
	}
	c.withPost(&g.Post, []value{b.x, b.y}, func() *emit.Plan { return g.Plan(c.l.opt.Limits) })
}

// libraryProduct emits a product by the library, if that can compute it.
func (c *call) libraryProduct(b *batch) bool {
	p := &Product{DType: c.outs[0].DType(), Left: b.x.dtype(), Right: b.y.dtype(), M: b.m, N: b.n, K: b.k, Batch: numel(b.dims), Stride: b.m * b.n}
	parts := b.split(p)
	if parts == nil {
		parts = []part{{x: c.matrix(b, b.x, &p.A), y: c.matrix(b, b.y, &p.B)}}
		b.x, b.y = parts[0].x, parts[0].y
	}
	more := c.finish(p)
	p.Align = aligned(Alignment, more...)
	for _, q := range parts {
		p.Align = aligned(p.Align, q.x, q.y)
		for q.at*p.DType.Size()%p.Align != 0 { // in the result and in the addend
			p.Align /= 2
		}
	}
	var ok bool
	if p.WorkspaceSize, p.Handle, ok = c.l.opt.Product(p); !ok {
		return false
	}
	out := c.result()
	for _, q := range parts {
		operands := append([]value{out.from(q.at), q.x, q.y}, more...)
		if p.Addend {
			operands[len(operands)-1] = more[len(more)-1].from(q.at)
		}
		s := planned{Step: Step{Product: p, Fault: -1}, operands: places(operands...), writes: 1}
		if p.Addend && len(parts) == 1 {
			s.replaces(len(operands) - 1)
		}
		c.emit(s)
	}
	return true
}

// from returns what begins so many elements later.
func (v value) from(elements int) value {
	v.view.Offset += elements
	return v
}

// part is one of the products that a batch is cut into, whose result begins at an
// element of the whole.
type part struct {
	x, y value
	at   int
}

// launchBytes is how much a device copies, about, in the time that one more product
// takes to begin.
const launchBytes = 4 << 20

// split cuts a batch whose matrices are not evenly spaced, such as heads of permuted
// projections, into some that are, and describes those to the library: nil if there
// is no need, the library does not know the matrices, or copies cost less.
func (b *batch) split(p *Product) (parts []part) {
	r := len(b.dims)
	x, y := b.x.view, b.y.view
	x.Rank, y.Rank = r, r
	g, _ := merge(b.dims, []strided.View{x, y}, same)
	if len(g.dims) < 2 {
		return nil
	}
	kept := slices.Index(g.dims, slices.Max(g.dims))
	one := &batch{dims: g.dims[kept : kept+1], m: b.m, n: b.n, k: b.k}
	copies, bytes := 0, 0
	for i, v := range []value{b.x, b.y} {
		m := v.matrices(one.dims, v.view.Dims[r], v.view.Dims[r+1], v.view.Strides[r], v.view.Strides[r+1])
		m.view.Strides[0] = g.strides[i][kept]
		if i == 0 {
			one.x = m
		} else {
			one.y = m
		}
		if lead := [2]strided.View{x, y}[i].Merge(); lead.Rank > 1 {
			copies++
			bytes += m.view.Len() / g.dims[kept] * numel(b.dims) * v.size()
		}
	}
	calls := numel(g.dims) / g.dims[kept]
	if (calls-1-copies)*launchBytes > bytes || !one.describe(one.x, &p.A) || !one.describe(one.y, &p.B) {
		return nil
	}
	each := b.m * b.n
	for d := len(g.dims) - 1; d > kept; d-- {
		each *= g.dims[d]
	}
	for i := range calls {
		q, rest, step := part{one.x, one.y, 0}, i, b.m*b.n
		for d := len(g.dims) - 1; d >= 0; d-- {
			if d != kept {
				at := rest % g.dims[d]
				rest /= g.dims[d]
				q.x, q.y, q.at = q.x.from(at*g.strides[0][d]), q.y.from(at*g.strides[1][d]), q.at+at*step
			}
			step *= g.dims[d]
		}
		if at(q.x).off%productAlign != 0 || at(q.y).off%productAlign != 0 || q.at*p.DType.Size()%productAlign != 0 {
			return nil
		}
		parts = append(parts, q)
	}
	p.Batch, p.Stride = g.dims[kept], each
	return parts
}

func numel(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// productAlign is what the library wants the addresses of matrices to be multiples
// of.
const productAlign = 16

// matrix describes an operand to the library, copying one that lies in a way that
// it does not know.
func (c *call) matrix(b *batch, v value, m *Matrix) value {
	if !b.describe(v, m) {
		v = c.copied(c.once(b, v))
		v = v.spread(b.dims)
		b.describe(v, m)
	}
	return v
}

// once is a value without the batch if all of it share one matrix.
func (c *call) once(b *batch, v value) value {
	r := len(b.dims)
	for d := range r {
		if v.view.Strides[d] != 0 && v.view.Dims[d] != 1 {
			return v
		}
	}
	view := strided.View{Offset: v.view.Offset, Rank: 2}
	copy(view.Dims[:], v.view.Dims[r:r+2])
	copy(view.Strides[:], v.view.Strides[r:r+2])
	return v.as(v.shape.WithDims(view.Dims[:2]...), view)
}

// describe fills in how the matrices of an operand lie; false if the library
// cannot be told.
func (b *batch) describe(v value, m *Matrix) bool {
	r := len(b.dims)
	rows, cols := v.view.Dims[r], v.view.Dims[r+1]
	row, col := v.view.Strides[r], v.view.Strides[r+1]
	if at(v).off%productAlign != 0 {
		return false
	}
	switch {
	case (col == 1 || cols == 1) && (row >= cols || rows == 1):
		*m = Matrix{LD: max(row, cols)}
	case (row == 1 || rows == 1) && (col >= rows || cols == 1):
		*m = Matrix{Trans: true, LD: max(col, rows)}
	default:
		return false
	}
	lead := v.view
	lead.Rank = r
	lead = lead.Merge()
	if lead.Rank > 1 || lead.Rank == 1 && lead.Strides[0] < 0 {
		return false
	}
	if lead.Rank == 1 {
		m.Stride = lead.Strides[0]
	}
	return true
}
