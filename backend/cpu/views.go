package cpu

import (
	"slices"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/strided"
)

func init() {
	composites[aten.PadEdges] = true
	lowerings[aten.PadEdges] = lowerPadEdges
	composites[aten.Unfold] = true // the plan makes views of it
	lowerings[aten.Cat] = lowerCat
	lowerings[aten.ConstantPadNd] = func(c *call) { c.Pad() }
}

// readers and writers move elements by size.
type readFunc func(dst, src []byte, v *strided.View, start int)

var readers = bySize[readFunc]{readSquares(1, read[uint8], transposeNarrow[uint8]), readSquares(2, read[uint16], transposeNarrow[uint16]),
	readSquares(4, read[uint32], transposeWords[float32]), readSquares(8, read[uint64], transposeWords[float64]), read[strided.Bits128]}

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

// CopyTo emits the copy of v to another value.
func (l *lowering) CopyTo(in *graph.Instr, to, v plan.Value) {
	if !to.View.IsDense() || l.Buffers[to.Buf].Bytes != v.Shape.Bytes() {
		l.copyToPart(in, to, v)
		return
	}
	m, total, size := l.mem, v.Shape.Numel(), v.Size()
	view := v.View.Merge()
	unit := l.tune.unit
	if view.Rank > 1 && total > 0 {
		// Whole rows, so that transposed ones can be read in squares. Others that are longer than a unit are cut:
		// a few of them would leave processors without work.
		switch row, block := view.Dims[view.Rank-1], view.Crossed(size); {
		case block > 0:
			unit = (unit + block - 1) / block * block
		case view.Transposed():
			unit = max((unit+row-1)/row, strided.SquareRows) * row
		case row <= unit:
			unit = (unit + row - 1) / row * row
		}
	}
	f := readers.of(v.DType())
	s := step{Instr: in, Reads: []int{v.Buf}, Writes: []int{to.Buf}, Payload: work{n: (total + unit - 1) / unit, grain: l.grain(float64(unit) * copyCost)}}
	if v.View.IsDense() && l.Buffers[v.Buf].Bytes == l.Buffers[to.Buf].Bytes {
		s.InPlace = []plan.Pair{{Write: to.Buf, Read: v.Buf}}
	}
	dst, src := to.Buf, v.Buf
	s.Payload.run = func(lo, hi int) {
		lo, hi = lo*unit, min(hi*unit, total)
		f(m.bufs[dst][lo*size:hi*size], m.bufs[src], &view, lo)
	}
	l.emit(s)
}

// copyToPart emits the copy of v to a part of a buffer.
func (l *lowering) copyToPart(in *graph.Instr, to, v plan.Value) {
	o, ok := contiguous(v)
	if !ok {
		if l.moveShort(in, to, v) || l.move(in, to, v) {
			return
		}
		o, _ = contiguous(l.Copied(in, v))
	}
	m, size, f := l.mem, v.Size(), writers.of(v.DType())
	merged := to.View.Merge()
	unit := l.tune.unit
	l.emit(step{Instr: in, Reads: []int{o.buf}, Writes: []int{to.Buf}, Payload: work{
		n: (o.n + unit - 1) / unit, grain: l.grain(float64(unit) * copyCost), run: func(lo, hi int) {
			f(m.bufs[to.Buf], m.bufs[o.buf][o.off*size:], &merged, lo*unit, min(hi*unit, o.n))
		},
	}})
}

type copyFunc func(dst, src []byte, to, from *strided.View, lo, hi int)

var copiers = bySize[copyFunc]{copyShort[uint8], copyShort[uint16], copyShort[uint32], copyShort[uint64], copyShort[strided.Bits128]}

func copyShort[T strided.Bits](dst, src []byte, to, from *strided.View, lo, hi int) {
	strided.CopyShort(as[T](dst), as[T](src), to, from, lo, hi)
}

// shortMoves is a step that copies short lines to parts of a buffer, some units of all parts before the next:
// parts of one value, as the places of windows, find it in a cache near by.
type shortMoves struct {
	instr             *graph.Instr
	step, to, n, size int
	parts             []shortMove
}

// shortMove is one part: of views, or of rows that adjoin.
type shortMove struct {
	from     int
	to, view strided.View
	rows     bool
}

// togetherBytes is how much of a part is copied before the next part.
const togetherBytes = 32 << 10

// moveShort emits the copy of short lines to a part of a buffer, and reports whether lines are short.
func (l *lowering) moveShort(in *graph.Instr, to, v plan.Value) bool {
	x, y := strided.MergeBoth(to.View, v.View)
	if !strided.Short(&x, &y, v.Size()) {
		return false
	}
	n := x.Dims[0]
	g := l.moves
	if g == nil || g.instr != in || g.step != len(l.steps)-1 || g.to != to.Buf || g.n != n || g.size != v.Size() {
		g = l.newShortMoves(in, to, n)
	}
	g.add(l, shortMove{from: v.Buf, to: x, view: y})
	return true
}

// newShortMoves emits a step that copies nothing yet.
func (l *lowering) newShortMoves(in *graph.Instr, to plan.Value, n int) *shortMoves {
	g := &shortMoves{instr: in, step: len(l.steps), to: to.Buf, n: n, size: to.Size()}
	l.moves = g
	m, f := l.mem, copiers.of(to.DType())
	l.emit(step{Instr: in, Writes: []int{to.Buf}, Payload: work{n: n, run: func(lo, hi int) { g.run(m, f, lo, hi) }}})
	return g
}

