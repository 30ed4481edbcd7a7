package cpu

import (
	"context"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

func init() { lowerings[aten.Scan] = lowerLoop }

// loopRun is a step that runs the steps of a loop's body once for each element.
type loopRun struct {
	l        *lowering // of the Program around
	mem      *memory   // of the body
	plan     *plan.Plan[work]
	length   int
	reversed bool
	every    int

	init, xs, consts, work operandList // operands of the Program around
	last, results, kept    operandList
	// spare has two places for each carried value, used in turn.
	spare [2]operandList
	// outputs are the buffers of the body that are outputs, numbers which.
	outputs, numbers []int
}

// operandList are runs of bytes.
type operandList []operand

// lowerLoop compiles the body and emits one step.
func lowerLoop(c *call) {
	l := graph.LoopOf(c.Args)
	if err := check.Program(l.Body, bodySupports); err != nil {
		panic(err)
	}
	body := &lowering{Builder: plan.NewBuilder(l.Body, nil), tune: c.l.tune, mem: &memory{}, engine: c.l.engine, limiter: c.l.limiter, flush: c.l.flush, workers: c.l.workers}
	body.LinesInPlace = true
	if err := body.Build(body, nil); err != nil {
		panic(err)
	}
	r := &loopRun{l: c.l, mem: body.mem, length: l.Length, reversed: l.Reverse, every: l.Every}
	r.plan = plan.Make(body.steps, body.Buffers, plan.Options[work]{Alignment: lineBytes, Inputs: len(l.Body.Params), Eager: true})
	r.bindBody(c)
	k, x := len(l.Init), len(l.Xs)
	var in operandList
	for _, v := range c.Operands {
		in = append(in, inBytes(c.dense(v), v.DType()))
	}
	r.init, r.xs, r.consts = in[:k], in[k:k+x], in[k+x:]
	var out operandList
	for _, s := range c.Shapes {
		out = append(out, inBytes(c.result(), s.DType()))
	}
	r.last, r.results, r.kept = out[:k], out[k:k+l.Results()], out[k+l.Results():]
	scratch := r.work
	place := func(n int) operand {
		o := c.l.bytesTemp(1, n)
		scratch = append(scratch, o)
		return o
	}
	for _, o := range r.init {
		for i := range r.spare {
			r.spare[i] = append(r.spare[i], place(o.n))
		}
	}
	c.emit(1, 1, append(out[:len(out):len(out)], scratch...), in, nil)
	c.l.steps[len(c.l.steps)-1].Payload.loop = r.run
}

// inBytes is an operand counted in bytes.
func inBytes(o operand, d ir.DType) operand {
	return operand{o.buf, o.off * d.Size(), o.n * d.Size()}
}

// bindBody gives the body memory of the Program around, and its constants theirs.
func (r *loopRun) bindBody(c *call) {
	r.mem.bufs = make([][]byte, len(r.plan.Buffers))
	r.work = operandList{c.l.bytesTemp(1, r.plan.Workspace)}
	for i := range r.plan.Buffers {
		b := &r.plan.Buffers[i]
		if b.Kind == plan.Constant {
			r.mem.bufs[i] = alignedCopy(b.Data)
		}
		if b.Storage >= 0 {
			if n := r.plan.Storages[b.Storage].Output; n >= 0 {
				r.outputs, r.numbers = append(r.outputs, i), append(r.numbers, n)
			}
		}
	}
}

func (r *loopRun) bytes(o operand) []byte { return r.l.mem.bufs[o.buf][o.off : o.off+o.n : o.off+o.n] }

// element returns the bytes of element i of a sequence.
func (r *loopRun) element(o operand, i int) []byte {
	size := o.n / r.length
	at := o.off + i*size
	return r.l.mem.bufs[o.buf][at : at+size : at+size]
}

// run runs the loop on the goroutine of the model's run.
func (r *loopRun) run(ctx context.Context) error {
	workspace := r.bytes(r.work[0])
	for i := range r.plan.Buffers {
		if b := &r.plan.Buffers[i]; b.Storage >= 0 {
			if st := &r.plan.Storages[b.Storage]; st.Output < 0 {
				r.mem.bufs[i] = workspace[st.Offset : st.Offset+st.Bytes : st.Offset+st.Bytes]
			}
		}
	}
	for i, o := range r.consts {
		r.mem.bufs[len(r.init)+len(r.xs)+i] = r.bytes(o)
	}
	carry := r.init
	for n := range r.length {
		next := r.spare[n%2]
		if n == r.length-1 {
			next = r.last
		}
		if err := r.step(ctx, n, carry, next); err != nil {
			return err
		}
		carry = next
	}
	if r.length == 0 {
		for i, o := range r.last {
			copy(r.bytes(o), r.bytes(r.init[i]))
		}
	}
	for i := range r.plan.Buffers {
		if r.plan.Buffers[i].Kind != plan.Constant {
			r.mem.bufs[i] = nil
		}
	}
	return nil
}

// step runs the body for the n-th element that it meets.
func (r *loopRun) step(ctx context.Context, n int, carry, next operandList) error {
	at := n
	if r.reversed {
		at = r.length - 1 - n
	}
	for i, o := range carry {
		r.mem.bufs[i] = r.bytes(o)
		if r.every > 0 && n%r.every == 0 {
			kept := r.kept[i]
			size := len(r.mem.bufs[i])
			copy(r.l.mem.bufs[kept.buf][kept.off+at/r.every*size:][:size], r.mem.bufs[i])
		}
	}
	for i, o := range r.xs {
		r.mem.bufs[len(r.init)+i] = r.element(o, at)
	}
	for i, buf := range r.outputs {
		if k := r.numbers[i]; k < len(next) {
			r.mem.bufs[buf] = r.bytes(next[k])
		} else {
			r.mem.bufs[buf] = r.element(r.results[k-len(next)], at)
		}
	}
	for i := range r.plan.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := runWork(ctx, r.l.limiter, &r.plan.Steps[i].Payload); err != nil {
			return err
		}
	}
	return r.l.limiter.Yield(ctx)
}

func bodySupports(op ir.Op) bool { return (*Backend)(nil).Supports(op) }
