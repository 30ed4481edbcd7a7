package ir

import "testing"

// TestNarrowFactorsOfGradients holds the gradients of products of bfloat16, whose sums are scaled in
// f32, to factors that were widened from it: a number that multiplied one would have made it f32. So do those of a sum
// of products, whose gradient is the same for all.
func TestNarrowFactorsOfGradients(t *testing.T) {
	b := &Builder{}
	leaf := func(dims ...int) Value { return b.Full(dims, 1, BF16) }
	alpha := b.Full(nil, 2, F32)
	grad := b.Mul(b.widen(leaf(3, 5)), alpha)
	checkNarrowFactors(t, b, leaf(3, 4), leaf(4, 5), grad, alpha)
	checkNarrowFactors(t, b, leaf(2, 3, 4), leaf(2, 4, 5), b.Expand(b.Unsqueeze(grad, 0), 2, 3, 5), alpha)
}

func checkNarrowFactors(t *testing.T, b *Builder, x, y, grad, alpha Value) {
	t.Helper()
	product := b.MatMul(b.widen(x), b.widen(y))
	if !grad.Shape().SameDims(product.Shape()) {
		t.Fatalf("a gradient %v of %v", grad.Shape(), product.Shape())
	}
	for i, g := range vjpMatMul(b, product.Node.Args(), []Value{product}, []Value{grad}) {
		if g.Node.Op() != opMul || g.Node.Inputs()[1] != alpha {
			t.Fatalf("gradient %d is not a product with the number at last", i)
		}
		m := g.Node.Inputs()[0]
		if m.Node.Op() != opMatMul {
			t.Fatalf("gradient %d is no product of matrices", i)
		}
		for _, f := range m.Node.Inputs() {
			if _, ok := widenedFrom(f); !ok {
				t.Errorf("gradient %d: a factor was not widened", i)
			}
		}
	}
}
