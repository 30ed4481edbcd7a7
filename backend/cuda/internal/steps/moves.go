package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/strided"
)

func init() {
	lowerings[aten.Cat] = cat
	lowerings[aten.ConstantPadNd] = pad
}

// CopyTo emits the copy of v to another value of its dimensions.
func (l *lowering) CopyTo(in *graph.Instr, to, v plan.Value) {
	(&call{&plan.Call{Instr: in}, l}).copyTo(to, v)
}

func (c *call) copyTo(to, v plan.Value) {
	if to.Contiguous() && v.Contiguous() {
		p := planned{Step: Step{Copy: v.Shape.Bytes(), Fault: -1}, operands: places(to, v), writes: 1}
		if to.View.Offset == 0 && v.View.Offset == 0 {
			p.inPlace = []plan.Pair{{Write: to.Buf, Read: v.Buf}}
		}
		c.emit(p)
		return
	}
	n := &nest{}
	g, _ := merge(v.Shape.Dims(), []strided.View{to.View, v.View}, same)
	last := len(g.dims) - 1
	if near := nearest(g.strides[1]); near >= 0 && near != last || v.Size() == 16 {
		if near == last {
			near = last - 1
		}
		of := n.pick(g, near, last)
		n.arg(to, of(0), true)
		n.arg(v, of(1), false)
		plan := (&emit.Transpose{Geometry: n.g, Size: v.Size()}).Plan(c.l.opt.Limits)
		c.kernels(plan, 1, to, v)
		return
	}
	d := fuse.Movers[v.Size()]
	to.Shape, v.Shape = to.Shape.WithDType(d), v.Shape.WithDType(d)
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
func aligned(most int, values ...plan.Value) int {
	align := most
	for _, v := range values {
		for at(v).off%align != 0 {
			align /= 2
		}
	}
	return align
}

// cat joins dense operands by one kernel, and copies others each to its place if
// they are not there.
func cat(c *call) {
	places := c.CatParts()
	out := c.Results[0]
	var parts []plan.Value
	ready := true
	for _, v := range c.Operands {
		if v.Shape.Numel() > 0 {
			parts = append(parts, v)
			ready = ready && v.Contiguous() && v.Buf != out.Buf
		}
	}
	if ready {
		g := emit.Cat{Size: out.Size(), Align: aligned(16, parts...)}
		g.Outer, _, _ = out.Shape.Around(c.Dim("dim", out.Shape.Rank()))
		for _, v := range parts {
			g.Parts = append(g.Parts, v.Shape.Numel()/g.Outer)
		}
		c.kernels(g.Plan(c.l.opt.Limits), 1, append([]plan.Value{out}, parts...)...)
		return
	}
	for i, v := range c.Operands {
		if v.Shape.Numel() > 0 && v.Buf != out.Buf {
			c.copyTo(places[i], v)
		}
	}
}

// pad puts the value, of one element, around the operand.
func pad(c *call) {
	x, fill, out := c.Operands[0], c.Operands[1], c.Result()
	dims := out.Shape.Dims()
	g := emit.Pad{Dims: dims, Before: make([]int, len(dims)), Inner: x.Shape.Dims(), Strides: x.View.Strides[:len(dims)], Size: x.Size()}
	for i, list := 0, c.Ints("pad"); i < len(list); i += 2 {
		g.Before[len(dims)-1-i/2] = list[i]
	}
	c.kernels(g.Plan(c.l.opt.Limits), 1, out, x, fill)
}
