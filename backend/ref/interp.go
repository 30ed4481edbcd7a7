package ref

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
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

// check validates a Program: operands come before their users, shapes are what
// the rows of the table say, and there is a kernel for each op.
func check(p *graph.Program) error {
	if len(p.Shapes) < len(p.Params) {
		return fmt.Errorf("%w: %d shapes for %d parameters", ir.ErrArg, len(p.Shapes), len(p.Params))
	}
	for i, q := range p.Params {
		if q.Shape != p.Shapes[i] {
			return fmt.Errorf("%w: parameter %d is %v and %v", ir.ErrShape, i, q.Shape, p.Shapes[i])
		}
	}
	for i := range p.Instrs {
		if err := checkInstr(p, &p.Instrs[i]); err != nil {
			return located(&p.Instrs[i], err)
		}
	}
	for i, id := range p.Returns {
		if id < 0 || int(id) >= len(p.Shapes) {
			return fmt.Errorf("%w: return %d is value %d of %d", ir.ErrArg, i, id, len(p.Shapes))
		}
	}
	return nil
}

func checkInstr(p *graph.Program, in *graph.Instr) (err error) {
	defer recoverTo(&err)
	if kernelOf(in.Op) == nil {
		return backend.ErrUnsupported
	}
	if int(in.Out)+in.NOut > len(p.Shapes) {
		return fmt.Errorf("%w: outputs from %d on, of %d values", ir.ErrArg, in.Out, len(p.Shapes))
	}
	for _, id := range in.Args {
		if id < 0 || id >= in.Out {
			return fmt.Errorf("%w: operand %d is not computed before value %d", ir.ErrArg, id, in.Out)
		}
	}
	want := in.Op.Spec().Infer(p.Args(in))
	if len(want) != in.NOut {
		return fmt.Errorf("%w: %d outputs, want %d", ir.ErrArg, in.NOut, len(want))
	}
	for i, s := range p.Outs(in) {
		if s != want[i] {
			return fmt.Errorf("%w: output %d is %v, want %v", ir.ErrShape, i, s, want[i])
		}
	}
	return nil
}

// located adds the op and the user's line to an error.
func located(in *graph.Instr, err error) error {
	if line := ir.FormatLine(in.Line); line != "" {
		return fmt.Errorf("%v (at %s): %w", in.Op, line, err)
	}
	return fmt.Errorf("%v: %w", in.Op, err)
}

// recoverTo turns a panic into an error.
func recoverTo(err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = r
	default:
		*err = fmt.Errorf("panic: %v", r)
	}
}

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
			return nil, located(in, err)
		}
	}
	out := make([][]byte, len(p.Returns))
	for i, id := range p.Returns {
		out[i] = vals[id].data
	}
	return out, nil
}

func step(p *graph.Program, in *graph.Instr, vals []tensor) (err error) {
	defer recoverTo(&err)
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
