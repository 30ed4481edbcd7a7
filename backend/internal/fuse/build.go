package fuse

import (
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

type argKey struct {
	id   graph.ID
	role Role
}

// builder makes the kernel of a group. Values over the group's dimensions
// belong to the first pass in which they can be known, their *stage*; a later
// pass that needs one again reads it back if it is stored, and otherwise
// recomputes it, or has it kept in a line of scratch memory if recomputing it costs
// more than keepCost.
type builder struct {
	kernelWriter
	gs         *Groups
	g          *group
	members    map[graph.ID]*graph.Instr
	stage      map[graph.ID]int
	chain      map[graph.ID]float64 // what computing the value from memory costs
	stored     map[graph.ID]bool
	kept       map[graph.ID]bool // in scratch memory
	passes     int
	args       []Arg
	argOf      map[argKey]int
	pass       int
	full       map[graph.ID]loop.Value // of this pass
	statistics map[graph.ID]loop.Value
	// partOf has, by reduction, the operand of the kernel that combines parts.
	partOf map[graph.ID]int
	// divisions has the instructions that divide integers, which may be by 0.
	divisions map[loop.Value]*graph.Instr
	// reader has, by row statistic from outside, the member that reads it first.
	reader map[graph.ID]graph.ID
	// cut marks the builder of that kernel: its dimensions are parts and lines.
	cut bool
}

// keepCost is what recomputing a value may cost.
const keepCost = 0.25

func newBuilder(gs *Groups, g *group) *builder {
	b := &builder{
		gs: gs, g: g, members: map[graph.ID]*graph.Instr{}, stage: map[graph.ID]int{}, chain: map[graph.ID]float64{},
		stored: map[graph.ID]bool{}, kept: map[graph.ID]bool{}, argOf: map[argKey]int{}, statistics: map[graph.ID]loop.Value{},
	}
	b.k.Axis = g.axis
	for _, i := range g.members {
		in := &gs.p.Instrs[i]
		b.members[in.Out] = in
		if gs.leaves(in.Out, g) {
			b.stored[b.root(in.Out)] = true
		}
	}
	for _, i := range g.members {
		b.schedule(&gs.p.Instrs[i])
	}
	if len(g.sinks) > 0 {
		b.passes = 1
	}
	return b
}

// root returns what a value is a view of within the group.
func (b *builder) root(id graph.ID) graph.ID {
	if r, ok := b.g.alias[id]; ok {
		return r
	}
	return id
}

// schedule finds the stage of a member.
func (b *builder) schedule(in *graph.Instr) {
	out := in.Out
	cost := costOf(in.Op)
	stage := 0
	for _, id := range in.Args {
		if b.members[id] == nil {
			continue
		}
		at := b.stage[id]
		if b.g.statistic[id] && !b.g.statistic[out] {
			at++
		}
		stage = max(stage, at)
		if !b.stored[id] {
			cost += b.chain[id]
		}
	}
	b.stage[out], b.chain[out] = stage, cost
	if b.g.statistic[out] || b.stored[out] {
		b.passes = max(b.passes, stage+1)
	}
}

// reduces reports whether a member is a reduction.
func (b *builder) reduces(in *graph.Instr) bool { return in.Op.Spec().Reduces() }

// keep finds the values that are kept for later passes. Only a line that is a
// row is short enough for that.
func (b *builder) keep() {
	if b.g.axis != loop.Columns {
		return
	}
	for p := b.passes - 1; p > 0; p-- {
		seen := map[graph.ID]bool{}
		for _, i := range b.g.members {
			in := &b.gs.p.Instrs[i]
			if b.stage[in.Out] != p {
				continue
			}
			switch {
			case b.g.statistic[in.Out]:
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
func (b *builder) need(id graph.ID, p int, seen map[graph.ID]bool) {
	in := b.members[id]
	if in == nil || b.g.statistic[id] || seen[id] {
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
func (b *builder) build() {
	b.keep()
	for p := range b.passes {
		b.begin()
		b.pass, b.full = p, map[graph.ID]loop.Value{}
		reductions := map[graph.ID]loop.Value{}
		for _, i := range b.g.members {
			if in := &b.gs.p.Instrs[i]; b.stage[in.Out] == p && b.g.statistic[in.Out] && b.reduces(in) {
				x := b.value(in.Args[0])
				reductions[in.Out] = b.reduce(in.Op, b.dtype(in.Out), b.dtype(in.Args[0]), x, b.g.long)
			}
		}
		b.stores(p)
		b.final = true
		b.finals(p, reductions)
	}
}

func (b *builder) dtype(id graph.ID) ir.DType { return b.gs.p.Shape(id).DType() }

// stores ends a pass's body. All stores come after all loads, so that a result
// may be written over an operand.
func (b *builder) stores(p int) {
	var todo []store
	for _, i := range b.g.members {
		in := &b.gs.p.Instrs[i]
		if b.stage[in.Out] != p || b.g.statistic[in.Out] {
			continue
		}
		if b.stored[in.Out] {
			todo = append(todo, store{b.result(in.Out, Output), b.value(in.Out)})
		} else if b.kept[in.Out] {
			todo = append(todo, store{b.result(in.Out, Scratch), b.value(in.Out)})
		}
	}
	for n := range b.g.sinks {
		arg, v := b.sink(n)
		todo = append(todo, store{arg, v})
	}
	b.storeAll(todo)
}

// store is a result that is still to be stored to an operand.
type store struct {
	arg int
	v   loop.Value
}

func (b *builder) storeAll(todo []store) {
	for _, s := range todo {
		b.store(s.arg, s.v)
	}
}

// finals writes what a pass computes once for each line. As in its body the stores come last.
func (b *builder) finals(p int, reductions map[graph.ID]loop.Value) {
	loads := map[graph.ID]loop.Value{}
	var todo []store
	for _, i := range b.g.members {
		in := &b.gs.p.Instrs[i]
		out := in.Out
		if _, view := b.g.alias[out]; view || b.stage[out] != p || !b.g.statistic[out] {
			continue
		}
		if b.g.parts > 1 {
			if b.reduces(in) {
				b.store(b.result(out, Part), reductions[out])
			}
			continue
		}
		b.statistics[out] = b.statistic(in, reductions, loads)
		if b.stored[out] {
			todo = append(todo, store{b.result(out, Result), b.statistics[out]})
		}
	}
	b.storeAll(todo)
}

// statistic writes the end of a reduction or an op on row statistics.
func (b *builder) statistic(in *graph.Instr, reductions, loads map[graph.ID]loop.Value) loop.Value {
	if b.reduces(in) {
		return b.finish(in.Op, b.dtype(in.Out), reductions[in.Out])
	}
	src := make([]loop.Value, len(in.Args))
	for k, id := range in.Args {
		r := b.root(id)
		if b.members[r] != nil {
			src[k] = b.statistics[r]
			continue
		}
		v, ok := loads[id]
		if !ok {
			v = b.load(b.statisticOperand(id, b.gs.p.Shape(in.Out)), b.dtype(id))
			loads[id] = v
			if b.reader == nil {
				b.reader = map[graph.ID]graph.ID{}
			}
			if _, again := b.reader[id]; !again {
				b.reader[id] = in.Out
			}
		}
		src[k] = v
	}
	return b.member(in, src)
}

// member writes a pointwise member of the group.
func (b *builder) member(in *graph.Instr, src []loop.Value) loop.Value {
	v := b.apply(in.Op, b.dtype(in.Out), b.dtype(in.Args[len(in.Args)-1]), src)
	if in.Op.Spec().Divides && b.dtype(in.Out).IsInt() {
		if b.divisions == nil {
			b.divisions = map[loop.Value]*graph.Instr{}
		}
		b.divisions[v] = in
	}
	return v
}

// value returns a value in the body of this pass.
func (b *builder) value(id graph.ID) loop.Value {
	id = b.root(id)
	if b.g.statistic[id] {
		return b.statistics[id]
	}
	v, ok := b.full[id]
	if ok {
		return v
	}
	in := b.members[id]
	switch again := in != nil && b.stage[id] < b.pass; {
	case in == nil:
		v = b.load(b.operand(id), b.dtype(id))
	case again && b.stored[id]:
		v = b.load(b.again(id, Output), b.dtype(id))
	case again && b.kept[id]:
		v = b.load(b.again(id, Scratch), loop.ComputeDType(b.dtype(id)))
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

func (b *builder) arg(key argKey, make func() Arg) int {
	n, ok := b.argOf[key]
	if !ok {
		n = len(b.args)
		b.args = append(b.args, make())
		b.args[n].Role, b.args[n].ID = key.role, key.id
		if b.argOf != nil { // a template has each operand once
			b.argOf[key] = n
		}
	}
	b.args[n].Last = b.pass
	return n
}

// operand returns the number of a value from outside. A reduced dimension goes
// in one stride, or the value is copied so that it does. So is one that is read
// again and again with its elements apart, or whose elements are narrow.
func (b *builder) operand(id graph.ID) int {
	if c, ok := b.g.chosen[id]; ok {
		return b.chosenOperand(id, &c)
	}
	return b.arg(argKey{id, Input}, func() Arg {
		v, dims := b.gs.b.Value(id), b.g.key.shape.Dims()
		v.View = v.View.Expand(dims)
		if b.g.reduced && b.g.beside {
			v = b.beside(b.dtype(id), v)
		} else if once, ok := apart(&v.View, b.gs.singly(b.dtype(id))); ok {
			v = b.gs.b.Copy(b.dtype(id), Value{v.Buf, once})
			v.View = v.View.Expand(dims)
		} else if repeated, ok := repeat(&v.View); ok && !b.g.reduced {
			v = b.gs.b.Copy(b.dtype(id), Value{v.Buf, repeated})
			v.View = v.View.Expand(dims)
		}
		if b.g.reduced && !reducedMerge(&v.View, &b.g.mask) {
			v = b.gs.b.Copy(b.dtype(id), v)
		}
		return Arg{DType: b.dtype(id), Buf: v.Buf, View: v.View}
	})
}

// beside returns an operand of a group whose lines are computed beside each other: one that is read again
// and again is copied so that elements of neighbouring lines adjoin.
func (b *builder) beside(d ir.DType, v Value) Value {
	dims := b.g.key.shape.Dims()
	last := 0 // the last dimension that is not reduced
	for i, n := range dims {
		if n > 1 && !b.g.mask[i] {
			last = i
		}
	}
	once, uses := usedOnce(&v.View)
	if step := v.View.Strides[last]; uses < apartUses || step == 0 || step == 1 {
		return v
	}
	var order []int
	for i := range dims {
		if i != last {
			order = append(order, i)
		}
	}
	order = append(order, last)
	v = b.gs.b.Copy(d, Value{v.Buf, once.Permute(order)})
	v.View = v.View.Permute(inverseOf(order)).Expand(dims)
	return v
}

// inverseOf returns the order of dimensions that undoes another.
func inverseOf(order []int) []int {
	back := make([]int, len(order))
	for to, from := range order {
		back[from] = to
	}
	return back
}

// statisticOperand returns the number of a value from outside that an op on row
// statistics with the dimensions of s reads.
func (b *builder) statisticOperand(id graph.ID, s ir.Shape) int {
	return b.arg(argKey{id, Statistic}, func() Arg {
		v := b.gs.b.Value(id)
		if b.cut {
			return b.cutOperand(id, Value{v.Buf, v.View.Expand(s.Dims())})
		}
		view, ok := b.g.statisticView(v.View, s)
		if !ok {
			if b.gs.follows != nil {
				panic(ErrStale)
			}
			panic("a row statistic is of other dimensions")
		}
		return Arg{DType: b.dtype(id), Buf: v.Buf, View: b.g.lineStrides(view)}
	})
}

// cutOperand returns a row statistic as an operand of the kernel that combines parts.
func (b *builder) cutOperand(id graph.ID, v Value) Arg {
	flat := []int{b.g.lines}
	view, ok := v.View.Reshape(flat)
	if !ok {
		v = b.gs.b.Copy(b.dtype(id), v)
		view, _ = v.View.Reshape(flat)
	}
	view.Rank = 2
	view.Dims[1], view.Strides[1] = b.g.lines, view.Strides[0]
	view.Dims[0], view.Strides[0] = 1, 0
	return Arg{DType: b.dtype(id), Buf: v.Buf, View: view}
}

// lineStrides gives a view of the line dimensions those of the group: it does
// not move along the reduced ones.
func (g *group) lineStrides(v strided.View) strided.View {
	for d := range v.Rank {
		if g.mask[d] {
			v.Dims[d], v.Strides[d] = g.key.shape.Dim(d), 0
		}
	}
	return v
}

// result returns the number of an operand that is stored to. Its buffer is made
// when there is code.
func (b *builder) result(id graph.ID, role Role) int {
	return b.arg(argKey{id, role}, func() Arg {
		a := Arg{DType: b.dtype(id), Buf: None}
		switch role {
		case Output:
			a.View = strided.Dense(b.g.key.shape.Dims())
			if part, ok := b.gs.places[id]; ok {
				a.Buf, a.View = part.Buf, part.View
			}
		case Scratch:
			a.DType = loop.ComputeDType(a.DType)
		case Result:
			if b.cut {
				a.View = strided.Dense([]int{1, b.g.lines})
				a.View.Strides[0] = 0
				break
			}
			fallthrough
		default:
			a.View = b.g.lineStrides(strided.Dense(b.g.lineDims()))
			if role == Part {
				a.DType = loop.ComputeDType(a.DType)
			}
		}
		return a
	})
}

// again returns the number of a result that is read back. It remembers the pass
// that stores it.
func (b *builder) again(id graph.ID, role Role) int {
	return b.argOf[argKey{id, role}]
}

// combine returns the builder of the kernel that makes results of what reductions found in the
// parts of lines. It also computes the ops on row statistics.
func (b *builder) combine() *builder {
	g := b.g
	c := &builder{gs: b.gs, g: &group{key: g.key, members: g.members, nest: &nest{}}, members: b.members, stage: b.stage, stored: b.stored,
		argOf: map[argKey]int{}, statistics: map[graph.ID]loop.Value{}}
	*c.g.nest = *g.nest
	c.g.parts = 0
	c.k.Axis = loop.Rows
	c.begin()
	b.partOf = map[graph.ID]int{}
	c.cut = true
	reductions := map[graph.ID]loop.Value{}
	for _, i := range g.members {
		in := &b.gs.p.Instrs[i]
		if !g.statistic[in.Out] || !b.reduces(in) {
			continue
		}
		d := loop.ComputeDType(b.dtype(in.Out))
		k := c.arg(argKey{in.Out, Input}, func() Arg {
			return Arg{DType: d, Buf: None, View: strided.Dense([]int{g.parts, g.lines})}
		})
		b.partOf[in.Out] = k
		v := c.load(k, d)
		reductions[in.Out] = c.add(loop.Instr{Code: loop.Reduce, Op: in.Op, DType: d, In: [3]loop.Value{v}, N: 1})
	}
	c.final = true
	c.finals(0, reductions)
	return c
}

// kernel returns what was built.
func (b *builder) kernel(instrs []*graph.Instr, parts int) *Kernel {
	return &Kernel{Loop: &b.k, Args: b.args, Parts: parts, Lines: b.g.lines, Cost: b.cost, Instrs: instrs, Divisions: b.divisions, Ordered: b.g.sums()}
}
