package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/strided"
	"github.com/loris-ml/loris/ir"
)

func init() {
	lowerings[ir.OpReshape] = reshape
	lowerings[ir.OpPermute] = func(c *call) { c.view(c.in[0].view.Permute(ir.PermuteDims(c.Args))) }
	lowerings[ir.OpExpand] = func(c *call) { c.view(c.in[0].view.Expand(c.outs[0].Dims())) }
	lowerings[ir.OpSlice] = func(c *call) { c.view(c.in[0].view.Slice(ir.SliceBounds(c.Args))) }
	lowerings[ir.OpFlip] = func(c *call) { c.view(c.in[0].view.Flip(ir.FlipDims(c.Args))) }
	lowerings[ir.OpCat], early[ir.OpCat] = cat, placeCat
	lowerings[ir.OpConstantPadNd] = pad
}

// view makes the result a view of the operand.
func (c *call) view(v strided.View) { c.out = append(c.out, c.in[0].as(c.outs[0], v)) }

// reshape copies if no view can say it.
func reshape(c *call) {
	dims := c.outs[0].Dims()
	view, ok := c.in[0].view.Reshape(dims)
	if !ok {
		c.in[0] = c.copied(c.in[0])
		view, _ = c.in[0].view.Reshape(dims)
	}
	c.view(view)
}

// copied returns a dense copy of a value.
func (c *call) copied(v value) value {
	out := c.l.newValue(v.shape)
	c.copyTo(out, v)
	return out
}

// movers are dtypes of each size, for elements that are only moved.
var movers = map[int]ir.DType{1: ir.U8, 2: ir.I16, 4: ir.I32, 8: ir.I64}

// copyTo emits the copy of v to another value of its dimensions.
func (c *call) copyTo(to, v value) {
	if to.contiguous() && v.contiguous() {
		p := planned{Step: Step{Copy: v.shape.Bytes(), Fault: -1}, operands: places(to, v), writes: 1}
		if to.view.Offset == 0 && v.view.Offset == 0 {
			p.inPlace = []plan.Pair{{Write: to.buf, Read: v.buf}}
		}
		c.emit(p)
		return
	}
	n := &nest{}
	g, _ := merge(v.shape.Dims(), []strided.View{to.view, v.view}, same)
	last := len(g.dims) - 1
	if near := nearest(g.strides[1]); near >= 0 && near != last || v.size() == 16 {
		if near == last {
			near = last - 1
		}
		of := n.pick(g, near, last)
		n.arg(to, of(0), true)
		n.arg(v, of(1), false)
		plan := (&emit.Transpose{Geometry: n.g, Size: v.size()}).Plan(c.l.opt.Limits)
		c.kernels(plan, 1, to, v)
		return
	}
	d := movers[v.size()]
	to.shape, v.shape = to.shape.WithDType(d), v.shape.WithDType(d)
	n.begin()
	of := n.pick(g, last-1, last)
	x := n.load(n.arg(v, of(1), false))
	n.store(n.arg(to, of(0), true), x)
	n.emit(c, d)
}

// nearest returns the dimension along which elements are neighbours, or -1.
func nearest(strides []int) int {
	return slices.IndexFunc(strides, func(s int) bool { return s == 1 || s == -1 })
}

// aligned returns the greatest power of two, most at most, that the addresses of
// values are multiples of.
func aligned(most int, values ...value) int {
	align := most
	for _, v := range values {
		for at(v).off%align != 0 {
			align /= 2
		}
	}
	return align
}

// catParts returns where the operands of a cat belong.
func (c *call) catParts() (parts []value) {
	dim, at := c.Dim("dim", c.outs[0].Rank()), 0
	for _, x := range c.Args.In {
		n := x.Shape().Dim(dim)
		parts = append(parts, c.out[0].as(x.Shape(), c.out[0].view.Slice(dim, at, n, 1)))
		at += n
	}
	return parts
}

// placeCat asks for the operands to be computed where they belong.
func placeCat(c *call) {
	c.result()
	for i, part := range c.catParts() {
		c.l.plan.Place(c.instr.Args[i], fuse.Value{Buf: part.buf, View: part.view})
	}
}

// cat joins dense operands by one kernel, and copies others each to its place if
// they are not there.
func cat(c *call) {
	out := c.out[0]
	places := c.catParts()
	var parts []value
	ready := true
	for _, v := range c.in {
		if v.shape.Numel() > 0 {
			parts = append(parts, v)
			ready = ready && v.contiguous() && v.buf != out.buf
		}
	}
	if ready {
		g := emit.Cat{Size: out.size(), Align: aligned(16, parts...)}
		g.Outer, _, _ = out.shape.Around(c.Dim("dim", out.shape.Rank()))
		for _, v := range parts {
			g.Parts = append(g.Parts, v.shape.Numel()/g.Outer)
		}
		c.kernels(g.Plan(c.l.opt.Limits), 1, append([]value{out}, parts...)...)
		return
	}
	for i, v := range c.in {
		if v.shape.Numel() > 0 && v.buf != out.buf {
			c.copyTo(places[i], v)
		}
	}
}

// pad puts the value, of one element, around the operand.
func pad(c *call) {
	x, fill, out := c.in[0], c.in[1], c.result()
	dims := out.shape.Dims()
	g := emit.Pad{Dims: dims, Before: make([]int, len(dims)), Inner: x.shape.Dims(), Strides: x.view.Strides[:len(dims)], Size: x.size()}
	for i, list := 0, c.Ints("pad"); i < len(list); i += 2 {
		g.Before[len(dims)-1-i/2] = list[i]
	}
	c.kernels(g.Plan(c.l.opt.Limits), 1, out, x, fill)
}