func (g *shortMoves) add(l *lowering, part shortMove) {
	g.parts = append(g.parts, part)
	s := &l.steps[g.step]
	s.Reads = append(s.Reads, part.from)
	elements := 0
	for i := range g.parts {
		elements += g.parts[i].to.Len() / g.n
	}
	s.Payload.grain = l.grain(float64(elements) * copyCost)
}

func (g *shortMoves) run(m *memory, f copyFunc, lo, hi int) {
	together := hi - lo
	if len(g.parts) > 1 {
		together = max(1, togetherBytes*g.n/(g.parts[0].to.Len()*g.size))
	}
	for ; lo < hi; lo += together {
		end := min(lo+together, hi)
		for i := range g.parts {
			p := &g.parts[i]
			if p.rows {
				row := p.to.Strides[0] * g.size
				copy(m.bufs[g.to][lo*row:end*row], m.bufs[p.from][p.view.Offset*g.size+lo*row:])
				continue
			}
			f(m.bufs[g.to], m.bufs[p.from], &p.to, &p.view, lo, end)
		}
	}
}

func lowerCat(c *call) {
	parts := c.CatParts()
	if c.replaceShort(parts) {
		return
	}
	for i, part := range parts {
		c.WritePart(part, c.Operands[i])
	}
	if len(c.Operands) == 0 || c.Shapes[0].Numel() == 0 {
		c.emit(0, 1, []operand{{buf: c.Results[0].Buf}}, nil, nil) // the buffer must have a writer
	}
}

// replaceShort emits a cat of which some parts are in memory as they are to be in the result, in short lines: all of
// that memory is copied in one piece, and then the other parts. It emits nothing and returns false for any other cat.
func (c *call) replaceShort(parts []plan.Value) bool {
	out := c.Results[0]
	if !out.View.IsDense() || out.View.Offset != 0 || out.Shape.Numel() == 0 {
		return false
	}
	kept := slices.IndexFunc(c.Operands, func(v plan.Value) bool { return v.Shape.Numel() > 0 })
	for i, v := range c.Operands {
		if v.Buf == out.Buf {
			return false // what is there already would be lost
		}
		if v.Shape.Numel() > c.Operands[kept].Shape.Numel() {
			kept = i
		}
	}
	whole, by := c.Operands[kept], c.Operands[kept].View.Offset-parts[kept].View.Offset
	if by < 0 || (by+out.Shape.Numel())*out.Size() > c.l.Buffers[whole.Buf].Bytes {
		return false
	}
	n, _, _ := out.Shape.Around(c.Dim("dim", out.Shape.Rank()))
	rows := shortMove{from: whole.Buf, to: strided.Dense([]int{n, out.Shape.Numel() / n}), rows: true}
	rows.view = rows.to
	rows.view.Offset = by
	moves, copied := []shortMove{rows}, 0
	for i, v := range c.Operands {
		x, y := strided.MergeBoth(parts[i].View, v.View)
		if v.Shape.Numel() > 0 && (x.Dims[0] != n || !strided.Short(&x, &y, v.Size())) {
			return false
		}
		if v.Buf != whole.Buf || y.Offset-x.Offset != by || y.Strides != x.Strides {
			moves = append(moves, shortMove{from: v.Buf, to: x, view: y})
			copied += v.Shape.Numel()
		}
	}
	if 2*copied > out.Shape.Numel() {
		return false
	}
	g := c.l.newShortMoves(c.Instr, out, n)
	for _, part := range moves {
		g.add(c.l, part)
	}
	return true
}

type padFunc func(dst, src []byte, axes []strided.Axis, lo, hi int)

var padders = bySize[padFunc]{padRows[uint8], padRows[uint16], padRows[uint32], padRows[uint64], padRows[strided.Bits128]}

func padRows[T strided.Bits](dst, src []byte, axes []strided.Axis, lo, hi int) {
	strided.Pad(as[T](dst), as[T](src), axes, lo, hi)
}

// lowerPadEdges emits all dimensions of a padding as one step over the rows of the result.
func lowerPadEdges(c *call) {
	dims, pad := c.Operands[0].Shape.Dims(), c.Ints("pad")
	axes := make([]strided.Axis, len(dims))
	for d, n := range dims {
		var before, after int
		if i := 2 * (len(dims) - 1 - d); i < len(pad) {
			before, after = pad[i], pad[i+1]
		}
		switch c.Str("mode") {
		case "reflect":
			axes[d] = strided.Reflected(n, before, after)
		case "replicate":
			axes[d] = strided.Replicated(n, before, after)
		default:
			axes[d] = strided.Wrapped(n, before, after)
		}
	}
	x, out, m, f := c.dense(c.Operands[0]), c.result(), c.l.mem, padders.of(c.Operands[0].DType())
	size, row := c.Operands[0].Size(), c.Shapes[0].Dim(-1)
	c.emit(out.n/max(row, 1), c.l.grain(copyCost*float64(row)), []operand{out}, []operand{x}, func(lo, hi int) {
		f(m.bufs[out.buf][out.off*size:], m.bufs[x.buf][x.off*size:], axes, lo, hi)
	})
}
