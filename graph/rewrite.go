package graph

import (
	"github.com/loris-ml/loris/ir"
)

// Rule is one small named rewrite. Apply sees an op that is about to be made
// and returns what to make instead, or false to leave it. What it makes is
// rewritten in turn.
type Rule struct {
	Name  string
	Apply func(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool)
}

// Options choose what Optimize does.
type Options struct {
	// Supports says which composites the backend computes itself; the others are
	// decomposed. Nil: none.
	Supports func(ir.Op) bool
	// Takes says which uses of those composites it does. Nil: all.
	Takes func(ir.Args) bool
	// NoRules leaves everything but decomposition, common subexpressions and dead
	// code alone.
	NoRules bool
}

// Stats counts what a rewriting did.
type Stats struct {
	// Before and After are the numbers of instructions.
	Before, After int
	// Applied counts the uses of each rule by name.
	Applied map[string]int
}

// Optimize returns the Program that a backend compiles: composites it lacks
// decomposed, equal subexpressions made one, constants folded, algebra and
// layout simplified, dead code dropped. Parameters stay as they are.
func Optimize(p *Program, o Options) (*Program, Stats) {
	st := Stats{Before: len(p.Instrs), Applied: map[string]int{}}
	b := ir.NewConsing()
	b.Rewrite = func(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
		sp := op.Spec()
		if use := (ir.Args{Spec: sp, Attr: attr, In: in}); sp.Composite() && (o.Supports == nil || !o.Supports(op) || o.Takes != nil && !o.Takes(use)) {
			st.Applied["decompose"]++
			return sp.Decompose(b, use), true
		}
		if o.NoRules {
			return nil, false
		}
		for i := range rules {
			if out, ok := rules[i].Apply(b, op, attr, in); ok {
				st.Applied[rules[i].Name]++
				return out, true
			}
		}
		return nil, false
	}
	params := NewParams(p.Params)
	roots := p.Build(b, params)
	out := FromValues(p.Name, params, roots)
	st.After = len(out.Instrs)
	return out, st
}

// Rules returns the rewrites in the order in which they are tried.
func Rules() []Rule { return append([]Rule(nil), rules...) }

var rules []Rule

func init() {
	rules = []Rule{
		{"fold-pointwise", foldPointwise},
		{"fold-layout", foldLayout},
		{"identity", identity},
		{"involution", involution},
		{"merge-views", mergeViews},
		{"noop-view", noopView},
		{"drop-expand", dropExpand},
		{"merge-casts", mergeCasts},
	}
}

// constant returns the value of a `full` node.
func constant(v ir.Value) (any, bool) {
	if v.Node.Op() != ir.OpFull || v.Node.IsLeaf() {
		return nil, false
	}
	return v.Node.Args().Get("fill_value"), true
}

func asFloat(v any) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	return v.(float64)
}

func asInt(v any) int64 {
	if f, ok := v.(float64); ok {
		return int64(f)
	}
	return v.(int64)
}

// isConst reports whether v is a constant equal to x.
func isConst(v ir.Value, x float64) bool {
	c, ok := constant(v)
	return ok && asFloat(c) == x
}

// identity: x*1, x/1, x-0, pow(x,1) and, for integers, x+0 are x. A float x+0
// is not: it turns -0 into +0.
func identity(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if len(in) != 2 {
		return nil, false
	}
	x, y := in[0], in[1]
	switch op {
	case ir.OpMul:
		if isConst(x, 1) {
			x, y = y, x
		}
		if !isConst(y, 1) {
			return nil, false
		}
	case ir.OpDiv, ir.OpPow:
		if !isConst(y, 1) || !x.DType().IsFloat() {
			return nil, false
		}
	case ir.OpSub:
		if !isPlusZero(y) {
			return nil, false
		}
	case ir.OpAdd:
		if isConst(x, 0) {
			x, y = y, x
		}
		if x.DType().IsFloat() || !isConst(y, 0) {
			return nil, false
		}
	default:
		return nil, false
	}
	s, ok := ir.BroadcastDims(in[0].Shape(), in[1].Shape())
	if !ok || !s.SameDims(x.Shape()) {
		return nil, false
	}
	return []ir.Value{x}, true
}

// isPlusZero: x-(-0) would turn -0 into +0.
func isPlusZero(v ir.Value) bool {
	c, ok := constant(v)
	if !ok {
		return false
	}
	f := asFloat(c)
	return f == 0 && 1/f > 0
}

// involution: neg(neg x), logical_not on bool twice, bitwise_not twice are x.
func involution(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	switch op {
	case ir.OpNeg, ir.OpBitwiseNot:
	case ir.OpLogicalNot:
		if in[0].Node.Op() == op && in[0].Node.Inputs()[0].DType() != ir.Bool {
			return nil, false
		}
	default:
		return nil, false
	}
	if in[0].Node.Op() != op {
		return nil, false
	}
	return []ir.Value{in[0].Node.Inputs()[0]}, true
}

// mergeCasts: a cast to the dtype a value has is the value; a widening float
// cast followed by another cast is one cast.
func mergeCasts(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != ir.OpCast {
		return nil, false
	}
	to := ir.Args{Spec: op.Spec(), Attr: attr, In: in}.DType("dtype")
	x := in[0]
	if x.DType() == to {
		return in[:1:1], true
	}
	if x.Node.Op() == ir.OpCast {
		y := x.Node.Inputs()[0]
		if y.DType().IsFloat() && x.DType().IsFloat() && ir.PromoteTypes(y.DType(), x.DType()) == x.DType() {
			return []ir.Value{b.Cast(y, to)}, true
		}
	}
	return nil, false
}
