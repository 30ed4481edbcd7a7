package ahead

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/ir"
)

// call is one use of an op that is being lowered.
type call struct {
	*plan.Call
	e *emitter
}

// lowerings has the ops that functions of the host compute, and those that are copies.
var lowerings map[ir.Op]func(c *call)

func init() {
	lowerings = map[ir.Op]func(c *call){
		aten.MatMul: (*call).matmul,
		aten.Full:   (*call).full,
	}
}

// emit adds a call of a function. Its tensors are read, but for the first n, which are written.
func (c *call) emit(function string, n int, args ...ahead.Arg) {
	s := step{Instr: c.Instr, Payload: ahead.Step{Call: &ahead.Call{Function: function, Args: args}}}
	for _, a := range args {
		t, ok := a.(ahead.Tensor)
		switch {
		case !ok:
		case n > 0:
			s.Writes = append(s.Writes, t.Buf)
			n--
		default:
			s.Reads = append(s.Reads, t.Buf)
		}
	}
	c.e.steps = append(c.e.steps, s)
}

// tensor returns a value as an argument. Tensors of libtorch have no negative strides, so a value
// that goes backwards is copied.
func (c *call) tensor(v plan.Value) ahead.Tensor {
	for _, s := range v.View.Strides[:v.View.Rank] {
		if s < 0 {
			v = c.Copied(v)
			break
		}
	}
	return ahead.Tensor{Buf: v.Buf, DType: v.DType(), View: v.View}
}

// full makes a literal of one element and expands it.
func (c *call) full() {
	d := c.Shapes[0].DType()
	c.Results = append(c.Results, c.e.Constant(ir.MakeShape(d), elements.AppendNumber(nil, d, c.Get("fill_value"))).Expand(c.Shapes[0].Dims()))
}

// matmul calls mm_out, or bmm_out for a batch of matrices on both sides.
func (c *call) matmul() {
	c.Compute()
	x, y := c.Operands[0], c.Operands[1]
	if !x.DType().IsFloat() {
		c.e.fail(c.Instr, "products of %v have no function", x.DType())
		c.e.results(c.Call)
		return
	}
	out := c.Result()
	if x.Shape.Rank() == 1 {
		x = c.Reshape(x, x.Shape.WithDims(1, x.Shape.Dim(0)))
	}
	if y.Shape.Rank() == 1 {
		y = c.Reshape(y, y.Shape.WithDims(y.Shape.Dim(0), 1))
	}
	m, k, n := x.Shape.Dim(-2), x.Shape.Dim(-1), y.Shape.Dim(-1)
	if y.Shape.Rank() == 2 {
		rows := x.Shape.Numel() / max(k, 1)
		if k == 0 {
			rows = out.Shape.Numel() / max(n, 1)
		}
		x = c.Reshape(x, x.Shape.WithDims(rows, k))
		dst := c.Reshape(out, out.Shape.WithDims(rows, n))
		c.emit("aoti_torch_cpu_mm_out", 1, c.tensor(dst), c.tensor(x), c.tensor(y))
		return
	}
	lead := broadcast(x.Shape.Dims()[:x.Shape.Rank()-2], y.Shape.Dims()[:y.Shape.Rank()-2])
	batch := 1
	for _, d := range lead {
		batch *= d
	}
	three := func(v plan.Value, rows, cols int) plan.Value {
		v = v.Expand(append(append([]int(nil), lead...), rows, cols))
		return c.Reshape(v, v.Shape.WithDims(batch, rows, cols))
	}
	dst := c.Reshape(out, out.Shape.WithDims(batch, m, n))
	c.emit("aoti_torch_cpu_bmm_out", 1, c.tensor(dst), c.tensor(three(x, m, k)), c.tensor(three(y, k, n)))
}

// broadcast returns the dimensions that two lists of them broadcast to.
func broadcast(x, y []int) []int {
	if len(x) < len(y) {
		x, y = y, x
	}
	out := append([]int(nil), x...)
	for i := range y {
		if d := len(x) - len(y) + i; out[d] == 1 {
			out[d] = y[i]
		}
	}
	return out
}
