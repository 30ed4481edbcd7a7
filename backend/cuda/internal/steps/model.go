package steps

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/modelcall"
	"github.com/loris-ml/loris/ir"
)

func init() { lowerings[ir.OpCallModel] = callModel }

// callModel emits one step, on dense copies where operands are views. Results are
// where the model puts them.
func callModel(c *call) {
	id := c.Int("model")
	if err := modelcall.Known(id); err != nil {
		panic(err)
	}
	m := &Call{Model: id, Out: c.outs, Returns: c.l.returned}
	var operands []value
	for _, v := range c.in {
		m.In, operands = append(m.In, v.shape), append(operands, c.dense(v))
	}
	c.emit(planned{Step: Step{Call: m, Fault: -1}, operands: places(operands...)})
	for _, s := range c.outs {
		b := c.l.newBuffer(plan.Buffer{Kind: plan.Returned, Bytes: s.Bytes()})
		c.out = append(c.out, dense(s, b))
		c.l.returned++
	}
}
