package randprog

import (
	"sync"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// byCategory groups the op table.
var byCategory = sync.OnceValue(func() map[ir.Category][]*ir.Spec {
	out := map[ir.Category][]*ir.Spec{}
	for _, sp := range ir.Ops() {
		out[sp.Category] = append(out[sp.Category], sp)
	}
	return out
})

// statement adds one statement, if what it tries turns out to fit.
func (g *gen) statement() {
	switch n := g.rng.IntN(40); {
	case n < 20:
		g.bySchema()
	case n < 24:
		g.number()
	case n < 26:
		g.divide()
	case n < 29:
		g.indexed()
	case n < 31:
		g.layer()
	case n < 32:
		g.random()
	case n < 36:
		g.grad()
	case n == 36:
		g.mark(Read)
	case n == 37:
		g.mark([]Kind{Keep, Discard}[g.rng.IntN(2)])
	case n == 38:
		g.carry()
	default:
		v := g.rng.IntN(len(g.p.Vars))
		g.assign(v)
		g.load(v)
	}
}

func op(name string) ir.Op {
	o, ok := ir.Lookup(name)
	if !ok {
		panic("randprog: there is no op " + name)
	}
	return o
}

func (g *gen) call1(name string, args ...any) (Reg, bool) {
	out, ok := g.call(op(name), args)
	if !ok {
		return 0, false
	}
	return out[0], true
}

// number is a binary op of a register and a plain number, on either side.
func (g *gen) number() {
	r, ok := g.pick(anyReg)
	if !ok {
		return
	}
	names := []string{"add", "sub", "mul", "div", "maximum", "minimum", "gt", "le", "ne", "atan2"}
	name := names[g.rng.IntN(len(names))]
	n := g.num()
	if name == "div" && n.Base >= -1 && n.Base <= 0 {
		n.Base = 2
	}
	if g.one(3) && name != "div" {
		g.call1(name, n, r)
		return
	}
	g.call1(name, r, n)
}

// divide is one of the ops that refuse an integer divisor of 0.
func (g *gen) divide() {
	x, ok := g.pick(func(_ Reg, s ir.Shape) bool { return s.DType() != ir.Bool })
	if !ok {
		return
	}
	names := []string{"floor_divide", "trunc_divide", "remainder", "fmod", "pow"}
	name := names[g.rng.IntN(len(names))]
	if g.one(2) {
		g.call1(name, x, Num{Base: float64(1 + g.rng.IntN(4)), Slope: float64(g.rng.IntN(2)), Int: true})
		return
	}
	y, ok := g.pick(func(_ Reg, s ir.Shape) bool {
		_, fits := ir.BroadcastDims(s, g.p.Shapes[x])
		return fits && s.DType() != ir.Bool
	})
	if !ok {
		return
	}
	// No divisor is 0, no exponent negative.
	if y, ok = g.call1("abs", y); ok {
		if y, ok = g.call1("clamp", y, Num{Base: 1, Int: true}, Num{Base: 5, Int: true}); ok {
			g.call1(name, x, y)
		}
	}
}

// index returns a register of integers in [0, n), of the given rank, or of any
// if that is negative.
func (g *gen) index(n, rank int) (Reg, bool) {
	if n == 0 {
		return 0, false
	}
	fits := func(s ir.Shape) bool { return rank < 0 || s.Rank() == rank }
	if r, ok := g.pick(func(r Reg, s ir.Shape) bool { return g.regs[r].below > 0 && g.regs[r].below <= n && fits(s) }); ok && g.one(2) {
		return r, true
	}
	r, ok := g.pick(func(r Reg, s ir.Shape) bool { return intReg(r, s) && fits(s) })
	if !ok {
		return 0, false
	}
	if r, ok = g.call1("remainder", r, Num{Base: float64(n), Int: true}); !ok {
		return 0, false
	}
	if d := g.p.Shapes[r].DType(); d != ir.I64 && d != ir.I32 {
		if r, ok = g.call1("cast", r, ir.I64); !ok {
			return 0, false
		}
	}
	g.regs[r].below = n
	return r, true
}

// indexed is an op with an index operand, whose elements are in range whatever
// the step.
func (g *gen) indexed() {
	x, ok := g.pick(func(_ Reg, s ir.Shape) bool { return s.Rank() > 0 })
	if !ok {
		return
	}
	s := g.p.Shapes[x]
	dim := g.rng.IntN(s.Rank())
	name := choose(g, []string{"gather", "scatter", "scatter_add", "scatter_reduce", "index_select", "index_add",
		"index_copy", "embedding", "take", "take_along_dim", "one_hot", "index", "index_put", "cross_entropy", "nll_loss"}, "")
	switch name {
	case "gather", "take_along_dim":
		if i, ok := g.index(s.Dim(dim), s.Rank()); ok {
			if name == "gather" {
				g.call1(name, x, dim, i)
			} else {
				g.call1(name, x, i, dim)
			}
		}
	case "scatter", "scatter_add", "scatter_reduce":
		i, ok := g.index(s.Dim(dim), s.Rank())
		src, ok2 := g.pick(func(_ Reg, t ir.Shape) bool { return t.DType() == s.DType() && t.Rank() == s.Rank() })
		if !ok || !ok2 {
			return
		}
		args := []any{x, dim, i, src}
		if name == "scatter_reduce" {
			args = append(args, choose(g, []string{"sum", "prod", "mean", "amax", "amin"}, ""), g.one(2))
		}
		g.call1(name, args...)
	case "index_select":
		if i, ok := g.index(s.Dim(dim), 1); ok {
			g.call1(name, x, dim, i)
		}
	case "index_add", "index_copy":
		i, ok := g.index(s.Dim(dim), 1)
		if !ok {
			return
		}
		if src, ok := g.call1("index_select", x, dim, i); ok {
			g.call1(name, x, dim, i, src)
		}
	case "embedding":
		if i, ok := g.index(s.Dim(0), -1); ok {
			g.call1(name, x, i, -1)
		}
	case "take":
		if i, ok := g.index(s.Numel(), -1); ok {
			g.call1(name, x, i)
		}
	case "one_hot":
		if i, ok := g.index(3, -1); ok {
			g.call1(name, i, 3)
		}
	case "index":
		if i, ok := g.index(s.Dim(0), -1); ok {
			g.call1(name, x, []Reg{i})
		}
	case "index_put":
		i, ok := g.index(s.Dim(0), -1)
		v, ok2 := g.pick(func(_ Reg, t ir.Shape) bool { return t.DType() == s.DType() && t.Rank() < s.Rank() })
		if ok && ok2 {
			g.call1(name, x, []Reg{i}, v, true)
		}
	default:
		g.classes(name)
	}
}

// classes is a loss over class indices.
func (g *gen) classes(name string) {
	x, ok := g.pick(func(r Reg, s ir.Shape) bool { return floatReg(r, s) && s.Rank() == 2 && s.Numel() > 0 })
	if !ok {
		return
	}
	i, ok := g.index(g.p.Shapes[x].Dim(1), 1)
	if !ok {
		return
	}
	if i, ok = g.call1("cast", i, ir.I64); !ok {
		return
	}
	g.call1(name, x, i, nil, choose(g, strs["reduction"], ""), -100)
}

// random is a random op. Its seed is the session's.
func (g *gen) random() {
	if g.o.NoRandom {
		return
	}
	dims := any(g.dims())
	dt := choose(g, []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16}, 0)
	var name string
	var args []any
	switch g.rng.IntN(6) {
	case 0:
		name, args = "normal", []any{dims, dt}
	case 1:
		name, args = "randint", []any{g.rng.IntN(3) - 2, 1 + g.rng.IntN(5), dims, choose(g, []ir.DType{ir.I64, ir.I32, ir.U8}, 0)}
		if args[0].(int) < 0 {
			args[3] = ir.I64
		}
	case 2:
		name, args = "randperm", []any{1 + g.rng.IntN(6), ir.I64}
	case 3, 4:
		r, ok := g.pick(func(r Reg, s ir.Shape) bool { return floatReg(r, s) && g.regs[r].exact })
		if !ok {
			return
		}
		name, args = "dropout", []any{r, Num{Base: 0.5}, true}
		if g.one(3) {
			name, args = "bernoulli", []any{r}
		}
	default:
		name, args = "uniform", []any{dims, dt}
	}
	o, at := op(name), len(g.p.Stmts)
	g.emit(Stmt{Kind: Random, Op: o, Args: args}, func(b *ir.Builder, val func(Reg) ir.Value) []ir.Value {
		bound := Bind(args, 0, func(r Reg) any { return val(r) }, nil)
		return b.CallNamed(o, bound, []ir.Named{ir.A("seed", g.seed), ir.A("offset", at)})
	})
}

