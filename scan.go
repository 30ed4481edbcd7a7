package loris

import (
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// ScanOption sets up a Scan.
type ScanOption func(*executor.ScanConfig)

// ScanLength is the number of elements of a Scan without sequences.
func ScanLength(n int) ScanOption { return func(c *executor.ScanConfig) { c.Length = n } }

// ScanReverse goes through the sequences from the last element to the first. Results are stacked in
// the order of the sequences.
func ScanReverse() ScanOption { return func(c *executor.ScanConfig) { c.Reverse = true } }

// ScanCheckpoint keeps the carried values before each n-th element only, for gradients, and has
// those between computed again on the way back. √length keeps and computes least together. The
// default is 1; values that no gradient needs are never kept.
func ScanCheckpoint(n int) ScanOption { return func(c *executor.ScanConfig) { c.Every = n } }

// Scan runs body once for each element along the first dimension of the sequences xs, which is
// equal for all of them. body gets the carried values, which are init at first, and an element of
// each sequence, and returns the next carried values, of the shapes and dtypes of init, and results.
// Scan returns the last carried values and, for each result, those of all elements, stacked in a
// new first dimension.
//
//	last, states := loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
//		h := x[0].MatMul(wx).Add(carry[0].MatMul(wh)).Tanh()
//		return []*loris.Tensor{h}, []*loris.Tensor{h}
//	}, []*loris.Tensor{h0}, []*loris.Tensor{sequence})
//
// body is called once, on placeholders: like the function of Compile it records what runs later,
// must not read elements, mark steps or assign variables, and may use other tensors and variables.
// What depends on neither carried values nor elements is computed once, before the loop; that goes
// for random numbers, too, so draw those that shall differ outside and pass them as a sequence. The
// body is one compilation, however long the sequences are; backends without loops (GPUs) get it
// once for each element.
//
// Gradients flow through Scan, by a loop in the other direction. Mistakes panic with an *OpError.
func Scan(body func(carry, x []*Tensor) (next, results []*Tensor), init, xs []*Tensor, opts ...ScanOption) (last, results []*Tensor) {
	c := executor.ScanConfig{Length: -1, Every: 1}
	for _, o := range opts {
		o(&c)
	}
	all := append(append([]*Tensor(nil), init...), xs...)
	if len(all) == 0 || all[0] == nil {
		panic(ir.NewOpError("scan", ErrArg, nil, "there are neither carried values nor sequences"))
	}
	if len(xs) > 0 && c.Length < 0 && xs[0] != nil && xs[0].Rank() > 0 {
		c.Length = xs[0].Dim(0)
	}
	if c.Length < 0 || c.Every < 1 {
		panic(ir.NewOpError("scan", ErrArg, nil, "the length is %d, the distance of checkpoints %d: give sequences or ScanLength, and at least 1 for ScanCheckpoint", c.Length, c.Every))
	}
	flip := c.Reverse && c.Every > 1
	if flip {
		c.Reverse, xs = false, flipped(xs)
	}
	outLast, outResults := all[0].session("scan").Scan(newTensor, handles(init), handles(xs), c, func(carry, x []*executor.Tensor) ([]*executor.Tensor, []*executor.Tensor) {
		next, results := body(wrapAll(carry), wrapAll(x))
		return handles(next), handles(results)
	})
	if last, results = wrapAll(outLast), wrapAll(outResults); flip {
		results = flipped(results)
	}
	return last, results
}

// flipped reverses the first dimension of each tensor.
func flipped(ts []*Tensor) []*Tensor {
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		out[i] = t.Flip(0)
	}
	return out
}
