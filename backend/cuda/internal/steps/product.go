package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

func init() { lowerings[aten.MatMul] = matmul }

// batch is a batch of products of matrices: the views of its operands are
// [batch..., m, k] and [batch..., k, n].
type batch struct {
	x, y    plan.Value
	dims    []int // of the batch
	m, n, k int
}

// batchOf sees a vector as a row on the left and a column on the right.
func batchOf(x, y plan.Value) *batch {
	x, y = asMatrix(x, true), asMatrix(y, false)
	b := &batch{m: x.Shape.Dim(-2), n: y.Shape.Dim(-1), k: x.Shape.Dim(-1)}
	all, _ := ir.BroadcastDims(leading(x), leading(y)) // Infer has checked that they do
	b.dims = all.Dims()
	b.x, b.y = spread(x, b.dims), spread(y, b.dims)
	b.mergeIntoRows()
	return b
}

// mergeIntoRows makes rows of the innermost dimensions of the batch along which the right
// operand stays, as in a layer and in heads that share keys, as far as the rows of the
// left one are evenly spaced then.
func (b *batch) mergeIntoRows() {
	for r := len(b.dims); r > 0; r = len(b.dims) {
		n, step, row := b.dims[r-1], b.x.View.Strides[r-1], b.x.View.Strides[r]
		even := step == b.m*row
		if b.m == 1 {
			even, row = step >= b.k, step
		}
		switch {
		case n == 1:
			row = b.x.View.Strides[r]
		case !even || b.y.View.Strides[r-1] != 0:
			return
		}
		b.dims = b.dims[:r-1]
		b.m *= n
		b.x = matrices(b.x, b.dims, b.m, b.k, row, b.x.View.Strides[r+1])
		b.y = matrices(b.y, b.dims, b.k, b.n, b.y.View.Strides[r], b.y.View.Strides[r+1])
	}
}

// matrices returns the value with other matrices in the first dimensions of its batch.
func matrices(v plan.Value, lead []int, rows, cols, row, col int) plan.Value {
	r := len(lead)
	view := strided.View{Offset: v.View.Offset, Rank: r + 2}
	copy(view.Dims[:], append(slices.Clone(lead), rows, cols))
	copy(view.Strides[:], append(slices.Clone(v.View.Strides[:r]), row, col))
	return v.As(v.Shape.WithDims(view.Dims[:r+2]...), view)
}

// asMatrix gives a vector a second dimension, in front or behind.
func asMatrix(v plan.Value, row bool) plan.Value {
	if v.View.Rank > 1 {
		return v
	}
	dims := []int{v.Shape.Dim(0), 1}
	if row {
		slices.Reverse(dims)
	}
	view, _ := v.View.Reshape(dims) // one more dimension of size 1 is always possible
	return v.As(v.Shape.WithDims(dims...), view)
}

func leading(v plan.Value) ir.Shape {
	dims := v.Shape.Dims()
	return v.Shape.WithDims(dims[:len(dims)-2]...)
}

// spread broadcasts the dimensions before the matrix.
func spread(v plan.Value, lead []int) plan.Value {
	dims := append(slices.Clone(lead), v.Shape.Dim(-2), v.Shape.Dim(-1))
	return v.As(v.Shape.WithDims(dims...), v.View.Expand(dims))
}

