package graph

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// CutLoop makes the Program of a loop's body, which computes roots from the placeholders, and finds
// the values that it takes from outside: those that depend on no placeholder, but for constants,
// which the body computes.
func CutLoop(w *Walker, placeholders, roots []ir.Value) (body *Program, consts []ir.Value) {
	po := w.Walk(append(append([]ir.Value(nil), placeholders...), roots...))
	defer w.Release()
	inside := make([]bool, len(po.Nodes))   // depends on a placeholder
	constant := make([]bool, len(po.Nodes)) // one number, however often, that depends on no leaf
	for _, v := range placeholders {
		inside[po.Position(v.Node)] = true
	}
	for i, n := range po.Nodes {
		constant[i] = !n.IsLeaf() && (n.Op() == aten.Full || n.NumOutputs() == 1 && n.Out(0).Shape().Numel() == 1 && !n.Op().Spec().Impure)
		for _, x := range n.Inputs() {
			p := po.Position(x.Node)
			inside[i] = inside[i] || inside[p]
			constant[i] = constant[i] && constant[p]
		}
	}
	c := cutter{made: map[*ir.Node][]ir.Value{}, taken: map[ir.Value]ir.Value{}, b: ir.Builder{Lines: ir.LinesOff}}
	for _, v := range placeholders {
		c.made[v.Node] = []ir.Value{c.param(v)}
	}
	for i, n := range po.Nodes {
		if c.made[n] == nil && (inside[i] || constant[i]) {
			c.copy(n)
		}
	}
	out := make([]ir.Value, len(roots))
	for i, v := range roots {
		out[i] = c.value(v)
	}
	return FromValues("body", c.params, out), c.consts
}

// cutter copies nodes of a recorded graph into the body of a loop.
type cutter struct {
	b      ir.Builder
	made   map[*ir.Node][]ir.Value // the copies
	params []ir.Value
	consts []ir.Value            // values of the graph, for the last of the params
	taken  map[ir.Value]ir.Value // the params of consts
}

func (c *cutter) param(v ir.Value) ir.Value {
	i := len(c.params)
	p := ir.NewLeaf(&ParamLeaf{Index: i, Name: fmt.Sprintf("p%d", i)}, v.Shape(), ir.Device{}).Out(0)
	c.params = append(c.params, p)
	return p
}

// value returns the copy of a value; one from outside becomes a parameter.
func (c *cutter) value(v ir.Value) ir.Value {
	if outs := c.made[v.Node]; outs != nil {
		return outs[v.Index]
	}
	p, ok := c.taken[v]
	if !ok {
		p = c.param(v)
		c.taken[v] = p
		c.consts = append(c.consts, v)
	}
	return p
}

func (c *cutter) copy(n *ir.Node) {
	if n.Op().Spec().Ordered {
		panic(ir.NewOpError(n.Op().String(), ir.ErrArg, n.Inputs(), "it runs once, and cannot be part of what a loop or a checkpoint runs several times: use it before or after"))
	}
	in := make([]ir.Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		in[i] = c.value(v)
	}
	c.made[n] = c.b.Emit(n.Op(), n.Attr(), in...)
}

// optimizeLoops rewrites the bodies of a Program's loops, drops kept values that nobody uses, and
// writes loops out that the backend does not run. It returns p itself if there are none.
func optimizeLoops(p *Program, o Options, st *Stats) *Program {
	if !p.hasLoops() {
		return p
	}
	uses := p.uses()
	b := ir.NewConsing(len(p.Instrs))
	params := NewParams(p.Params)
	var ordered []ir.Value
	vals := append(params[:len(params):len(params)], make([]ir.Value, len(p.Shapes)-len(params))...)
	for i := range p.Instrs {
		in := &p.Instrs[i]
		a := ir.Args{Spec: in.Op.Spec(), Attr: in.Attr}
		for _, id := range in.Args {
			a.In = append(a.In, vals[id])
		}
		b.Line = in.Line
		if in.Op != aten.Scan {
			copy(vals[in.Out:], b.Emit(in.Op, in.Attr, a.In...))
			if in.Op.Spec().Ordered {
				ordered = append(ordered, vals[in.Out])
			}
			continue
		}
		l := LoopOf(a)
		if !usesKept(a, uses[in.Out:int(in.Out)+in.NOut]) {
			l.Every = 0
		}
		var inner Stats
		l.Body, inner = Optimize(l.Body, o)
		for name, n := range inner.Applied {
			st.Applied[name] += n
		}
		copy(vals[in.Out:], l.Record(b))
	}
	b.Line = 0
	roots := make([]ir.Value, len(p.Returns))
	for i, id := range p.Returns {
		roots[i] = vals[id]
	}
	return fromOrdered(p.Name, params, ordered, roots)
}

func (p *Program) hasLoops() bool {
	return slices.ContainsFunc(p.Instrs, func(in Instr) bool { return in.Op == aten.Scan })
}

// uses says of each value whether an instruction or the Program's results use it.
func (p *Program) uses() []bool {
	uses := make([]bool, len(p.Shapes))
	for i := range p.Instrs {
		for _, id := range p.Instrs[i].Args {
			uses[id] = true
		}
	}
	for _, id := range p.Returns {
		uses[id] = true
	}
	return uses
}

// usesKept reports whether something uses values that a loop keeps, as its gradient does.
func (p *Program) usesKept() bool {
	if !p.hasLoops() {
		return false
	}
	uses := p.uses()
	return slices.ContainsFunc(p.Instrs, func(in Instr) bool {
		return in.Op == aten.Scan && usesKept(p.Args(&in), uses[in.Out:int(in.Out)+in.NOut])
	})
}

// usesKept reports whether the values that a loop keeps, its last outputs, are among those that are used.
func usesKept(a ir.Args, used []bool) bool {
	if a.Int("every") == 0 {
		return false
	}
	return slices.Contains(used[len(used)-len(a.Tensors("init")):], true)
}

func (l *Loop) keptOutputs() int {
	if l.Every == 0 {
		return 0
	}
	return len(l.Init)
}
