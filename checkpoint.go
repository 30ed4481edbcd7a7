package loris

import "github.com/loris-ml/loris/internal/ir"

// Checkpoint records what fn makes of the inputs and has gradients compute everything between the
// inputs and the results again instead of keeping it until then: activation checkpointing. fn is
// called once and follows the rules of the body of a Scan. It may use other tensors and variables,
// which get their gradients; random numbers are drawn once and kept.
//
//	y := loris.Checkpoint(func(in ...*loris.Tensor) []*loris.Tensor {
//		return []*loris.Tensor{block.Forward(in[0])}
//	}, x)[0]
func Checkpoint(fn func(in ...*Tensor) []*Tensor, in ...*Tensor) []*Tensor {
	xs := make([]*Tensor, len(in))
	for i, x := range in {
		x.session("checkpoint")
		xs[i] = x.Unsqueeze(0)
	}
	if len(in) == 0 {
		panic(ir.NewOpError("checkpoint", ErrArg, nil, "there are no inputs, from which gradients could compute anything again"))
	}
	_, results := Scan(func(_, x []*Tensor) (next, results []*Tensor) { return nil, fn(x...) }, nil, xs)
	for i, y := range results {
		results[i] = y.Squeeze(Dim(0))
	}
	return results
}
