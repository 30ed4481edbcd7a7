package cpu

import (
	"context"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/collective"
)

// transfer is a collective in a model: one step begins it, another waits for it.
type transfer struct {
	use     collective.Use
	in, out operand // in bytes
	mem     *memory
	pending collective.Request // from the first step to the second
	// alone says that the second step comes right after the first, which then has nothing to do.
	alone bool
}

// lowerCollective emits two steps. The first runs as soon as the operand is there, in the order of all
// collectives, which is that of the Program; the second right before the result is used. Both name the
// operand and the result, whose memory is theirs meanwhile.
func lowerCollective(c *call) {
	if c.l.order == nil {
		buf := c.l.NewBuffer(plan.Buffer{})
		c.l.order = &buf
	}
	t := &transfer{use: collective.UseOf(c.l.Program, c.Instr), mem: c.l.mem}
	t.in = inBytes(c.dense(c.Operands[0]), c.Operands[0].DType())
	t.out = inBytes(c.result(), c.Shapes[0].DType())
	reads, writes := []int{t.in.buf}, []int{t.out.buf}
	c.l.emit(step{Instr: c.Instr, Reads: reads, Writes: []int{t.out.buf, *c.l.order}, Payload: work{begin: t}})
	c.l.emit(step{Instr: c.Instr, Reads: reads, Writes: writes, Late: true, Payload: work{wait: t}})
}

func (t *transfer) bytes(o operand) []byte { return t.mem.bufs[o.buf][o.off : o.off+o.n : o.off+o.n] }

// pairTransfers finds transfers beside which nothing is computed.
func pairTransfers(steps []step) {
	for i := range steps[:max(len(steps)-1, 0)] {
		if t := steps[i].Payload.begin; t != nil {
			t.alone = steps[i+1].Payload.wait == t
		}
	}
}

func (t *transfer) start(ctx context.Context) error {
	if t.alone {
		return nil
	}
	comm, err := collective.From(ctx)
	if err != nil {
		return err
	}
	t.pending = comm.Start(&t.use, t.bytes(t.out), t.bytes(t.in))
	return nil
}

func (t *transfer) finish(ctx context.Context) error {
	if t.alone {
		comm, err := collective.From(ctx)
		if err != nil {
			return err
		}
		return comm.Run(ctx, &t.use, t.bytes(t.out), t.bytes(t.in))
	}
	pending := t.pending
	t.pending = nil
	return pending.Wait(ctx)
}
