package graph

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// Rule is one small named rewrite. Apply is called with an op before it is made. It returns the values
// to use instead, or false to keep the op. The ops that it makes are rewritten in turn.
type Rule struct {
	Name  string
	Apply func(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool)
}

// Options choose what Optimize does.
type Options struct {
	// Supports says which composites the backend computes itself; the others are
	// decomposed. Nil: none.
	Supports func(ir.Op) bool
	// Takes says which uses of those composites the backend computes. Nil: all.
	Takes func(ir.Args) bool
	// Replace, when set, may give an op other values, before all else; the ops that it makes are replaced
	// in turn.
	Replace func(b *ir.Builder, a ir.Args) ([]ir.Value, bool)
	// Decompositions, when set, keeps what composites are for further Programs.
	Decompositions *ir.Decompositions
	// Templates, when set, keeps results for Programs that differ in sizes only.
	Templates *Templates
	// NoRules turns the Rules off: composites are decomposed, common subexpressions merged and dead
	// code dropped, and nothing else changes.
	NoRules bool
	// Rematerialize computes cheap values again where they are used much later, in place of keeping them,
	// and those of parameters alone where they are used first.
	Rematerialize bool
}

// Stats counts what a rewriting did.
type Stats struct {
	// Before and After are the numbers of instructions.
	Before, After int
	// Applied counts the uses of each rule by name.
	Applied map[string]int
	// Structure is Program.Structure of what was rewritten, if there were Templates.
	Structure ir.Hash
}

// Optimize returns the Program that a backend compiles: composites it lacks
// decomposed, equal subexpressions made one, constants folded, algebra and
// layout simplified, dead code dropped. Parameters stay as they are, and so do the uses of ordered ops
// and their order.
func Optimize(p *Program, o Options) (*Program, Stats) {
	if o.Templates != nil {
		return o.Templates.optimize(p, o)
	}
	return optimize(p, o, nil)
}

// optimize rewrites a Program; rec, if not nil, takes what a Template needs to know.
func optimize(p *Program, o Options, rec *recording) (*Program, Stats) {
	st := Stats{Before: len(p.Instrs), Applied: map[string]int{}}
	b := ir.NewConsing(2 * len(p.Instrs))
	b.Decompositions = o.Decompositions
	inParts := p.needsParts(o)
	b.Rewrite = func(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
		sp := op.Spec()
		use := ir.Args{Spec: sp, Attr: attr, In: in}
		if o.Replace != nil {
			if out, ok := o.Replace(b, use); ok {
				st.Applied["replace"]++
				return out, true
			}
		}
		if use.Decomposition() != nil && (o.Supports == nil || !o.Supports(op) || o.Takes != nil && !o.Takes(use) || use.HasComplex() && !sp.ComplexKernels || inParts && gradientOfParts(sp)) {
			st.Applied["decompose"]++
			if rec != nil {
				rec.decomposed(use)
			}
			return b.Decompose(use), true
		}
		if op == aten.Scan && o.Supports != nil && !o.Supports(op) {
			st.Applied["unroll"]++
			return LoopOf(use).unroll(b), true
		}
		if o.NoRules {
			return nil, false
		}
		for i := range rules {
			if out, ok := rules[i].Apply(b, op, attr, in); ok {
				st.Applied[rules[i].Name]++
				if rec != nil && rules[i].Name == "fold-pointwise" {
					rec.computed(out[0], in)
				}
				return out, true
			}
		}
		return nil, false
	}
	params := NewParams(p.Params)
	roots, ordered := p.replay(b, params)
	out := optimizeLoops(fromOrdered(p.Name, params, ordered, roots), o, &st)
	out.inferred = true
	if o.Rematerialize {
		out = repeatForSums(rematerialize(delay(widen(widenParts(out)))))
	}
	st.After = len(out.Instrs)
	return out, st
}

// gradientOfParts reports whether the gradient of a composite is that of its decomposition.
func gradientOfParts(sp *ir.Spec) bool { return sp.VJP == nil && sp.Differentiable() }

// needsParts reports whether composites whose gradient is that of their decomposition are decomposed
// where the backend could compute them whole: the Program has the gradient of a loop, as of a recurrent
// layer, and would run the layer a second time in parts.
func (p *Program) needsParts(o Options) bool {
	whole := func(in *Instr) bool {
		sp := in.Op.Spec()
		return sp.Decompose != nil && gradientOfParts(sp) && o.Supports != nil && o.Supports(in.Op)
	}
	for i := range p.Instrs {
		if whole(&p.Instrs[i]) {
			return p.usesKept()
		}
	}
	return false
}

