package ref

import (
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/linalg"
)

func init() {
	for _, op := range linalg.Ops() {
		if !op.Spec().Composite() { // those are what they decompose to
			kernels[op] = factorise
		}
	}
}

// factorise computes by LAPACK's algorithms in float64, as the other backends on the host do. Tests hold
// it to what the factors are of.
func factorise(c *call) {
	in, out := make([][]byte, len(c.in)), make([][]byte, len(c.out))
	for i, x := range c.in {
		in[i] = x.data
	}
	shapes := make([]ir.Shape, len(c.out))
	for i, x := range c.out {
		out[i], shapes[i] = x.data, x.shape
	}
	f := linalg.New(c.Args, shapes)
	f.Run(in, out, 0, f.Batch)
}
