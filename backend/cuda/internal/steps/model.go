package steps

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/modelcall"
)

func init() { lowerings[aten.CallModel] = callModel }

// callModel emits one step, on dense copies where operands are views. Results are
// where the model puts them.
func callModel(c *call) {
	id := c.Int("model")
	if err := modelcall.Known(id); err != nil {
		panic(err)
	}
	m := &Call{Model: id, Out: c.Shapes, Returns: c.l.returned}
	var operands []plan.Value
	for _, v := range c.Operands {
		m.In, operands = append(m.In, v.Shape), append(operands, c.Dense(v))
	}
	c.emit(planned{Step: Step{Call: m, Fault: -1}, operands: places(operands...)})
	for _, s := range c.Shapes {
		b := c.l.NewBuffer(plan.Buffer{Kind: plan.Returned, Bytes: s.Bytes()})
		c.Results = append(c.Results, plan.DenseValue(s, b))
		c.l.returned++
	}
}
