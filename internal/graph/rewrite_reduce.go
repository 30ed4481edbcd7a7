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
