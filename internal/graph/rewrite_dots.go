package graph

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// singleDots: a batch of products of one row with one column each is a sum of products, which is one kernel
// with what comes before and after it, where each product would be planned and started by itself.
func singleDots(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.MatMul {
		return nil, false
	}
	x, y := in[0], in[1]
	d, rank := x.DType(), x.Rank()
	if d != ir.F32 && d != ir.F64 || y.DType() != d || rank < 3 || y.Rank() != rank || x.Dim(rank-2) != 1 || y.Dim(rank-1) != 1 || x.Dim(rank-1) == 1 {
		return nil, false
	}
	several := false
	for i := range rank - 2 {
		several = several || x.Dim(i) != 1 && y.Dim(i) != 1
	}
	if !several {
		return nil, false
	}
	return []ir.Value{b.Sum(b.Mul(x, b.Transpose(y, -1, -2)), []int{rank - 1}, true)}, true
}

// integerDots: a product of integers with one row or one column is a sum of products, which is a kernel of vectors
// whatever the order of the elements is. Integers wrap, so their sums do not depend on the order.
func integerDots(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.MatMul || !in[0].DType().IsInt() {
		return nil, false
	}
	x, y := in[0], in[1]
	if x.Rank() == 1 {
		x = b.Reshape(x, 1, x.Dim(0))
	}
	if y.Rank() == 1 {
		y = b.Reshape(y, y.Dim(0), 1)
	}
	k, along := x.Dim(-1), -1
	switch {
	case k == 0 || k == 1:
		return nil, false
	case y.Dim(-1) == 1:
		y = b.Transpose(y, -1, -2)
	case x.Dim(-2) == 1:
		x, along = b.Transpose(x, -1, -2), -2
	default:
		return nil, false
	}
	sum := b.Call1(aten.Sum, []any{b.Mul(x, y), []int{along}, true, x.DType()})
	a := ir.Args{Spec: op.Spec(), Attr: attr, In: in}
	return []ir.Value{b.Reshape(sum, op.Spec().Infer(a)[0].Dims()...)}, true
}

// outerProducts: a product of one column with one row is a pointwise product, which is one kernel with what comes before and
// after it, and goes across the lines where they are short.
func outerProducts(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.MatMul {
		return nil, false
	}
	x, y := in[0], in[1]
	if d := x.DType(); !d.IsFloat() && !d.IsInt() || y.DType() != d || x.Rank() < 2 || y.Rank() < 2 || x.Dim(-1) != 1 {
		return nil, false
	}
	return []ir.Value{b.Mul(x, y)}, true
}
