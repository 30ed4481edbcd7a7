package ahead

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
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
		aten.Arange: (*call).arange, aten.Full: (*call).full, aten.Linspace: (*call).linspace,
		aten.Cat: (*call).cat, aten.ConstantPadNd: func(c *call) { c.Pad() },
		aten.Gather: (*call).gather, aten.IndexSelect: (*call).indexSelect, aten.Sort: (*call).sort,
		aten.Uniform: (*call).uniform, aten.Normal: (*call).normal, aten.Randint: (*call).randint,
		aten.Scatter: (*call).scatter, aten.ScatterReduce: (*call).scatterReduce, aten.IndexAdd: (*call).indexAdd, aten.Cummax: (*call).cummax,
		aten.FftLine: (*call).fourier,
		aten.Cumsum:  cumulate("aoti_torch_cpu_cumsum"), aten.Cumprod: cumulate("aoti_torch_cpu_cumprod"),
		aten.MatMul: (*call).matmul, aten.Convolution: (*call).convolution, aten.MaxPoolWithIndices: (*call).maxPool, aten.Attention: (*call).attention,
	}
	for _, op := range []ir.Op{aten.Sum, aten.Prod, aten.Amax, aten.Amin, aten.Any, aten.All, aten.Argmax, aten.Argmin} {
		lowerings[op] = (*call).reduction
	}
}

// emit adds a call of a function. The first n buffers of its arguments are written, the others read, and
// those of Results are written.
func (c *call) emit(function string, n int, args ...ahead.Arg) {
	s := step{Instr: c.Instr, Payload: ahead.Step{Call: &ahead.Call{Function: function, Args: args}}}
	for _, a := range args {
		buf := 0
		switch a := a.(type) {
		case ahead.Result:
			s.Writes = append(s.Writes, a.Buf)
			continue
		case ahead.Tensor:
			buf = a.Buf
		case ahead.Optional:
			buf = a.Buf
		case ahead.Memory:
			buf = a.Buf
		default:
			continue
		}
		if n > 0 {
			s.Writes = append(s.Writes, buf)
			n--
		} else {
			s.Reads = append(s.Reads, buf)
		}
	}
	c.e.steps = append(c.e.steps, s)
}

// returned makes the next result a tensor that a function returns, which lies as view has it.
func (c *call) returned(view strided.View) ahead.Result {
	s := c.Shapes[len(c.Results)]
	r := c.temporary(s, view)
	c.Results = append(c.Results, plan.Value{Shape: s, Value: fuse.Value{Buf: r.Buf, View: view}})
	return r
}

// temporary makes a tensor of a shape that a function returns.
func (c *call) temporary(s ir.Shape, view strided.View) ahead.Result {
	buf := c.e.NewBuffer(plan.Buffer{Kind: plan.Returned, Bytes: s.Bytes()})
	n := len(c.e.returned)
	c.e.returned[buf] = n
	return ahead.Result{Tensor: ahead.Tensor{Buf: buf, DType: s.DType(), View: view}, Index: n}
}

// memory returns the address of a value's elements, in order.
func (c *call) memory(v plan.Value) ahead.Memory {
	v = c.Dense(v)
	return ahead.Memory{Buf: v.Buf, Offset: v.View.Offset * v.Size()}
}

// unsupported notes that the use cannot be exported.
func (c *call) unsupported(why string, args ...any) {
	c.e.fail(c.Instr, why, args...)
	c.e.results(c.Call)
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
