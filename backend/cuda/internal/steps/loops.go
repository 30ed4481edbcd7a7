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

// nest writes a loop over a grid of elements: its kernel, and where its operands
// lie. The operands that are written come last.
type nest struct {
	k      loop.Kernel
	g      emit.Geometry
	values []plan.Value
	writes int
	final  bool // write to the Final of the pass
}

// begin starts a pass.
func (n *nest) begin() {
	n.k.Passes = append(n.k.Passes, loop.Pass{})
	n.final = false
}

func (n *nest) add(in loop.Instr) loop.Value {
	v := loop.Value(len(n.k.Instrs))
	n.k.Instrs = append(n.k.Instrs, in)
	p := &n.k.Passes[len(n.k.Passes)-1]
	if n.final {
		p.Final = append(p.Final, v)
	} else {
		p.Body = append(p.Body, v)
	}
	return v
}

// axes is how an operand moves in the dimensions of a loop: in elements for each
// step along a row, a column, and what is around them.
type axes struct {
	row, col int
	outer    []int
}

// arg adds an operand.
func (n *nest) arg(v plan.Value, a axes, write bool) int {
	size := v.Size()
	place := emit.Place{Offset: v.View.Offset * size, Row: a.row * size, Col: a.col * size}
	for _, s := range a.outer {
		place.Outer = append(place.Outer, s*size)
	}
	arg := loop.Arg{DType: v.DType(), Cols: loop.Free, Write: write}
	switch a.col {
	case 0:
		arg.Cols = loop.Fixed
	case 1:
		arg.Cols = loop.Unit
	}
	n.k.Args, n.g.Args = append(n.k.Args, arg), append(n.g.Args, place)
	n.values = append(n.values, v)
	if write {
		n.writes++
	}
	return len(n.k.Args) - 1
}

// load reads an operand in the dtype to compute in.
func (n *nest) load(arg int) loop.Value {
	return n.add(loop.Instr{Code: loop.Load, DType: loop.ComputeDType(n.k.Args[arg].DType), Arg: arg})
}

func (n *nest) store(arg int, v loop.Value) {
	n.add(loop.Instr{Code: loop.Store, DType: n.k.Instrs[v].DType, In: [3]loop.Value{v}, N: 1, Arg: arg})
}

// apply writes a pointwise op with a result of a dtype that is computed in.
func (n *nest) apply(op ir.Op, d ir.DType, in ...loop.Value) loop.Value {
	i := loop.Instr{Code: loop.Apply, Op: op, DType: d, N: uint8(len(in))}
	copy(i.In[:], in)
	return n.add(i)
}

// cast converts a value as Programs do, to what a dtype can hold.
func (n *nest) cast(v loop.Value, d ir.DType) loop.Value {
	wide := loop.ComputeDType(d)
	if n.k.Instrs[v].Result() != wide {
		v = n.apply(aten.Cast, wide, v)
	}
	if wide != d {
		v = n.add(loop.Instr{Code: loop.Round, DType: d, In: [3]loop.Value{v}, N: 1})
	}
	return v
}

// emit adds the step of a loop. dtype is named where it cannot be written.
func (n *nest) emit(c *call, d ir.DType, inPlace ...plan.Pair) {
	written, err := emit.WriteLoop(&n.k, emit.Options{Outer: len(n.g.Outer)})
	if err != nil {
		panic(loopError(err, d))
	}
	kernels := written.Plan(&n.g, c.l.opt.Limits)
	// The results go first among the operands of a step.
	reads := len(n.values) - n.writes
	operands := append(places(n.values[reads:]...), places(n.values[:reads]...)...)
	c.emit(planned{Step: Step{Kernels: renumbered(kernels, func(a int) int { return (a + n.writes) % len(n.values) })}, operands: operands, writes: n.writes, inPlace: inPlace})
}

// renumbered changes the numbers of the operands of a plan.
func renumbered(p *emit.Plan, number func(int) int) *emit.Plan {
	for i := range p.Launches {
		for k := range p.Launches[i].Addresses {
			if a := &p.Launches[i].Addresses[k]; a.Operand >= 0 {
				a.Operand = number(a.Operand)
			}
		}
	}
	return p
}

// grid is the dimensions that operands have in common, with as few dimensions as
// they all allow.
type grid struct {
	dims    []int
	strides [][]int // by operand
}

