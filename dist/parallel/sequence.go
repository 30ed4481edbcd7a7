package parallel

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/ir"
)

// SequenceAttention records attention over a sequence of which each rank has an equal part, the first rank
// the beginning. q, k and v are [batch, heads, length/ranks, size], and so is the result; the number of
// ranks divides that of the heads. Ranks exchange parts of the sequence for heads, attend with some heads
// over all of it, and exchange back. With causal a position attends to those before it.
func SequenceAttention(g *dist.Group, q, k, v *loris.Tensor, causal bool) *loris.Tensor {
	n := g.Size()
	for _, x := range []*loris.Tensor{q, k, v} {
		if x.Rank() != 4 || x.Dim(1)%n != 0 {
			panic(ir.NewOpError("parallel.SequenceAttention", loris.ErrShape, nil, "%v is not [batch, heads, length, size] with heads that can be divided among %d ranks", x.Shape(), n))
		}
	}
	y := loris.ScaledDotProductAttention(gatherSequence(g, q), gatherSequence(g, k), gatherSequence(g, v), loris.IsCausal(causal))
	return divideSequence(g, y)
}

// gatherSequence turns all heads of a part of the sequence into a part of the heads of all of it.
func gatherSequence(g *dist.Group, x *loris.Tensor) *loris.Tensor {
	n := g.Size()
	b, h, l, d := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	y := g.AllToAll(x, 1).Reshape(b, n, h/n, l, d) // by the rank that the part of the sequence is of
	return y.Transpose(1, 2).Reshape(b, h/n, n*l, d)
}

// divideSequence is the inverse of gatherSequence.
func divideSequence(g *dist.Group, x *loris.Tensor) *loris.Tensor {
	n := g.Size()
	b, h, l, d := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	y := x.Reshape(b, h, n, l/n, d).Transpose(1, 2).Reshape(b, n*h, l/n, d)
	return g.AllToAll(y, 1)
}