// Rules returns the rewrites in the order in which they are tried.
func Rules() []Rule { return append([]Rule(nil), rules...) }

var rules []Rule

func init() {
	rules = []Rule{
		{"fold-pointwise", foldPointwise},
		{"fold-layout", foldLayout},
		{"same-on-integers", sameOnIntegers},
		{"identity", identity},
		{"involution", involution},
		{"single-dots", singleDots},
		{"integer-dots", integerDots},
		{"outer-products", outerProducts},
		{"complex-views", complexViews},
		{"merge-views", mergeViews},
		{"noop-view", noopView},
		{"slice-of-cat", sliceOfCat},
		{"drop-expand", dropExpand},
		{"merge-casts", mergeCasts},
		{"cast-selected", castSelected},
		{"gather-one", gatherOne},
		{"reduce-permuted", reducePermuted},
		{"permute-back", permuteBack},
	}
}

// constant returns the value of a `full` node.
func constant(v ir.Value) (any, bool) {
	if v.Node.Op() != aten.Full || v.Node.IsLeaf() {
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

// isConst reports whether v is a constant equal to x, and no -0.
func isConst(v ir.Value, x float64) bool {
	c, ok := constant(v)
	if !ok {
		return false
	}
	f := asFloat(c)
	return f == x && math.Signbit(f) == math.Signbit(x)
}

// identity: an operand that changes nothing goes, if the other has the result's dimensions.
func identity(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	n := op.Spec().Neutral
	if n.Of == ir.NoOperand {
		return nil, false
	}
	x, y := in[0], in[1]
	if n.Of != ir.SecondOperand && isConst(x, n.Value) {
		x, y = y, x
	}
	if !isConst(y, n.Value) || n.Of == ir.EitherInteger && x.DType().IsFloat() {
		return nil, false
	}
	s, ok := ir.BroadcastDims(in[0].Shape(), in[1].Shape())
	if !ok || !s.SameDims(x.Shape()) {
		return nil, false
	}
	return []ir.Value{x}, true
}

// sameOnIntegers: a test of floats knows its answer for integers.
func sameOnIntegers(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	sp := op.Spec()
	if !sp.SameOnIntegers || !in[0].DType().IsIntegral() {
		return nil, false
	}
	return []ir.Value{b.Full(in[0].Shape().Dims(), sp.Scalar.I1(0), ir.Bool)}, true
}

// involution: an op that is its own inverse, applied twice.
func involution(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if !op.Spec().Involution || in[0].Node.Op() != op {
		return nil, false
	}
	x := in[0].Node.Inputs()[0]
	if x.DType() != in[0].DType() {
		return nil, false
	}
	return []ir.Value{x}, true
}

// complexViews: view_as_real and view_as_complex undo each other.
func complexViews(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	switch {
	case op == aten.ViewAsReal && in[0].Node.Op() == aten.ViewAsComplex:
	case op == aten.ViewAsComplex && in[0].Node.Op() == aten.ViewAsReal:
	default:
		return nil, false
	}
	return in[0].Node.Inputs()[:1:1], true
}

// mergeCasts: a cast to the dtype a value has is the value; a widening float
// cast followed by another cast is one cast.
func mergeCasts(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.Cast {
		return nil, false
	}
	to := ir.Args{Spec: op.Spec(), Attr: attr, In: in}.DType("dtype")
	x := in[0]
	if x.DType() == to {
		return in[:1:1], true
	}
	if x.Node.Op() == aten.Cast {
		y := x.Node.Inputs()[0]
		if y.DType().IsFloat() && x.DType().IsFloat() && ir.PromoteTypes(y.DType(), x.DType()) == x.DType() {
			return []ir.Value{b.Cast(y, to)}, true
		}
	}
	return nil, false
}

// castSelected: what is selected from a widened tensor is selected first and widened then, so that no
// more is read than that.
func castSelected(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.Gather && op != aten.IndexSelect && op != aten.TakeElements || in[0].Node.Op() != aten.Cast {
		return nil, false
	}
	narrow := in[0].Node.Inputs()[0]
	if narrow.DType().Size() >= in[0].DType().Size() {
		return nil, false
	}
	selected := b.Emit(op, attr, append([]ir.Value{narrow}, in[1:]...)...)
	return []ir.Value{b.Cast(selected[0], in[0].DType())}, true
}