// merge finds the grid of views with the same dimensions. split keeps apart
// dimensions that are not of one kind.
func merge(dims []int, views []strided.View, kind func(d int) bool) (g grid, kinds []bool) {
	g.strides = make([][]int, len(views))
	for d, n := range dims {
		if n == 1 {
			continue
		}
		k := len(g.dims) - 1
		together := k >= 0 && kinds[k] == kind(d)
		for i := range views {
			together = together && g.strides[i][k] == views[i].Strides[d]*n
		}
		if together {
			g.dims[k] *= n
			for i := range views {
				g.strides[i][k] = views[i].Strides[d]
			}
			continue
		}
		g.dims, kinds = append(g.dims, n), append(kinds, kind(d))
		for i := range views {
			g.strides[i] = append(g.strides[i], views[i].Strides[d])
		}
	}
	return g, kinds
}

// pick lays the dimensions of a grid out: one for rows and one for columns, -1 for
// none, and the rest around them.
func (n *nest) pick(g grid, row, col int) (of func(operand int) axes) {
	n.g.Rows, n.g.Cols = 1, 1
	var outer []int
	for d, size := range g.dims {
		switch d {
		case row:
			n.g.Rows = size
		case col:
			n.g.Cols = size
		default:
			outer = append(outer, d)
			n.g.Outer = append(n.g.Outer, size)
		}
	}
	return func(i int) (a axes) {
		if row >= 0 {
			a.row = g.strides[i][row]
		}
		if col >= 0 {
			a.col = g.strides[i][col]
		}
		for _, d := range outer {
			a.outer = append(a.outer, g.strides[i][d])
		}
		return a
	}
}

func same(int) bool { return true }

// pointwise lowers a pointwise op: one loop over the elements of the result.
func pointwise(c *call) { c.elementwise(c.Operands, c.Result()) }

// elementwise emits the loop that computes out from operands that broadcast to its
// dimensions.
func (c *call) elementwise(in []plan.Value, out plan.Value) {
	dims := out.Shape.Dims()
	var reads []plan.Value // each operand once
	number := make([]int, len(in))
	for i, v := range in {
		v.View = v.View.Expand(dims)
		v.Shape = v.Shape.WithDims(dims...)
		if number[i] = slices.Index(reads, v); number[i] < 0 {
			number[i] = len(reads)
			reads = append(reads, v)
		}
	}
	c.loop(reads, out, func(n *nest, loaded []loop.Value) loop.Value {
		args := make([]loop.Value, len(in))
		for i := range in {
			args[i] = loaded[number[i]]
		}
		return n.element(c.Instr.Op, out.DType(), args)
	})
	if d := in[len(in)-1].DType(); c.Instr.Op.Spec().Divides && d.IsIntegral() {
		c.l.mayFail(0)
	}
}

// loop emits the loop that computes out, element by element, from operands of its
// dimensions. Its innermost dimension is a row.
func (c *call) loop(reads []plan.Value, out plan.Value, element func(n *nest, loaded []loop.Value) loop.Value) {
	n := &nest{}
	n.begin()
	views := []strided.View{out.View}
	for _, v := range reads {
		views = append(views, v.View)
	}
	g, _ := merge(out.Shape.Dims(), views, same)
	last := len(g.dims) - 1
	of := n.pick(g, last-1, last)
	loaded := make([]loop.Value, len(reads))
	for i, v := range reads {
		loaded[i] = n.load(n.arg(v, of(1+i), false))
	}
	x := element(n, loaded)
	a := of(0)
	if last < 0 {
		a.col = 1 // one element; stores move along columns
	}
	n.store(n.arg(out, a, true), x)
	n.emit(c, reads[len(reads)-1].DType(), overwrites(reads, out)...)
}

// element computes an element of a dtype.
func (n *nest) element(op ir.Op, d ir.DType, args []loop.Value) loop.Value {
	if op != aten.Cast {
		return n.apply(op, loop.ComputeDType(d), args...)
	}
	if wide := loop.ComputeDType(d); n.k.Instrs[args[0]].Result() != wide {
		return n.apply(op, wide, args[0])
	}
	return args[0]
}

// overwrites lists the operands that a loop may write its result over: those that
// it reads only where it writes.
func overwrites(reads []plan.Value, out plan.Value) (pairs []plan.Pair) {
	for _, r := range reads {
		ok := true
		for _, o := range reads {
			if o.Buf == r.Buf {
				ok = ok && o.Size() == out.Size() && o.View == out.View
			}
		}
		if ok {
			pairs = append(pairs, plan.Pair{Write: out.Buf, Read: r.Buf})
		}
	}
	return pairs
}

// cast returns v converted to a dtype, or v itself.
func (c *call) cast(v plan.Value, d ir.DType) plan.Value {
	if v.DType() == d {
		return v
	}
	out := c.l.NewValue(v.Shape.WithDType(d))
	c.loop([]plan.Value{v}, out, func(n *nest, x []loop.Value) loop.Value { return n.element(aten.Cast, d, x) })
	return out
}
