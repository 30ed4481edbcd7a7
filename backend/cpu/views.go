package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/strided"
	"github.com/loris-ml/loris/ir"
)

func init() {
	lowerings[ir.OpReshape] = func(c *call) { c.out = append(c.out, c.reshape(c.in[0], c.outs[0])) }
	lowerings[ir.OpPermute] = lowerPermute
	lowerings[ir.OpExpand] = func(c *call) { c.out = append(c.out, expand(c.in[0], c.outs[0])) }
	lowerings[ir.OpSlice] = lowerSlice
	lowerings[ir.OpFlip] = lowerFlip
	lowerings[ir.OpCat], early[ir.OpCat] = lowerCat, placeCat
	lowerings[ir.OpConstantPadNd], early[ir.OpConstantPadNd] = lowerPad, placePad
}

// reshape returns v with other dimensions: the same buffer if a strided view
// can say it, a copy otherwise.
func (c *call) reshape(v value, s ir.Shape) value {
	if view, ok := v.view.Reshape(s.Dims()); ok {
		return value{s, v.buf, view}
	}
	o := c.dense(v)
	view := strided.Dense(s.Dims())
	view.Offset = o.off
	return value{s, o.buf, view}
}

func lowerPermute(c *call) {
	v := c.in[0]
	c.out = append(c.out, value{c.outs[0], v.buf, v.view.Permute(ir.PermuteDims(c.Args))})
}

// expand returns v broadcast to the dimensions of s.
func expand(v value, s ir.Shape) value {
	dims := s.Dims()
	return value{v.shape.WithDims(dims...), v.buf, v.view.Expand(dims)}
}

func lowerSlice(c *call) {
	dim, start, count, step := ir.SliceBounds(c.Args)
	v := c.in[0]
	c.out = append(c.out, value{c.outs[0], v.buf, v.view.Slice(dim, start, count, step)})
}

func lowerFlip(c *call) {
	v := c.in[0]
	c.out = append(c.out, value{c.outs[0], v.buf, v.view.Flip(ir.FlipDims(c.Args))})
}

// readers and writers move elements by size.
type readFunc func(dst, src []byte, v *strided.View, start int)

var readers = bySize[readFunc]{read[uint8], read[uint16], read[uint32], read[uint64], read[strided.Bits128]}

func read[T strided.Bits](dst, src []byte, v *strided.View, start int) {
	strided.Read(as[T](dst), as[T](src), v, start)
}

type writeFunc func(dst, src []byte, v *strided.View, lo, hi int)

var writers = bySize[writeFunc]{write[uint8], write[uint16], write[uint32], write[uint64], write[strided.Bits128]}

func write[T strided.Bits](dst, src []byte, v *strided.View, lo, hi int) {
	strided.Write(as[T](dst), as[T](src), v, lo, hi)
}

// copyCost is for one element that is moved, in nanoseconds.
const copyCost = 0.7

// materialise returns a dense copy of v.
func (l *lowering) materialise(in *graph.Instr, v value) value {
	out := l.newValue(v.shape)
	l.copyTo(in, out.buf, v)
	return out
}

// copyTo emits the copy of v to the start of a buffer. The step may write over
// v's own storage if it is what the copy would be.
func (l *lowering) copyTo(in *graph.Instr, dst int, v value) {
	m, total, size := l.mem, v.shape.Numel(), v.dtype().Size()
	view := v.view.Merge()
	unit := l.tune.unit
	if view.Rank > 1 && total > 0 {
		// Whole rows, so that transposed ones can be read in squares.
		row := view.Dims[view.Rank-1]
		unit = (unit + row - 1) / row * row
	}
	f := readers.of(v.dtype())
	s := step{Instr: in, Reads: []int{v.buf}, Writes: []int{dst}, Payload: work{n: (total + unit - 1) / unit, grain: l.grain(float64(unit) * copyCost)}}
	if v.view.IsDense() && l.bufs[v.buf].Bytes == l.bufs[dst].Bytes {
		s.InPlace = []plan.Pair{{Write: dst, Read: v.buf}}
	}
	src := v.buf
	s.Payload.run = func(lo, hi int) {
		lo, hi = lo*unit, min(hi*unit, total)
		f(m.bufs[dst][lo*size:hi*size], m.bufs[src], &view, lo)
	}
	l.emit(s)
}