// load makes a register of a variable's value.
func (g *gen) load(v int) {
	from := g.regs[g.p.Vars[v]]
	val := ir.NewLeaf(&dataLeaf{from.data}, from.val.Shape(), ir.Device{}).Out(0)
	for i := range g.p.Stmts {
		if st := &g.p.Stmts[i]; st.Kind == Assign && st.Var == v {
			from = g.regs[st.Args[0].(Reg)]
			val = from.val
		}
	}
	r := g.add(val, info{data: from.data})
	g.p.Stmts = append(g.p.Stmts, Stmt{Kind: Load, Var: v, Out: []Reg{r}})
}

// assign gives a variable the value of a register of its shape, kept moderate.
func (g *gen) assign(v int) {
	s := g.p.Shapes[g.p.Vars[v]]
	r, ok := g.pick(func(_ Reg, t ir.Shape) bool { return t == s })
	if !ok {
		return
	}
	if g.o.Tame && s.DType().IsFloat() {
		if r, ok = g.call1("tanh", r); !ok {
			return
		}
	}
	g.regs[r].used = true
	g.p.Stmts = append(g.p.Stmts, Stmt{Kind: Assign, Var: v, Args: []any{r}})
}

// mark reads or marks a register that is not an input.
func (g *gen) mark(k Kind) {
	r, ok := g.pick(func(r Reg, _ ir.Shape) bool { return int(r) >= len(g.p.Inputs) })
	if ok {
		g.p.Stmts = append(g.p.Stmts, Stmt{Kind: k, Args: []any{r}})
	}
}

