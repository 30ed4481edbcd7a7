package ref

import (
	"context"

	"github.com/loris-ml/loris/backend/internal/check"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// call is one use of a primitive on data.
type call struct {
	ir.Args
	in  []tensor
	out []tensor // of the inferred shapes, all bytes zero
}

// operand returns the data of an operand by name; ok is false for an optional
// one that was not given.
func (c *call) operand(name string) (t tensor, ok bool) {
	if c.Tensor(name).IsNil() {
		return tensor{}, false
	}
	return c.in[c.InputIndex(name)], true
}

// kernel computes the outputs of a call; it panics with an error for data that
// the op does not take.
type kernel func(c *call)

// kernels has the primitives that are more than a scalar function; the files
// of the families fill it in.
var kernels = map[ir.Op]kernel{}

func kernelOf(op ir.Op) kernel {
	if k := kernels[op]; k != nil {
		return k
	}
	if sp := op.Spec(); sp != nil && !sp.Composite() && sp.Category == ir.Pointwise {
		return pointwise
	}
	return nil
}

// has reports whether there is a kernel for an op.
func has(op ir.Op) bool { return kernelOf(op) != nil }

// eval runs a checked Program on inputs of the right sizes.
func eval(ctx context.Context, p *graph.Program, inputs [][]byte) ([][]byte, error) {
	vals := make([]tensor, len(p.Shapes))
	for i, q := range p.Params {
		vals[i] = tensor{q.Shape, inputs[i]}
	}
	for i := range p.Instrs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		in := &p.Instrs[i]
		if err := step(p, in, vals); err != nil {
			return nil, check.Located(in, err)
		}
	}
	out := make([][]byte, len(p.Returns))
	for i, id := range p.Returns {
		out[i] = vals[id].data
	}
	return out, nil
}

func step(p *graph.Program, in *graph.Instr, vals []tensor) (err error) {
	defer check.Recover(&err)
	c := &call{Args: p.Args(in), out: vals[in.Out : int(in.Out)+in.NOut]}
	for _, id := range in.Args {
		c.in = append(c.in, vals[id])
	}
	for i, s := range p.Outs(in) {
		c.out[i] = newTensor(s)
	}
	kernelOf(in.Op)(c)
	return nil
}
