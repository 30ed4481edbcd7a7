package onnx

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// value is what a name stands for while a call is recorded: a tensor whose elements are known, a
// lazy one, a sequence, or an optional without an element.
type value struct {
	elem elemType
	dims []int
	// data are the elements where they are known while recording, in the dtype that holds them. Of a
	// Variable they are those that the file has.
	data     []byte
	variable *loris.Variable
	lazy     *loris.Tensor
	// seq are the elements of a sequence.
	seq   []*value
	isSeq bool
	// empty is an optional without an element.
	empty bool
}

// known reports whether the elements may be computed with while recording.
func (v *value) known() bool { return v.data != nil && v.variable == nil && !v.isSeq && !v.empty }

func (v *value) numel() int { return product(v.dims) }

// bytes is the size of a value's elements, all together.
func (v *value) bytes() int {
	n := 0
	for _, e := range v.seq {
		n += e.bytes()
	}
	if !v.isSeq && !v.empty {
		n = v.numel() * v.elem.dtype().Size()
	}
	return n
}

func (v *value) rank() int { return len(v.dims) }

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func (v *value) String() string {
	switch {
	case v.empty:
		return "empty optional"
	case v.isSeq:
		return fmt.Sprintf("sequence of %d", len(v.seq))
	}
	return fmt.Sprintf("%v%v", v.elem, v.dims)
}

// tensor returns the lazy tensor of a value.
func (c *call) tensor(v *value) *loris.Tensor {
	switch {
	case v == nil || v.isSeq || v.empty:
		c.fail("a tensor is expected, not %v", v)
	case v.lazy != nil:
	case v.variable != nil:
		v.lazy = v.variable.ValueIn(c.run.make.Session())
	case len(v.dims) == 0 && v.elem.dtype().IsFloat():
		// A number is a parameter of the graph, so that another one compiles nothing.
		v.lazy = c.run.make.With(loris.As(v.elem.dtype())).Scalar(elements.Float(v.elem.dtype(), v.data, 0))
	default:
		v.lazy = c.run.make.Constant(v.data, ir.MakeShape(v.elem.dtype(), v.dims...))
	}
	return v.lazy
}

// out is the value of a lazy tensor.
func out(e elemType, t *loris.Tensor) *value {
	return &value{elem: e, dims: t.Dims(), lazy: t}
}

// hostInts is the value of known integers in one dimension.
func hostInts(v ...int64) *value { return hostIntsOf([]int{len(v)}, v) }

func hostIntsOf(dims []int, v []int64) *value { return hostOf(tInt64, dims, v) }

func hostOf(e elemType, dims []int, v []int64) *value {
	return &value{elem: e, dims: dims, data: elements.EncodeInts(e.dtype(), v)}
}

func hostBool(b bool) *value {
	data := []byte{0}
	if b {
		data[0] = 1
	}
	return &value{elem: tBool, dims: []int{}, data: data}
}

func hostFloat(e elemType, v float64) *value {
	return &value{elem: e, dims: []int{}, data: elements.AppendFloat(nil, e.dtype(), v)}
}

func sequence(vs []*value) *value { return &value{isSeq: true, seq: vs} }

// contents returns the elements of a value, of which the op needs to know: those known, else
// computed now.
func (c *call) contents(v *value) []byte {
	if v == nil || v.isSeq || v.empty {
		c.fail("a tensor is expected, not %v", v)
	}
	if v.data == nil {
		if c.run.ctx == nil {
			panic(&fault{err: ir.NewOpError(c.node.op, ir.ErrArg, nil, "the elements of %v decide what is recorded, which Forward cannot wait for: use Call", v)})
		}
		c.table(v.dims...) // they are computed with as numbers
		c.run.sync(c.node)
		b, err := v.lazy.Bytes(c.run.ctx)
		if err != nil {
			panic(&fault{err: err})
		}
		v.data = b
	}
	return v.data
}

// ints returns the elements of an integer or bool tensor, or floats without a fraction.
func (c *call) ints(v *value) []int64 {
	data := c.contents(v)
	d := v.elem.dtype()
	if v.elem.float() {
		fs := elements.DecodeFloats(d, data)
		out := make([]int64, len(fs))
		for i, f := range fs {
			out[i] = ir.FloatToInt(ir.I64, f)
		}
		return out
	}
	if !d.IsIntegral() {
		c.fail("integers are expected, not %v", v)
	}
	return elements.DecodeInts(d, data)
}

func (c *call) intList(v *value) []int { return ints(c.ints(v)) }

// oneInt returns the only element of an integer tensor.
func (c *call) oneInt(v *value) int {
	n := c.ints(v)
	if len(n) != 1 {
		c.fail("one number is expected, not %v", v)
	}
	return int(n[0])
}

// floats returns the elements of a real tensor as numbers.
func (c *call) floats(v *value) []float64 {
	data := c.contents(v)
	if d := v.elem.dtype(); d.IsFloatOrF8() {
		return elements.DecodeFloats(d, data)
	}
	n := c.ints(v)
	out := make([]float64, len(n))
	for i, x := range n {
		out[i] = float64(x)
	}
	return out
}

func (c *call) oneFloat(v *value) float64 {
	n := c.floats(v)
	if len(n) != 1 {
		c.fail("one number is expected, not %v", v)
	}
	return n[0]
}

// flag returns the only element of a bool tensor.
func (c *call) flag(v *value) bool { return c.oneInt(v) != 0 }

// axis returns a dimension of a rank counted from the first.
func (c *call) axis(axis, rank int) int {
	if axis < -rank || axis >= rank {
		c.fail("axis %d is no dimension of %d", axis, rank)
	}
	if axis < 0 {
		axis += rank
	}
	return axis
}

// axes is axis for several, sorted; none may come twice.
func (c *call) axes(axes []int, rank int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = c.axis(a, rank)
	}
	slices.Sort(out)
	for i := 1; i < len(out); i++ {
		if out[i] == out[i-1] {
			c.fail("axis %d is given twice", out[i])
		}
	}
	return out
}
