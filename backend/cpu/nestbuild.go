package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

type argKey struct {
	id   graph.ID
	role fuse.Role
}

// nestBuilder makes the kernel of a group. Values over the group's dimensions
// belong to the first pass in which they can be known, their *stage*; a later
// pass that needs one again reads it back if it is stored, and otherwise
// recomputes it, or has it kept in a line of scratch memory if that is dear.
type nestBuilder struct {
	fuse.Writer
	l       *lowering
	g       *group
	members map[graph.ID]*graph.Instr
	stage   map[graph.ID]int
	chain   map[graph.ID]float64 // what computing the value from memory costs
	stored  map[graph.ID]bool
	kept    map[graph.ID]bool // in scratch memory
	passes  int
	args    []fuse.Arg
	argOf   map[argKey]int
	pass    int
	full    map[graph.ID]loop.Value // of this pass
	line    map[graph.ID]loop.Value
	// partOf has, by reduction, the operand of the kernel that combines parts.
	partOf map[graph.ID]int
	// divisions has the instructions that divide integers, which may be by 0.
	divisions map[loop.Value]*graph.Instr
	// cut marks the builder of that kernel: its dimensions are parts and lines.
	cut bool
}

// keepCost is what recomputing a value may cost.
const keepCost = 0.25

func newNestBuilder(l *lowering, g *group) *nestBuilder {
	b := &nestBuilder{
		l: l, g: g, members: map[graph.ID]*graph.Instr{}, stage: map[graph.ID]int{}, chain: map[graph.ID]float64{},
		stored: map[graph.ID]bool{}, kept: map[graph.ID]bool{}, argOf: map[argKey]int{}, line: map[graph.ID]loop.Value{},
	}
	b.K.Axis = g.axis
	for _, i := range g.members {
		in := &l.p.Instrs[i]
		b.members[in.Out] = in
		if l.leaves(in.Out, g) {
			b.stored[b.root(in.Out)] = true
		}
	}
	for _, i := range g.members {
		b.schedule(&l.p.Instrs[i])
	}
	return b
}

// root returns what a value is a view of within the group.
func (b *nestBuilder) root(id graph.ID) graph.ID {
	if r, ok := b.g.alias[id]; ok {
		return r
	}
	return id
}

// schedule finds the stage of a member.
func (b *nestBuilder) schedule(in *graph.Instr) {
	out := in.Out
	cost := fuse.Cost(in.Op)
	stage := 0
	for _, id := range in.Args {
		if b.members[id] == nil {
			continue
		}
		at := b.stage[id]
		if b.g.line[id] && !b.g.line[out] {
			at++
		}
		stage = max(stage, at)
		if !b.stored[id] {
			cost += b.chain[id]
		}
	}
	b.stage[out], b.chain[out] = stage, cost
	if b.g.line[out] || b.stored[out] {
		b.passes = max(b.passes, stage+1)
	}
}

// reduces reports whether a member is a reduction.
func (b *nestBuilder) reduces(in *graph.Instr) bool { return foldsOf[in.Op] }

// keep finds the values that are kept for later passes. Only a line that is a
// row is short enough for that.
func (b *nestBuilder) keep() {
	if b.g.axis != loop.Columns {
		return
	}
	for p := b.passes - 1; p > 0; p-- {
		seen := map[graph.ID]bool{}
		for _, i := range b.g.members {
			in := &b.l.p.Instrs[i]
			if b.stage[in.Out] != p {
				continue
			}
			switch {
			case b.g.line[in.Out]:
				if b.reduces(in) {
					b.need(in.Args[0], p, seen)
				}
			case b.stored[in.Out] || b.kept[in.Out]:
				b.need(in.Out, p, seen)
			}
		}
	}
}

// need marks what pass p needs of earlier passes to compute a value.
func (b *nestBuilder) need(id graph.ID, p int, seen map[graph.ID]bool) {
	in := b.members[id]
	if in == nil || b.g.line[id] || seen[id] {
		return
	}
	seen[id] = true
	if b.stage[id] < p {
		if b.stored[id] || b.kept[id] {
			return
		}
		if b.chain[id] > keepCost {
			b.kept[id] = true
			return
		}
	}
	for _, a := range in.Args {
		b.need(a, p, seen)
	}
}

