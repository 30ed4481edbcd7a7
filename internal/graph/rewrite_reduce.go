package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// reducePermuted: a reduction of all dimensions of what is computed of permuted values alone is that of
// what is computed of the values as they lie.
func reducePermuted(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	switch op {
	case aten.Sum, aten.Prod, aten.Amax, aten.Amin, aten.Any, aten.All:
	default:
		return nil, false
	}
	mask, _ := ir.ReduceDims(ir.Args{Spec: op.Spec(), Attr: attr, In: in})
	if slices.Contains(mask[:in[0].Rank()], false) {
		return nil, false
	}
	u := unpermuted{b: b, ops: maxUnpermuted}
	x, ok := u.value(in[0])
	if !ok || u.order == nil {
		return nil, false
	}
	return b.Emit(op, attr, x), true
}

// maxUnpermuted is how many ops are computed of other operands, a second time if others use their
// results, too.
const maxUnpermuted = 4

// unpermuted computes values of operands that are all permuted in one order without that order.
type unpermuted struct {
	b     *ir.Builder
	order []int // nil until an operand is met
	ops   int   // how many more may be computed
}

// value returns a value without the order; not ok if it has no such one.
func (u *unpermuted) value(v ir.Value) (out ir.Value, ok bool) {
	n := v.Node
	switch {
	case v.Shape().Numel() == 1:
		return v, true
	case n.IsLeaf():
		return v, false
	case n.Op() == aten.Permute:
		order := normDims(n.Args().Ints("dims"))
		if u.order == nil {
			u.order = order
		}
		return n.Inputs()[0], slices.Equal(u.order, order)
	}
	if sp := n.Op().Spec(); sp.Category != ir.Pointwise || sp.Composite() || u.ops == 0 {
		return v, false
	}
	u.ops--
	in := slices.Clone(n.Inputs())
	for i, x := range in {
		if in[i], ok = u.value(x); !ok {
			return v, false
		}
	}
	return u.b.Emit(n.Op(), n.Attr(), in...)[v.Index], true
}
