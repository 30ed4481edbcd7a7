package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/internal/kernels"
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

// batchOf sees a vector as a row on the left and a column on the right. A left
// operand of many matrices with one right matrix is one tall matrix if its strides
// allow.
func batchOf(x, y value) *batch {
	x, y = x.asMatrix(true), y.asMatrix(false)
	if y.view.Rank == 2 && x.view.Rank > 2 {
		k := x.view.Dims[x.view.Rank-1]
		rows := x.view
		rows.Rank--
		if tall, ok := rows.Reshape([]int{rows.Len()}); ok {
			view := kernels.View{Offset: tall.Offset, Rank: 2}
			view.Dims[0], view.Strides[0] = tall.Dims[0], tall.Strides[0]
			view.Dims[1], view.Strides[1] = k, x.view.Strides[x.view.Rank-1]
			x = x.as(x.shape.WithDims(tall.Dims[0], k), view)
		}
	}
	b := &batch{m: x.shape.Dim(-2), n: y.shape.Dim(-1), k: x.shape.Dim(-1)}
	all, _ := ir.BroadcastDims(leading(x), leading(y)) // Infer has checked that they do
	b.dims = all.Dims()
	b.x, b.y = x.spread(b.dims), y.spread(b.dims)
	return b
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
	p := &Product{DType: c.outs[0].DType(), M: b.m, N: b.n, K: b.k, Batch: numel(b.dims)}
	x, y := c.matrix(b, b.x, &p.A), c.matrix(b, b.y, &p.B)
	more := c.finish(p)
	p.Align = aligned(Alignment, append(more, x, y)...)
	var ok bool
	if p.WorkspaceSize, p.Handle, ok = c.l.opt.Product(p); !ok {
		b.x, b.y = x, y
		return false
	}
	out := c.result()
	operands := append([]value{out, x, y}, more...)
	s := planned{Step: Step{Product: p, Fault: -1}, operands: places(operands...), writes: 1}
	if p.Addend {
		s.replaces(len(operands) - 1)
	}
	c.emit(s)
	return true
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
	view := kernels.View{Offset: v.view.Offset, Rank: 2}
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