// build writes the passes. parts makes it store what reductions of parts find
// instead of results.
func (b *nestBuilder) build() {
	b.keep()
	for p := range b.passes {
		b.Begin()
		b.pass, b.full = p, map[graph.ID]loop.Value{}
		folds := map[graph.ID]loop.Value{}
		for _, i := range b.g.members {
			if in := &b.l.p.Instrs[i]; b.stage[in.Out] == p && b.g.line[in.Out] && b.reduces(in) {
				x := b.value(in.Args[0])
				folds[in.Out] = b.Reduce(in.Op, b.dtype(in.Out), b.dtype(in.Args[0]), x)
			}
		}
		b.stores(p)
		b.Final = true
		b.finals(p, folds)
	}
}

func (b *nestBuilder) dtype(id graph.ID) ir.DType { return b.l.p.Shape(id).DType() }

// stores ends a pass's body. All stores come after all loads, so that a result
// may be written over an operand.
func (b *nestBuilder) stores(p int) {
	type store struct {
		arg int
		v   loop.Value
	}
	var todo []store
	for _, i := range b.g.members {
		in := &b.l.p.Instrs[i]
		if b.stage[in.Out] != p || b.g.line[in.Out] {
			continue
		}
		if b.stored[in.Out] {
			todo = append(todo, store{b.result(in.Out, fuse.Output), b.value(in.Out)})
		} else if b.kept[in.Out] {
			todo = append(todo, store{b.result(in.Out, fuse.Scratch), b.value(in.Out)})
		}
	}
	for _, s := range todo {
		b.Store(s.arg, s.v)
	}
}

// finals writes what a pass computes once for each line.
func (b *nestBuilder) finals(p int, folds map[graph.ID]loop.Value) {
	loads := map[graph.ID]loop.Value{}
	for _, i := range b.g.members {
		in := &b.l.p.Instrs[i]
		out := in.Out
		if _, view := b.g.alias[out]; view || b.stage[out] != p || !b.g.line[out] {
			continue
		}
		if b.g.parts > 1 {
			if b.reduces(in) {
				b.Store(b.result(out, fuse.Part), folds[out])
			}
			continue
		}
		b.line[out] = b.lineValue(in, folds, loads)
		if b.stored[out] {
			b.Store(b.result(out, fuse.Result), b.line[out])
		}
	}
}

// lineValue writes a reduction's end or an op on line values.
func (b *nestBuilder) lineValue(in *graph.Instr, folds, loads map[graph.ID]loop.Value) loop.Value {
	if b.reduces(in) {
		return b.Finish(in.Op, b.dtype(in.Out), folds[in.Out])
	}
	src := make([]loop.Value, len(in.Args))
	for k, id := range in.Args {
		r := b.root(id)
		if b.members[r] != nil {
			src[k] = b.line[r]
			continue
		}
		v, ok := loads[id]
		if !ok {
			v = b.Load(b.lineOperand(id, b.l.p.Shape(in.Out)), b.dtype(id))
			loads[id] = v
		}
		src[k] = v
	}
	return b.member(in, src)
}

// member writes a pointwise member of the group.
func (b *nestBuilder) member(in *graph.Instr, src []loop.Value) loop.Value {
	v := b.Apply(in.Op, b.dtype(in.Out), b.dtype(in.Args[len(in.Args)-1]), src)
	if divides[in.Op] && b.dtype(in.Out).IsInt() {
		if b.divisions == nil {
			b.divisions = map[loop.Value]*graph.Instr{}
		}
		b.divisions[v] = in
	}
	return v
}

// divides has the ops that integers of 0 are no divisors for.
var divides = map[ir.Op]bool{}

func init() {
	for _, op := range []ir.Op{ir.OpFloorDivide, ir.OpTruncDivide, ir.OpRemainder, ir.OpFmod} {
		divides[op] = true
	}
}

