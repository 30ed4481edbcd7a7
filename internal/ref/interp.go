package ref

import (
	"context"

	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

// call is one use of a primitive on data.
type call struct {
	ir.Args
	ctx context.Context // of the run
	use *collective.Use // of a collective
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
	if sp := op.Spec(); sp != nil && sp.Category == ir.Collective {
		return collect
	}
	if sp := op.Spec(); sp != nil && !sp.Composite() && sp.Category == ir.Pointwise {
		return pointwise
	}
	return nil
}

// has reports whether there is a kernel for an op.
func has(op ir.Op) bool { return kernelOf(op) != nil }

// eval runs a checked Program on inputs of the right sizes. What it computes counts towards the limit
// of the process's memory while it lasts.
func eval(ctx context.Context, p *graph.Program, inputs [][]byte, limit int64) ([][]byte, error) {
	taken := int64(0)
	defer func() { memlimit.Give(taken) }()
	vals := make([]tensor, len(p.Shapes))
	for i, q := range p.Params {
		vals[i] = tensor{q.Shape, inputs[i]}
	}
	for i := range p.Instrs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		in := &p.Instrs[i]
		results, scratch := footprint(p, in)
		if oom := memlimit.Take(memlimit.Sum(results, scratch), limit); oom != nil {
			oom.Op, oom.Line = in.Op.String(), ir.FormatLine(in.Line)
			if in.NOut > 0 {
				oom.Shape = p.Outs(in)[0]
			}
			return nil, oom
		}
		memlimit.Give(scratch) // what the collector gets
		taken += results
		if err := step(ctx, p, in, vals); err != nil {
			return nil, check.Located(in, err)
		}
	}
	out := make([][]byte, len(p.Returns))
	for i, id := range p.Returns {
		out[i] = vals[id].data
	}
	return out, nil
}

// scratchBytes is what a kernel holds for an element of its operands and results beside them, about.
const scratchBytes = 32

// footprint returns the bytes of an instruction's results and, about, of what its kernel allocates
// meanwhile.
func footprint(p *graph.Program, in *graph.Instr) (results, scratch int64) {
	for _, s := range p.Outs(in) {
		results = memlimit.Sum(results, int64(s.Bytes()))
		scratch = memlimit.Sum(scratch, memlimit.Times(int64(s.Numel()), scratchBytes))
	}
	for _, id := range in.Args {
		scratch = memlimit.Sum(scratch, memlimit.Times(int64(p.Shape(id).Numel()), scratchBytes))
	}
	return results, scratch
}

func step(ctx context.Context, p *graph.Program, in *graph.Instr, vals []tensor) (err error) {
	defer check.Recover(&err)
	c := &call{Args: p.Args(in), ctx: ctx, out: vals[in.Out : int(in.Out)+in.NOut]}
	for _, id := range in.Args {
		c.in = append(c.in, vals[id])
	}
	elements := 0
	for i, s := range p.Outs(in) {
		c.out[i] = newTensor(s)
		elements += len(c.out[i].data)
	}
	switch sp := in.Op.Spec(); {
	case sp.Category == ir.Collective:
		use := collective.UseOf(p, in)
		c.use = &use
	case elements == 0 && sp.Category != ir.CustomCall:
		return nil // however many lines of no elements there are
	}
	kernelOf(in.Op)(c)
	return nil
}
