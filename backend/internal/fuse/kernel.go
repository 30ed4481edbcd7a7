package fuse

import (
	"iter"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// Kernel is what a group becomes: what it computes, on what.
type Kernel struct {
	// Loop has no hints (Stream, Ahead); a backend may set them.
	Loop *loop.Kernel
	// Args are its operands, by their numbers in Loop.
	Args []Arg
	// Grid is what it goes over. A reduced dimension is never an outer one.
	Grid Grid
	// Parts is into how many parts lines are cut, if more than 1: what part i finds
	// goes to set i of the Part operands. Part i of lines of n elements begins with
	// element i·n/Parts.
	Parts int
	// Lines is the number of results of each reduction.
	Lines int
	// Cost is what an element costs on a processor, in nanoseconds, roughly.
	Cost float64
	// Instrs are the instructions that it computes, in order.
	Instrs []*graph.Instr
	// Divisions has the instructions that may divide integers by 0.
	Divisions map[loop.Value]*graph.Instr
	// Ordered says that rows are computed in their order: they are added to what other rows may be added to.
	Ordered bool
	// Layout is what it has in common with others of one template whose operands lie alike; nil if it
	// is of none.
	Layout *Layout
}

// Arg is an operand of a Kernel.
type Arg struct {
	// DType is how its elements are stored.
	DType ir.DType
	// Buf is its buffer, or None.
	Buf int
	// View has the dimensions of the grid before they are merged.
	View strided.View
	Role Role
	// ID is the value that it is: one from outside, or a result.
	ID graph.ID
	// Last is the last pass that loads it, or the one that stores it.
	Last int
	// By, if not 0, is 1 more than the number of the operand with the index of a Chosen, which Chooser, Size and
	// Step are of.
	By, Size, Step int
	Chooser        *graph.Instr
	// Across is that of the Chosen. The loop has no index then.
	Across bool
}

// None is the Buf of operands that have no buffer yet, or are Scratch.
const None = -1

// Role says what an operand is to its kernel.
type Role uint8

const (
	Input     Role = iota // a value from outside
	Statistic             // a row statistic from outside, read once for each line
	Index                 // the index of an Input
	StoredBy              // that of a Stored
	Output                // a result over the group's dimensions
	Result                // a result with one element for each line
	Part                  // the results of parts, one set after another
	Stored                // the place of a Sink
	Scratch               // memory for one line, which each worker has for itself
)

// Writes reports whether the kernel stores to operands of a Role.
func (r Role) Writes() bool { return r >= Output }

// Bytes returns the size of the buffer that an operand without one needs.
func (k *Kernel) Bytes(a *Arg) int {
	n := a.View.Len()
	switch a.Role {
	case Result:
		n = k.Lines
	case Part:
		n = k.Parts * k.Lines
	}
	return n * a.DType.Size()
}

// InPlace lists the buffers of results with those of operands that they may be
// written over: of the same size, and read in the same places and not by a later
// pass. bytes returns the size of a buffer; all operands have theirs.
func (k *Kernel) InPlace(bytes func(buf int) int) iter.Seq2[int, int] {
	return k.over(Output, Input, func(a *Arg) bool {
		return a.By == 0 && a.View.IsDense() && a.View.Len()*a.DType.Size() == bytes(a.Buf)
	})
}

// LinesInPlace is InPlace for results with one element for each line and row statistics. It is for
// backends that compute the Final of a line in one thread: another one could read the statistic after
// the result is stored.
func (k *Kernel) LinesInPlace(bytes func(buf int) int) iter.Seq2[int, int] {
	var lines *strided.View // of the results, which all lie alike
	for i := range k.Args {
		if a := &k.Args[i]; a.Role == Result {
			lines = &a.View
		}
	}
	return k.over(Result, Statistic, func(a *Arg) bool {
		return k.Lines*a.DType.Size() == bytes(a.Buf) && a.View.Same(lines)
	})
}

// over lists the buffers of operands of role to with those of role from that they may be written over:
// direct ones, of which no later pass reads an element.
func (k *Kernel) over(to, from Role, direct func(*Arg) bool) iter.Seq2[int, int] {
	// read returns the last pass that reads a buffer, or -1 if it is not only read in order.
	read := func(buf int) int {
		last := -1
		for i := range k.Args {
			a := &k.Args[i]
			if a.Role.Writes() || a.Buf != buf {
				continue
			}
			if a.Role != from || !direct(a) {
				return -1
			}
			last = max(last, a.Last)
		}
		return last
	}
	return func(yield func(result, operand int) bool) {
		for i := range k.Args {
			w := &k.Args[i]
			if w.Role != to || !direct(w) {
				continue
			}
			for j := range k.Args {
				r := &k.Args[j]
				if r.Role != from || r.DType.Size() != w.DType.Size() {
					continue
				}
				if at := read(r.Buf); at >= 0 && at <= w.Last && !yield(w.Buf, r.Buf) {
					return
				}
			}
		}
	}
}

// compile lays the grid of a kernel out and has it compiled; false if there is no
// code for it.
func (gs *Groups) compile(k *Kernel, dims []int, mask [ir.MaxRank]bool) (emit func(), ok bool) {
	if !k.layOut(dims, mask, &gs.steps) {
		return nil, false
	}
	return gs.b.Kernel(k)
}

// layOut finds the grid and with it how the operands move. It reports whether
// kernels can be such. The numbers of the grid are in memory of room.
func (k *Kernel) layOut(dims []int, mask [ir.MaxRank]bool, room *Slab[int]) bool {
	if len(k.Args) > loop.MaxArgs {
		return false
	}
	k.Grid = lay(k.Loop.Axis, dims, mask, k.Args, room)
	for _, o := range k.Grid.Outer {
		if o.Reduced {
			return false // operands keep what is reduced from being one run
		}
	}
	for i, step := range k.Grid.Cols.Steps {
		if bytes := step * k.Args[i].DType.Size(); bytes >= loop.MaxStride || bytes <= -loop.MaxStride {
			return false
		}
	}
	k.Loop.Args = make([]loop.Arg, len(k.Args))
	for i := range k.Args {
		a := &k.Args[i]
		arg := loop.Arg{DType: a.DType, Write: a.Role.Writes(), By: int32(a.By), Moves: a.By > 0 && k.Grid.Rows.Steps[i] != 0}
		if a.Across {
			arg.By, arg.Moves = 0, false
		} else if a.By > 0 && k.Grid.Cols.Steps[a.By-1] != 0 {
			return false
		}
		one := k.Grid.Cols.N == 1 && (a.Role == Output || a.Role == Stored || arg.Write && k.Loop.Axis == loop.Rows)
		switch step := k.Grid.Cols.Steps[i]; {
		case a.Role == Scratch, step == 1, one:
			arg.Cols = loop.Unit
		case step != 0:
			arg.Cols = loop.Free
		}
		k.Loop.Args[i] = arg
	}
	return true
}

// closeNest emits a group as one kernel, or as two if lines are cut into parts.
// It reports whether there is code for it; if not, nothing has changed.
func (gs *Groups) closeNest(g *group) bool {
	gs.choose(g)
	if g.parts > 1 {
		return gs.closeParts(g)
	}
	defer gs.turn(g)()
	k, t := gs.fromTemplate(g)
	if gs.brief && t != nil {
		defer func() { gs.args = k.Args[:0] }()
	}
	if laid := t != nil && gs.layOutAs(k, t, g) || t == nil && k.layOut(g.key.shape.Dims(), g.mask, &gs.steps); !laid {
		return false
	}
	emit, ok := gs.b.Kernel(k)
	if !ok {
		return false
	}
	emit()
	gs.settle(k)
	gs.views(g)
	gs.forget(g)
	return true
}

// closeParts is closeNest for a group whose lines are cut into parts.
func (gs *Groups) closeParts(g *group) bool {
	b := newBuilder(gs, g)
	b.build()
	k := b.kernel(gs.instrs(g), g.parts)
	emit, ok := gs.compile(k, g.key.shape.Dims(), g.mask)
	if !ok {
		return false
	}
	last := b.combine().kernel(k.Instrs[:1], 0)
	emitLast, ok := gs.compile(last, []int{g.parts, g.lines}, [ir.MaxRank]bool{true})
	if !ok {
		return false
	}
	emit()
	gs.settle(k)
	for id, n := range b.partOf {
		last.Args[n].Buf = k.Args[b.argOf[argKey{id, Part}]].Buf
	}
	emitLast()
	gs.settle(last)
	gs.views(g)
	gs.forget(g)
	return true
}

// instrs returns the instructions of a group.
func (gs *Groups) instrs(g *group) []*graph.Instr {
	ops := make([]*graph.Instr, len(g.members))
	for k, i := range g.members {
		ops[k] = &gs.p.Instrs[i]
	}
	return ops
}

// settle says where the results of a kernel lie.
func (gs *Groups) settle(k *Kernel) {
	for i := range k.Args {
		switch a := &k.Args[i]; a.Role {
		case Output:
			gs.b.SetValue(a.ID, Value{a.Buf, a.View})
		case Result:
			gs.b.SetValue(a.ID, Value{a.Buf, strided.Dense(gs.p.Shape(a.ID).Dims())})
		}
	}
}

// views says where the views of row statistics lie that leave a group.
func (gs *Groups) views(g *group) {
	for _, i := range g.members {
		in := &gs.p.Instrs[i]
		root, ok := g.alias[in.Out]
		if !ok || !gs.leaves(in.Out, g) {
			continue
		}
		v := gs.b.Value(root)
		if g.spread[in.Out] {
			// Along the reduced dimensions it does not move.
			v.View, _ = v.View.Reshape(g.lineDims())
			v.View = g.lineStrides(v.View)
		} else {
			v.View, _ = v.View.Reshape(gs.p.Shape(in.Out).Dims())
		}
		gs.b.SetValue(in.Out, v)
	}
}

// Movers are dtypes by size, which stand for all of their size where elements are only moved.
var Movers = map[int]ir.DType{1: ir.U8, 2: ir.I16, 4: ir.I32, 8: ir.I64}

// Move returns the kernel by which in copies elements of dtype d from src to dst,
// which has the same dimensions; false if kernels can't.
func Move(in *graph.Instr, d ir.DType, dst, src Value) (*Kernel, bool) {
	k, ok := move(in, d, dst, src)
	return k, ok && k.layOut(src.View.Dims[:src.View.Rank], [ir.MaxRank]bool{}, new(Slab[int]))
}

// move is Move without a grid.
func move(in *graph.Instr, d ir.DType, dst, src Value) (*Kernel, bool) {
	d, ok := Movers[d.Size()]
	return copying(in, d, d, dst, src), ok
}

// Cast returns the kernel by which in converts elements of dtype from in src to those of dtype to in dst, which has the
// same dimensions; false if kernels can't.
func Cast(in *graph.Instr, to, from ir.DType, dst, src Value) (*Kernel, bool) {
	k := copying(in, to, from, dst, src)
	return k, k.layOut(src.View.Dims[:src.View.Rank], [ir.MaxRank]bool{}, new(Slab[int]))
}

// copying is Cast without a grid.
func copying(in *graph.Instr, to, from ir.DType, dst, src Value) *Kernel {
	w := &kernelWriter{}
	w.begin()
	v := w.load(0, from)
	if to != from {
		v = w.apply(aten.Cast, to, from, []loop.Value{v})
	}
	w.store(1, v)
	return &Kernel{Loop: &w.k, Cost: w.cost, Instrs: []*graph.Instr{in}, Args: []Arg{
		{DType: from, Buf: src.Buf, View: src.View, Role: Input, ID: NoValue}, {DType: to, Buf: dst.Buf, View: dst.View, Role: Output, ID: NoValue},
	}}
}

// Fold returns the kernel by which an instruction reduces the rows of src, a matrix of elements of dtype
// from, to those of dst, of dtype to; false if kernels can't.
func Fold(in *graph.Instr, to, from ir.DType, dst, src Value) (*Kernel, bool) {
	w := &kernelWriter{}
	w.k.Axis = loop.Columns
	w.begin()
	v := w.reduce(in.Op, to, from, w.load(0, from), src.View.Dims[1] > longLine)
	w.final = true
	w.store(1, w.finish(in.Op, to, v))
	dims := src.View.Dims[:2]
	line := strided.View{Rank: 2, Offset: dst.View.Offset}
	copy(line.Dims[:], dims)
	line.Strides[0] = dst.View.Strides[0]
	k := &Kernel{Loop: &w.k, Cost: w.cost, Lines: dims[0], Instrs: []*graph.Instr{in}, Args: []Arg{
		{DType: from, Buf: src.Buf, View: src.View, Role: Input, ID: NoValue}, {DType: to, Buf: dst.Buf, View: line, Role: Result, ID: NoValue},
	}}
	return k, k.layOut(dims, [ir.MaxRank]bool{1: true}, new(Slab[int]))
}
