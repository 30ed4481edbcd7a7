package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// permuteBack: what is computed of values that are all permuted in one order, and is permuted back, is computed of the values as
// they lie: a normalisation of channels that are made the last dimension for it, as an example. It keeps lines that are
// reduced from being read across, and the result from being written twice. What is computed of values that are all broadcast
// is computed of them permuted, if that takes few ops.
func permuteBack(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.Permute || in[0].Node.IsLeaf() || in[0].Node.Op() == aten.Permute {
		return nil, false
	}
	back := normDims(ir.Args{Spec: op.Spec(), Attr: attr, In: in}.Ints("dims"))
	order := make([]int, len(back))
	for i, d := range back {
		order[d] = i
	}
	u := unpermuted{b: b, order: order, back: back, ops: maxPermutedBack, known: map[ir.Value]ir.Value{}}
	x, ok := u.computed(in[0])
	few := maxPermutedBack-u.ops <= maxUnpermuted
	if !ok || !u.met && !few || !x.Shape().SameDims(b.Results(op, attr, in)[0]) {
		return nil, false
	}
	return []ir.Value{x}, true
}

// maxUnpermuted is how many ops are computed of other operands, a second time if others use their
// results, too, and maxPermutedBack that of those that are permuted back.
const maxUnpermuted, maxPermutedBack = 4, 32

// unpermuted computes values of operands that are all permuted in one order without that order.
type unpermuted struct {
	b     *ir.Builder
	order []int // nil until an operand is met
	back  []int // the opposite of an order that is known before, which operands that are broadcast are permuted by; or nil
	met   bool  // there was an operand
	ops   int   // how many more may be computed
	known map[ir.Value]ir.Value
}

// value returns a value without the order; not ok if it has no such one.
func (u *unpermuted) value(v ir.Value) (out ir.Value, ok bool) {
	if v.Shape().Numel() == 1 {
		return v, true
	}
	if out, ok = u.known[v]; ok {
		return out, true
	}
	if out, ok = u.computed(v); !ok {
		out, ok = u.broadcast(v)
	}
	if ok && u.known != nil {
		u.known[v] = out
	}
	return out, ok
}

func (u *unpermuted) computed(v ir.Value) (out ir.Value, ok bool) {
	n := v.Node
	switch {
	case n.IsLeaf():
		return v, false
	case n.Op() == aten.Permute:
		order := normDims(n.Args().Ints("dims"))
		if u.order == nil {
			u.order = order
		}
		u.met = u.met || slices.Equal(u.order, order)
		return n.Inputs()[0], slices.Equal(u.order, order)
	}
	if sp := n.Op().Spec(); sp.Composite() || sp.Category != ir.Pointwise && (u.back == nil || sp.Category != ir.Reduction) || u.ops == 0 {
		return v, false
	}
	u.ops--
	in := slices.Clone(n.Inputs())
	for i, x := range in {
		if in[i], ok = u.value(x); !ok {
			return v, false
		}
	}
	if n.Op().Spec().Category == ir.Reduction {
		return u.reduced(n, in[0])
	}
	return u.b.Emit(n.Op(), n.Attr(), in...)[v.Index], true
}

// reduced returns a reduction that keeps its dimensions of what its operand is without the order.
func (u *unpermuted) reduced(n *ir.Node, x ir.Value) (out ir.Value, ok bool) {
	var named []ir.Named
	switch n.Op() {
	case aten.Sum, aten.Prod:
		if d := n.Shapes()[0].DType(); d != x.DType() {
			named = append(named, ir.A("dtype", d))
		}
	case aten.Amax, aten.Amin, aten.Any, aten.All:
	default:
		return out, false
	}
	mask, keep := ir.ReduceDims(n.Args())
	if !keep || x.Rank() != len(u.order) {
		return out, false
	}
	var dims []int
	for i, d := range u.order {
		if mask[i] {
			dims = append(dims, d)
		}
	}
	return u.b.Call1(n.Op(), []any{x, dims, true}, named...), true
}

// broadcast returns a value that is the same along a dimension, permuted back: a view of few elements.
func (u *unpermuted) broadcast(v ir.Value) (out ir.Value, ok bool) {
	dims := v.Shape().Dims()
	rank := len(u.back)
	if len(dims) > rank || len(dims) == rank && !slices.Contains(dims, 1) {
		return v, false
	}
	for len(dims) < rank {
		dims = slices.Insert(dims, 0, 1)
	}
	return u.b.Permute(u.b.Reshape(v, dims...), u.back...), true
}