// matmul is the library's for the floats that it has, and a kernel for integers.
func matmul(c *call) {
	b := batchOf(c.Operands[0], c.Operands[1])
	s := c.Shapes[0]
	switch {
	case s.Numel() == 0:
		c.kernels(&emit.Plan{}, 1, c.Result())
		return
	case b.k == 0:
		v := c.l.Constant(ir.MakeShape(s.DType()), make([]byte, s.DType().Size()))
		c.copyTo(c.Result(), v.As(s, v.View.Expand(s.Dims())))
		return
	case s.DType().IsFloat() && c.l.opt.Product != nil && c.libraryProduct(b):
		return
	}
	r := len(b.dims)
	g := emit.Product{
		DType: s.DType(), M: b.m, N: b.n, K: b.k, Batch: b.dims, XBatch: b.x.View.Strides[:r], YBatch: b.y.View.Strides[:r],
		XRow: b.x.View.Strides[r], XCol: b.x.View.Strides[r+1], YRow: b.y.View.Strides[r], YCol: b.y.View.Strides[r+1],
		XAlign: aligned(Alignment, b.x), YAlign: aligned(Alignment, b.y), TF32: c.l.opt.TF32,
	}
	c.withPost(&g.Post, []plan.Value{b.x, b.y}, func() *emit.Plan { return g.Plan(c.l.opt.Limits) })
}

// libraryProduct emits a product by the library, if that can compute it.
func (c *call) libraryProduct(b *batch) bool {
	p := &Product{DType: c.Shapes[0].DType(), Left: b.x.DType(), Right: b.y.DType(), M: b.m, N: b.n, K: b.k, Batch: numel(b.dims), Stride: b.m * b.n}
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
	out := c.Result()
	for _, q := range parts {
		operands := append([]plan.Value{from(out, q.at), q.x, q.y}, more...)
		if p.Addend {
			operands[len(operands)-1] = from(more[len(more)-1], q.at)
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
func from(v plan.Value, elements int) plan.Value {
	v.View.Offset += elements
	return v
}

// part is one of the products that a batch is cut into, whose result begins at an
// element of the whole.
type part struct {
	x, y plan.Value
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
	x, y := b.x.View, b.y.View
	x.Rank, y.Rank = r, r
	g, _ := merge(b.dims, []strided.View{x, y}, same)
	if len(g.dims) < 2 {
		return nil
	}
	kept := slices.Index(g.dims, slices.Max(g.dims))
	one := &batch{dims: g.dims[kept : kept+1], m: b.m, n: b.n, k: b.k}
	copies, bytes := 0, 0
	for i, v := range []plan.Value{b.x, b.y} {
		m := matrices(v, one.dims, v.View.Dims[r], v.View.Dims[r+1], v.View.Strides[r], v.View.Strides[r+1])
		m.View.Strides[0] = g.strides[i][kept]
		if i == 0 {
			one.x = m
		} else {
			one.y = m
		}
		if lead := [2]strided.View{x, y}[i].Merge(); lead.Rank > 1 {
			copies++
			bytes += m.View.Len() / g.dims[kept] * numel(b.dims) * v.Size()
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
				q.x, q.y, q.at = from(q.x, at*g.strides[0][d]), from(q.y, at*g.strides[1][d]), q.at+at*step
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
func (c *call) matrix(b *batch, v plan.Value, m *Matrix) plan.Value {
	if !b.describe(v, m) {
		v = c.Copied(c.once(b, v))
		v = spread(v, b.dims)
		b.describe(v, m)
	}
	return v
}

// once is a value without the batch if all of it share one matrix.
func (c *call) once(b *batch, v plan.Value) plan.Value {
	r := len(b.dims)
	for d := range r {
		if v.View.Strides[d] != 0 && v.View.Dims[d] != 1 {
			return v
		}
	}
	view := strided.View{Offset: v.View.Offset, Rank: 2}
	copy(view.Dims[:], v.View.Dims[r:r+2])
	copy(view.Strides[:], v.View.Strides[r:r+2])
	return v.As(v.Shape.WithDims(view.Dims[:2]...), view)
}

// describe fills in how the matrices of an operand lie; false if the library
// cannot be told.
func (b *batch) describe(v plan.Value, m *Matrix) bool {
	r := len(b.dims)
	rows, cols := v.View.Dims[r], v.View.Dims[r+1]
	row, col := v.View.Strides[r], v.View.Strides[r+1]
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
	lead := v.View
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
