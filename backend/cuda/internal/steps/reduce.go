package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

func init() {
	for _, op := range []ir.Op{aten.Sum, aten.Prod, aten.Amax, aten.Amin, aten.Any, aten.All, aten.Argmax, aten.Argmin} {
		lowerings[op] = reduction
	}
	lowerings[aten.Cumsum], lowerings[aten.Cumprod], lowerings[aten.Cummax] = scan, scan, scan
}

// reduction emits one loop.
func reduction(c *call) {
	x, out := c.Operands[0], c.Result()
	if out.Shape.Numel() == 0 {
		c.kernels(&emit.Plan{}, 1, out)
		return
	}
	if x.Shape.Numel() == 0 {
		c.copyTo(out, c.identity(out.Shape))
		return
	}
	mask, _ := ir.ReduceDims(c.Args)
	n := &nest{}
	n.begin()
	of := n.lines(x, out, mask)
	if of == nil {
		x = c.grouped(x, mask)
		of = n.lines(x, out, [ir.MaxRank]bool{1: true})
	}
	in := n.load(n.arg(x, of(0), false))
	n.reduce(c, out, in, of(1))
	n.emit(c, x.DType())
}

// lines lays out a reduction along the dimensions of mask; it returns nil for one
// that has too many of them apart in memory. Operand 0 is x and 1 is out.
func (n *nest) lines(x, out plan.Value, mask [ir.MaxRank]bool) (of func(operand int) axes) {
	dims := x.Shape.Dims()
	// out is read with the dimensions of x, not moving along those that go.
	view := strided.Dense(dims)
	step := 1
	for d := len(dims) - 1; d >= 0; d-- {
		if view.Strides[d] = step; mask[d] {
			view.Strides[d] = 0
		} else {
			step *= dims[d]
		}
	}
	g, reduced := merge(dims, []strided.View{x.View, view}, func(d int) bool { return mask[d] })
	var lines, kept []int
	for d := range g.dims {
		if reduced[d] {
			lines = append(lines, d)
		} else {
			kept = append(kept, d)
		}
	}
	inner, near := -1, 0 // the kept dimension with the smallest stride, and that
	for _, d := range kept {
		if s := abs(g.strides[0][d]); inner < 0 || s < near {
			inner, near = d, s
		}
	}
	switch {
	case len(lines) > 2:
		return nil
	case len(lines) == 2:
		n.k.Axis = loop.Both
		return n.pick(g, lines[0], lines[1])
	case len(lines) == 1 && inner >= 0 && near < abs(g.strides[0][lines[0]]) && near > 0:
		n.k.Axis = loop.Rows
		return n.pick(g, lines[0], inner)
	}
	n.k.Axis = loop.Columns
	row, col := -1, -1
	if len(kept) > 0 {
		row = kept[len(kept)-1]
	}
	if len(lines) > 0 {
		col = lines[0]
	}
	return n.pick(g, row, col)
}

func abs(x int) int { return max(x, -x) }

// grouped returns a copy of a value as [kept, reduced].
func (c *call) grouped(v plan.Value, mask [ir.MaxRank]bool) plan.Value {
	var order []int
	sizes := [2]int{1, 1}
	for k, want := range []bool{false, true} {
		for d := range v.View.Rank {
			if mask[d] == want {
				order = append(order, d)
				sizes[k] *= v.View.Dims[d]
			}
		}
	}
	view := v.View.Permute(order)
	v = c.Copied(v.As(v.Shape.WithDims(view.Dims[:view.Rank]...), view))
	return plan.DenseValue(v.Shape.WithDims(sizes[:]...), v.Buf)
}

// reduce writes the reduction of an element and the store of its result.
func (n *nest) reduce(c *call, out plan.Value, x loop.Value, a axes) {
	op, d := c.Instr.Op, loop.ComputeDType(out.DType())
	switch op {
	case aten.Sum, aten.Prod:
		if c.Operands[0].DType() != out.DType() {
			x = n.cast(x, out.DType())
		}
	case aten.Any, aten.All:
		x = n.cast(x, ir.Bool)
	}
	y := n.add(loop.Instr{Code: loop.Reduce, Op: op, DType: d, In: [3]loop.Value{x}, N: 1})
	n.final = true
	n.store(n.arg(out, a, true), y)
}

// identity returns what a reduction of no elements gives.
func (c *call) identity(s ir.Shape) plan.Value {
	one := int64(0)
	if c.Instr.Op == aten.Prod || c.Instr.Op == aten.All {
		one = 1
	}
	v := c.l.Constant(ir.MakeShape(s.DType()), elements.AppendNumber(nil, s.DType(), one))
	return v.As(s, v.View.Expand(s.Dims()))
}

// scan converts to the result's dtype first. Bools are summed as numbers.
func scan(c *call) {
	d := c.Shapes[0].DType()
	if d == ir.Bool && c.Instr.Op != aten.Cummax {
		c.viaIntegers(scan)
		return
	}
	g := emit.Scan{Op: c.Instr.Op, DType: d}
	s := c.Operands[0].Shape
	g.Outer, g.N, g.Inner = s.Around(c.Dim("dim", s.Rank()))
	x := c.Dense(c.cast(c.Operands[0], d))
	values := []plan.Value{c.Result()}
	if c.Instr.Op == aten.Cummax {
		values = append(values, c.Result())
	}
	c.kernels(g.Plan(c.l.opt.Limits), len(values), append(values, x)...)
}

// viaIntegers lowers an op of bools on i64 numbers of 0 and 1; what is not 0 in the
// result is true.
func (c *call) viaIntegers(f lowerFunc) {
	wide := &call{c.Inner(nil, nil), c.l}
	for _, v := range c.Operands {
		if v.DType() == ir.Bool {
			v = c.cast(v, ir.I64)
		}
		wide.Operands = append(wide.Operands, v)
	}
	for _, s := range c.Shapes {
		wide.Shapes = append(wide.Shapes, s.WithDType(ir.I64))
	}
	f(wide)
	for i, s := range c.Shapes {
		c.Results = append(c.Results, c.cast(wide.Results[i], s.DType()))
	}
}
