package onnx

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// padding are the elements added at the two ends of each dimension; negative ones are taken away.
type padding struct{ before, after []int }

// pad has its widths as an attribute before opset 11, then as an input.
func pad(c *call, in []*value) *value {
	v := in[0]
	name := "pads"
	if c.node.version < 2 {
		name = "paddings"
	}
	widths := c.listInput(in, 1, name)
	axes := make([]int, v.rank())
	for i := range axes {
		axes[i] = i
	}
	if a := opt(in, 3); a != nil {
		axes = c.intList(a)
	}
	if len(widths) != 2*len(axes) {
		c.fail("pads %v do not fit %d axes", widths, len(axes))
	}
	p := padding{make([]int, v.rank()), make([]int, v.rank())}
	for i, a := range axes {
		a = c.axis(a, v.rank())
		p.before[a], p.after[a] = widths[i], widths[i+len(axes)]
	}
	var fill any = c.float("value", 0)
	if f := opt(in, 2); f != nil && !f.empty {
		fill = c.number(f)
	} else if v.elem.dtype().IsIntegral() {
		fill = 0
	}
	return out(v.elem, c.padded(v, p, c.text("mode", "constant"), fill))
}

// number returns the only element of a value as a Go number.
func (c *call) number(v *value) any {
	if v.elem.dtype().IsIntegral() {
		return c.oneInt(v)
	}
	return c.oneFloat(v)
}

// padded pads or crops; modes other than constant gather along each axis.
func (c *call) padded(v *value, p padding, mode string, fill any) *loris.Tensor {
	t := c.tensor(v)
	if mode == "constant" {
		var list []int
		for i := v.rank() - 1; i >= 0; i-- {
			list = append(list, p.before[i], p.after[i])
		}
		if t.DType() == ir.Bool {
			return t.Cast(ir.U8).ConstantPadNd(list, fill).Cast(ir.Bool)
		}
		return t.ConstantPadNd(list, fill)
	}
	for axis, size := range v.dims {
		if p.before[axis] == 0 && p.after[axis] == 0 {
			continue
		}
		n := size + p.before[axis] + p.after[axis]
		if n < 0 || size == 0 {
			c.fail("pads %v and %v do not fit %v", p.before, p.after, v)
		}
		c.table(n)
		index := make([]int64, n)
		from, kept := 0, size
		if mode == "wrap" { // what is cut off does not come back at the other end
			from = max(0, -p.before[axis])
			if kept -= from + max(0, -p.after[axis]); kept <= 0 {
				c.fail("pads %v and %v do not fit %v", p.before, p.after, v)
			}
		}
		for i := range index {
			index[i] = int64(from + c.mirrored(i-p.before[axis]-from, kept, mode))
		}
		t = t.IndexSelect(axis, c.tensor(hostInts(index...)))
	}
	return t
}

// mirrored returns the index of the element that stands at i beyond the ends of an axis.
func (c *call) mirrored(i, size int, mode string) int {
	switch mode {
	case "edge":
		return min(max(i, 0), size-1)
	case "wrap":
		return ((i % size) + size) % size
	case "reflect":
		if size == 1 {
			return 0
		}
		period := 2 * (size - 1)
		i = ((i % period) + period) % period
		return min(i, period-i)
	}
	c.unsupported("padding of mode %q", mode)
	return 0
}

func centerCropPad(c *call, in []*value) *value {
	v := in[0]
	want := c.intList(in[1])
	axes := c.list("axes")
	if axes == nil {
		for i := range v.rank() {
			axes = append(axes, i)
		}
	}
	if len(axes) != len(want) {
		c.fail("shape %v does not fit axes %v", want, axes)
	}
	p := padding{make([]int, v.rank()), make([]int, v.rank())}
	for i, a := range axes {
		a = c.axis(a, v.rank())
		more := want[i] - v.dims[a]
		if more >= 0 {
			p.before[a] = more / 2
		} else {
			p.before[a] = -(-more / 2)
		}
		p.after[a] = more - p.before[a]
	}
	return out(v.elem, c.padded(v, p, "constant", 0))
}