// carry brings a value over from the step before.
func (g *gen) carry() {
	if g.o.NoCarry {
		return
	}
	r, ok := g.pick(func(r Reg, _ ir.Shape) bool { return int(r) >= len(g.p.Inputs) })
	if !ok {
		return
	}
	val := ir.NewLeaf(&dataLeaf{g.regs[r].data}, g.p.Shapes[r], ir.Device{}).Out(0)
	out := g.add(val, info{data: g.regs[r].data, below: g.regs[r].below})
	g.p.Stmts = append(g.p.Stmts, Stmt{Kind: Carry, Args: []any{r}, Out: []Reg{out}})
}

// grad differentiates a register with respect to others, most of them such as
// it depends on, among them intermediate ones.
func (g *gen) grad() {
	y, ok := g.pick(func(r Reg, s ir.Shape) bool { return floatReg(r, s) && int(r) >= len(g.p.Inputs) })
	if !ok {
		return
	}
	po := g.w.Walk([]ir.Value{g.regs[y].val})
	args := []any{y}
	for range 1 + g.rng.IntN(3) {
		if r, ok := g.pick(func(r Reg, s ir.Shape) bool {
			return floatReg(r, s) && r < y && (po.Contains(g.regs[r].val.Node) || g.one(8))
		}); ok {
			args = append(args, r)
		}
	}
	g.w.Release()
	if len(args) == 1 {
		return
	}
	g.emit(Stmt{Kind: Grad, Args: args}, func(b *ir.Builder, val func(Reg) ir.Value) []ir.Value {
		wrt := make([]ir.Value, 0, len(args)-1)
		for _, a := range args[1:] {
			wrt = append(wrt, val(a.(Reg)))
		}
		defer g.w.Release()
		return graph.Grad(b, &g.w, []ir.Value{val(y)}, nil, wrt)
	})
}
