package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

func init() {
	lowerings[aten.ScaledMM] = scaledMM
	lowerings[aten.IntMM] = intMM
}

// narrowUnit is what the library wants the depth and the columns of products of
// one-byte elements to be multiples of, and the rows of both factors to begin at:
// both have to lie along the depth.
const narrowUnit = 16

// scaledMM is one product of the library with everything in it where that has one,
// or a product in f32 and a loop for the rest.
func scaledMM(c *call) {
	p := ir.ScaledMMOf(c.Args)
	if c.Shapes[0].Numel() == 0 {
		c.kernels(&emit.Plan{}, 1, c.Result())
		return
	}
	raw, done := c.narrowProduct(p)
	if done {
		return
	}
	if raw == nil {
		raw = c.wideProduct(p)
	}
	c.scale(p, *raw)
}

// narrowProduct multiplies 8-bit floats as they are, if the library can. It makes
// the result, or else returns the product in f32 without what follows.
func (c *call) narrowProduct(p *ir.ScaledMM) (raw *plan.Value, done bool) {
	x, y := c.operand("self"), c.operand("mat2")
	both := x.DType() == ir.F8E5M2 && y.DType() == ir.F8E5M2
	if c.l.opt.Product == nil || !c.l.opt.F8 || both || p.K == 0 || p.K%narrowUnit != 0 || p.N%narrowUnit != 0 {
		return nil, false
	}
	q := &Product{DType: p.Out, Left: x.DType(), Right: y.DType(), M: p.M, N: p.N, K: p.K, Batch: 1, Stride: p.M * p.N, Fast: c.Bool("use_fast_accum")}
	x, y = c.alongDepth(x, &q.A), transposed(c.alongDepth(transposed(y), &q.B))
	q.B.Trans = true
	whole := p.Out.IsFloat()
	more := []plan.Value{c.operand("scale_a"), c.operand("scale_b")}
	q.Scales = ScaledWhole
	if p.Rows {
		q.Scales = ScaledRows
		for i, v := range more {
			more[i] = c.toAligned(c.Dense(v))
		}
	}
	if !p.Bias.IsNil() {
		q.Bias = true
		bias := c.operand("bias")
		whole = whole && bias.DType() == p.Out && p.Out != ir.F32
		more = append(more, c.toAligned(c.Dense(bias)))
	}
	if whole {
		if out := c.byLibrary(q, append([]plan.Value{x, y}, more...)); out != nil {
			c.Results = append(c.Results, *out)
			return nil, true
		}
	}
	q.DType, q.Scales, q.Bias = ir.F32, Unscaled, false
	return c.byLibrary(q, []plan.Value{x, y}), false
}

// transposed exchanges the dimensions of a matrix.
func transposed(v plan.Value) plan.Value {
	return v.As(v.Shape.WithDims(v.Shape.Dim(1), v.Shape.Dim(0)), v.View.Permute([]int{1, 0}))
}

// alongDepth describes a matrix of one-byte elements whose rows go along the depth,
// copying one that lies otherwise.
func (c *call) alongDepth(v plan.Value, m *Matrix) plan.Value {
	rows, cols := v.View.Dims[0], v.View.Dims[1]
	row, col := v.View.Strides[0], v.View.Strides[1]
	if rows == 1 {
		row = cols
	}
	if col != 1 && cols > 1 || row < cols || row%narrowUnit != 0 || at(v).off%productAlign != 0 {
		v, row = c.Copied(v), cols
	}
	*m = Matrix{LD: row}
	return v
}

// byLibrary emits a product on its factors and the operands that follow them; nil
// if the library has none.
func (c *call) byLibrary(q *Product, operands []plan.Value) *plan.Value {
	var ok bool
	p := *q
	p.Align = aligned(Alignment, operands[:2]...)
	if p.WorkspaceSize, p.Handle, ok = c.l.opt.Product(&p); !ok {
		return nil
	}
	out := c.l.NewValue(c.Shapes[0].WithDType(p.DType))
	c.emit(planned{Step: Step{Product: &p, Fault: -1}, operands: places(append([]plan.Value{out}, operands...)...), writes: 1})
	return &out
}

// wideProduct multiplies 8-bit floats in f32. f16 holds all of them, and the library
// sums its products in f32 faster than any.
func (c *call) wideProduct(p *ir.ScaledMM) *plan.Value {
	x, y := c.operand("self"), c.operand("mat2")
	wide := &call{c.Inner(nil, []ir.Shape{c.Shapes[0].WithDType(ir.F32)}), c.l}
	if c.l.opt.Product == nil || p.K == 0 || !wide.libraryProduct(batchOf(c.widened(x, ir.F16), c.widened(y, ir.F16))) {
		wide.Operands = []plan.Value{c.widened(x, ir.F32), c.widened(y, ir.F32)}
		matmul(wide)
	}
	return &wide.Results[0]
}

// widened casts a matrix, in the order in which it lies.
func (c *call) widened(v plan.Value, d ir.DType) plan.Value {
	if v.View.Strides[0] < v.View.Strides[1] {
		return transposed(c.cast(transposed(v), d))
	}
	return c.cast(v, d)
}

// scale emits the loop that makes the result of a product in f32.
func (c *call) scale(p *ir.ScaledMM, raw plan.Value) {
	out := c.Result()
	dims := out.Shape.Dims()
	reads := []plan.Value{raw}
	add := func(name string, view func(v strided.View) strided.View) {
		v := c.operand(name)
		reads = append(reads, v.As(v.Shape.WithDims(dims...), view(v.View).Expand(dims)))
	}
	number := func(v strided.View) strided.View {
		v.Rank = 0 // one element, wherever it is
		return v
	}
	same := func(v strided.View) strided.View { return v }
	factor := number
	if p.Rows {
		factor = same
	}
	add("scale_a", factor)
	add("scale_b", factor)
	if !p.Bias.IsNil() {
		add("bias", same)
	}
	if !p.ScaleResult.IsNil() {
		add("scale_result", number)
	}
	c.loop(reads, out, func(n *nest, x []loop.Value) loop.Value {
		v := n.apply(aten.Mul, ir.F32, n.apply(aten.Mul, ir.F32, x[0], x[1]), x[2])
		rest := x[3:]
		if !p.Bias.IsNil() {
			v, rest = n.apply(aten.Add, ir.F32, v, rest[0]), rest[1:]
		}
		if !p.ScaleResult.IsNil() {
			v = n.apply(aten.Mul, ir.F32, v, n.apply(aten.Reciprocal, ir.F32, rest[0]))
		}
		return v
	})
}

// intMM multiplies i8 by the library, if that can, and i32 otherwise.
func intMM(c *call) {
	x, y := c.Operands[0], c.Operands[1]
	m, k, n := x.Shape.Dim(0), x.Shape.Dim(1), y.Shape.Dim(1)
	if c.l.opt.Product != nil && x.DType() == ir.I8 && m > 0 && n > 0 && k > 0 && k%narrowUnit == 0 && n%narrowUnit == 0 {
		q := &Product{DType: ir.I32, Left: ir.I8, Right: ir.I8, M: m, N: n, K: k, Batch: 1, Stride: m * n}
		x, y := c.alongDepth(x, &q.A), transposed(c.alongDepth(transposed(y), &q.B))
		q.B.Trans = true
		if out := c.byLibrary(q, []plan.Value{x, y}); out != nil {
			c.Results = append(c.Results, *out)
			return
		}
	}
	c.Operands = slices.Clone(c.Operands)
	for i, v := range c.Operands {
		c.Operands[i] = c.widened(v, ir.I32)
	}
	matmul(c)
}
