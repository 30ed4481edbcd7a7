package parallel

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/ir"
)

// Pipeline records a step of a model whose layers are divided among the ranks: each runs its stage on parts
// of the batch, one after another, and sends what comes out to the next rank, so that stages work on
// different parts at the same time. The boundary is the shape of what goes from one stage to the next, for
// one part.
//
// stage records this rank's layers for a part: on the first rank of the inputs, which it has itself (x is
// nil), on the others of x. On the last rank it returns the part's loss, a scalar, and the loss of the batch
// is their mean. Pipeline returns that on the last rank, elsewhere nil, and the gradients with respect to
// this rank's parameters.
func Pipeline(g *dist.Group, m loris.Maker, parts int, boundary loris.Shape, stage func(part int, x *loris.Tensor) *loris.Tensor, params ...*loris.Variable) (loss *loris.Tensor, grads []*loris.Tensor) {
	if parts < 1 || parts > maxParts {
		panic(ir.NewOpError("parallel.Pipeline", loris.ErrArg, nil, "%d parts of the batch are not among 1 to %d", parts, maxParts))
	}
	var wrt []any
	for _, v := range params {
		wrt = append(wrt, v)
	}
	first, last := g.Rank() == 0, g.Rank() == g.Size()-1
	outs := make([]*loris.Tensor, parts)
	for k := range outs {
		var x *loris.Tensor
		if !first {
			token := m.Zeros()
			if k > 0 { // parts come in their order
				token = outs[k-1].Detach().Cast(loris.F32).Mul(0.0)
			}
			wrt = append(wrt, token) // its gradient sends that of x back
			x = g.Recv(token, g.Rank()-1, k, boundary.DType(), boundary.Dims()...)
		}
		switch y := stage(k, x); {
		case last:
			outs[k] = y.Div(parts)
		case y.Shape() != boundary:
			panic(ir.NewOpError("parallel.Pipeline", loris.ErrShape, nil, "the stage of rank %d returned %v, the boundary is %v", g.Rank(), y.Shape(), boundary))
		default:
			outs[k] = g.Send(y, g.Rank()+1, k)
		}
	}
	all := loris.GradOf(outs, cotangents(outs, last), wrt...)
	for _, sent := range all[len(params):] {
		sent.Keep()
	}
	if last {
		loss = total(outs)
	}
	return loss, all[:len(params)]
}

func total(ts []*loris.Tensor) *loris.Tensor {
	sum := ts[0]
	for _, x := range ts[1:] {
		sum = sum.Add(x)
	}
	return sum
}

// cotangents are 1. Before the last rank they are computed from the tokens of all sends, which are 0: no
// rank waits for a gradient before it has sent all parts, on which the gradient of another part may wait.
func cotangents(outs []*loris.Tensor, last bool) []*loris.Tensor {
	if last {
		return nil
	}
	one := total(outs).Add(1.0)
	cs := make([]*loris.Tensor, len(outs))
	for k := range cs {
		cs[k] = one
	}
	return cs
}

// maxParts is bounded by the tags of sends.
const maxParts = 1 << 12
