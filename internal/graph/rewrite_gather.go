package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// gatherOne: one element of each line of what a pointwise op computes of a tensor, and of values that do not
// change along the lines, is computed of the element of the tensor. So a loss that takes the logit of
// each class keeps the logits themselves, over which their gradient may be written, and not the
// differences from the maxima beside it.
func gatherOne(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.Gather || in[0].Node.IsLeaf() {
		return nil, false
	}
	x, n := in[0], in[0].Node
	sp := n.Op().Spec()
	if sp.Category != ir.Pointwise || sp.Composite() || sp.Divides && x.DType().IsIntegral() {
		return nil, false // the run reports a division by zero anywhere
	}
	d := ir.Args{Spec: op.Spec(), Attr: attr, In: in}.Dim("dim", x.Rank())
	if !oneOfEach(in[1].Shape(), x.Shape(), d) {
		return nil, false
	}
	from := -1 // the operand with whole lines
	for i, v := range n.Inputs() {
		switch at := d - (x.Rank() - v.Rank()); {
		case at < 0 || v.Dim(at) == 1:
		case from < 0 && v.Shape().SameDims(x.Shape()):
			from = i
		default:
			return nil, false
		}
	}
	if from < 0 {
		return nil, false
	}
	operands := slices.Clone(n.Inputs())
	operands[from] = b.Emit(op, attr, operands[from], in[1])[0]
	return b.Emit(n.Op(), n.Attr(), operands...), true
}

// oneOfEach reports whether an index has one element for each line along dimension d of s, of more than one.
func oneOfEach(index, s ir.Shape, d int) bool {
	for i := range s.Rank() {
		if i == d && (index.Dim(i) != 1 || s.Dim(i) == 1) || i != d && index.Dim(i) != s.Dim(i) {
			return false
		}
	}
	return s.Rank() > 0
}
