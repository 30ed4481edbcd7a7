package cpu

import (
	"context"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/modelcall"
)

func init() {
	lowerings[aten.CallModel] = lowerCallModel
}

// lowerCallModel emits one step, on dense copies where operands are views.
func lowerCallModel(c *call) {
	id := c.Int("model")
	if err := modelcall.Known(id); err != nil {
		panic(err)
	}
	in, out := make([]modelcall.Tensor, len(c.Operands)), make([]modelcall.Tensor, len(c.Shapes))
	reads, writes := make([]operand, len(c.Operands)), make([]operand, len(c.Shapes))
	for i, v := range c.Operands {
		in[i].Shape, reads[i] = v.Shape, c.dense(v)
	}
	for i, s := range c.Shapes {
		out[i].Shape, writes[i] = s, c.result()
	}
	mem := c.l.mem
	point := func(ts []modelcall.Tensor, at []operand) {
		for i, o := range at {
			size := ts[i].Shape.DType().Size()
			ts[i].Data = mem.bufs[o.buf][o.off*size : (o.off+o.n)*size]
		}
	}
	c.emit(1, 1, writes, reads, func(int, int) {
		point(in, reads)
		point(out, writes)
		err := modelcall.Run(context.Background(), id, in, out)
		for _, ts := range [][]modelcall.Tensor{in, out} {
			for i := range ts {
				ts[i].Data = nil
			}
		}
		if err != nil {
			panic(err)
		}
	})
	c.l.steps[len(c.l.steps)-1].Payload.callsModel = true
}