// value returns a value in the body of this pass.
func (b *nestBuilder) value(id graph.ID) loop.Value {
	id = b.root(id)
	if b.g.line[id] {
		return b.line[id]
	}
	v, ok := b.full[id]
	if ok {
		return v
	}
	in := b.members[id]
	switch again := in != nil && b.stage[id] < b.pass; {
	case in == nil:
		v = b.Load(b.operand(id), b.dtype(id))
	case again && b.stored[id]:
		v = b.Load(b.again(id, fuse.Output), b.dtype(id))
	case again && b.kept[id]:
		v = b.Load(b.again(id, fuse.Scratch), computeDType(b.dtype(id)))
	default:
		src := make([]loop.Value, len(in.Args))
		for k, a := range in.Args {
			src[k] = b.value(a)
		}
		v = b.member(in, src)
	}
	b.full[id] = v
	return v
}

func (b *nestBuilder) arg(key argKey, make func() fuse.Arg) int {
	n, ok := b.argOf[key]
	if !ok {
		n = len(b.args)
		b.args = append(b.args, make())
		b.args[n].Role, b.args[n].ID = key.role, key.id
		b.argOf[key] = n
	}
	b.args[n].Last = b.pass
	return n
}

// operand returns the number of a value from outside. A reduced dimension goes
// in one stride, or the value is copied so that it does.
func (b *nestBuilder) operand(id graph.ID) int {
	return b.arg(argKey{id, fuse.Input}, func() fuse.Arg {
		v := expand(b.l.vals[id], b.g.key.shape)
		if b.g.reduced && !fuse.ReducedMerge(&v.view, &b.g.mask) {
			v = b.l.materialise(nil, v)
		}
		return fuse.Arg{DType: v.dtype(), Buf: v.buf, View: v.view}
	})
}

// lineOperand returns the number of a value from outside that an op on line
// values with the dimensions of s reads.
func (b *nestBuilder) lineOperand(id graph.ID, s ir.Shape) int {
	return b.arg(argKey{id, fuse.Line}, func() fuse.Arg {
		v := b.l.vals[id]
		if b.cut {
			return b.l.cutOperand(expand(v, s), b.g.lines)
		}
		view, ok := b.g.lineView(v, s)
		if !ok {
			panic("a line operand is of other dimensions")
		}
		return fuse.Arg{DType: v.dtype(), Buf: v.buf, View: b.g.lineStrides(view)}
	})
}

// cutOperand returns a line operand of the kernel that combines parts.
func (l *lowering) cutOperand(v value, lines int) fuse.Arg {
	flat := v.shape.WithDims(lines)
	view, ok := reshapeView(v, flat)
	if !ok {
		v = l.materialise(nil, v)
		view, _ = reshapeView(v, flat)
	}
	view.Rank = 2
	view.Dims[1], view.Strides[1] = lines, view.Strides[0]
	view.Dims[0], view.Strides[0] = 1, 0
	return fuse.Arg{DType: v.dtype(), Buf: v.buf, View: view}
}

// lineStrides gives a view of the line dimensions those of the group: it does
// not move along the reduced ones.
func (g *group) lineStrides(v kernels.View) kernels.View {
	for d := range v.Rank {
		if g.mask[d] {
			v.Dims[d], v.Strides[d] = g.key.shape.Dim(d), 0
		}
	}
	return v
}

// result returns the number of an operand that is stored to. Its buffer is made
// when there is code.
func (b *nestBuilder) result(id graph.ID, role fuse.Role) int {
	return b.arg(argKey{id, role}, func() fuse.Arg {
		a := fuse.Arg{DType: b.dtype(id), Buf: -1}
		switch role {
		case fuse.Output:
			a.View = kernels.Dense(b.g.key.shape.Dims())
			if part, ok := b.l.places[id]; ok {
				a.View = part.view
			}
		case fuse.Scratch:
			a.DType = computeDType(a.DType)
		case fuse.Result:
			if b.cut {
				a.View = kernels.Dense([]int{1, b.g.lines})
				a.View.Strides[0] = 0
				break
			}
			fallthrough
		default:
			a.View = b.g.lineStrides(kernels.Dense(b.g.lineDims()))
			if role == fuse.Part {
				a.DType = computeDType(a.DType)
			}
		}
		return a
	})
}

// again returns the number of a result that is read back. It remembers the pass
// that stores it.
func (b *nestBuilder) again(id graph.ID, role fuse.Role) int {
	return b.argOf[argKey{id, role}]
}