// writeInto emits the copy of v into the elements of a buffer that view names.
func (l *lowering) writeInto(c *call, dst int, view strided.View, v value) {
	o, ok := v.contiguous()
	if !ok && l.move(c.instr, value{v.shape, dst, view}, v) {
		return
	}
	o = c.dense(v)
	m, size, f := l.mem, v.dtype().Size(), writers.of(v.dtype())
	merged := view.Merge()
	unit := l.tune.unit
	c.emit((o.n+unit-1)/unit, l.grain(float64(unit)*copyCost), []operand{{buf: dst}}, []operand{o}, func(lo, hi int) {
		f(m.bufs[dst], m.bufs[o.buf][o.off*size:], &merged, lo*unit, min(hi*unit, o.n))
	})
}

// place asks for an operand to be written where it belongs in the result.
func (c *call) place(id graph.ID, part value) {
	c.l.plan.Place(id, fuse.Value{Buf: part.buf, View: part.view})
}

// writePart emits the copy of an operand into its part of the result unless it
// is there.
func (c *call) writePart(part, v value) {
	if v.buf != part.buf && v.shape.Numel() > 0 {
		c.l.writeInto(c, part.buf, part.view, v)
	}
}

// catPart returns where operand i of a cat belongs.
func (c *call) catPart(i int) value {
	s := c.Args.In[i].Shape()
	dim := c.Dim("dim", c.outs[0].Rank())
	part := value{s, c.out[0].buf, c.out[0].view}
	for _, v := range c.Args.In[:i] {
		part.view.Offset += v.Shape().Dim(dim) * c.out[0].view.Strides[dim]
	}
	for d, n := range s.Dims() {
		part.view.Dims[d] = n
	}
	return part
}

func placeCat(c *call) {
	c.result()
	for i, id := range c.instr.Args {
		c.place(id, c.catPart(i))
	}
}

func lowerCat(c *call) {
	for i, v := range c.in {
		c.writePart(c.catPart(i), v)
	}
	if len(c.in) == 0 || c.outs[0].Numel() == 0 {
		c.emit(0, 1, []operand{{buf: c.out[0].buf}}, nil, nil) // the buffer must have a writer
	}
}

// padPart crops the operand of a pad where the padding is negative and returns
// where the rest belongs.
func (c *call) padPart(v value) (inner, part value) {
	inner, part = v, value{v.shape, c.out[0].buf, c.out[0].view}
	dims := c.outs[0].Dims()
	pad := c.Ints("pad")
	for i := 0; i < len(pad); i += 2 {
		d := len(dims) - 1 - i/2
		before, after := pad[i], pad[i+1]
		lo, hi := max(-before, 0), inner.view.Dims[d]-max(-after, 0)
		hi = max(hi, lo)
		inner.view.Offset += lo * inner.view.Strides[d]
		inner.view.Dims[d] = hi - lo
		part.view.Offset += max(before, 0) * part.view.Strides[d]
	}
	kept := make([]int, len(dims))
	for d := range kept {
		kept[d] = inner.view.Dims[d]
		part.view.Dims[d] = kept[d]
	}
	inner.shape = inner.shape.WithDims(kept...)
	part.shape = inner.shape
	return inner, part
}

// placePad fills the result with the value.
func placePad(c *call) {
	fill := c.l.val(c.instr.Args[1])
	c.result()
	c.l.copyTo(c.instr, c.out[0].buf, expand(fill, c.outs[0]))
	s := c.Args.In[0].Shape()
	if inner, part := c.padPart(denseValue(s, -1)); inner.shape == s {
		c.place(c.instr.Args[0], part)
	}
}

// lowerPad writes the operand into its place.
func lowerPad(c *call) {
	inner, part := c.padPart(c.in[0])
	c.writePart(part, inner)
}
