package steps

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	for _, name := range []string{"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send", "recv", "barrier"} {
		op, ok := ir.Lookup(name)
		if !ok {
			panic("no row of " + name)
		}
		lowerings[op] = transfer
	}
}

// transfer emits two steps for what collective.OnDevice leaves. The first begins it, in the order of all
// collectives; the second comes right before the result is used and waits for it. Both name the operand
// and the result, whose memory is theirs meanwhile. A barrier passes its operand on, and gathers a byte
// of each rank; a send returns a 0.
func transfer(c *call) {
	if c.l.order == nil {
		b := c.l.NewBuffer(plan.Buffer{})
		c.l.order = &b
	}
	u := collective.UseOf(c.l.Program, c.Instr)
	t := &Transfer{Use: u}
	in := c.Dense(c.Operands[0])
	var out plan.Value
	var passed []int // what is written before, and may be read only afterwards
	switch u.Op {
	case "send":
		zero := c.l.Constant(ir.MakeShape(ir.F32), make([]byte, 4))
		c.Results = append(c.Results, zero)
		out = plan.DenseValue(ir.MakeShape(ir.U8, 1), c.l.NewBuffer(plan.Buffer{Bytes: 1}))
	case "barrier":
		whole := c.Result()
		c.copyTo(whole, in)
		passed = append(passed, whole.Buf)
		size, _, err := c.l.opt.Collectives.Layout(u.Group)
		if err != nil {
			panic(err)
		}
		out = plan.DenseValue(ir.MakeShape(ir.U8, size), c.l.NewBuffer(plan.Buffer{Bytes: size}))
	default:
		out = c.Result()
	}
	both := places(out, in)
	begin := plan.Step[planned]{Instr: c.Instr, Reads: []int{both[1].buf}, Writes: []int{both[0].buf, *c.l.order}}
	c.l.add(begin, planned{Step: Step{Begin: t, Fault: -1}, operands: both, writes: 1})
	wait := plan.Step[planned]{Instr: c.Instr, Reads: []int{both[1].buf}, Writes: append(passed, both[0].buf), Late: true}
	c.l.add(wait, planned{Step: Step{Wait: t, Fault: -1}, operands: both, writes: 1})
}
