package pool

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels"
)

// boxElements is about how many elements of planes are treated together; with what is made of them they stay in
// the nearest caches.
const boxElements = 4 << 10

// mostIdle bounds the strides of depths and rows, since what lies between the windows is computed for nothing.
const mostIdle = 4

// wholeVectors is a multiple of the elements of all vectors.
const wholeVectors = 16

// inBoxes says that planes are dense: then the elements of a place in the windows adjoin over all rows, but for a
// few between the rows that are no windows, once columns are split by their remainders by the stride. With
// indices no window may have padding, whose place could be the first; and where planes fill a block, these
// adjoin better. Small elements have no loops.
func (m *Max[T]) inBoxes() bool {
	var x T
	if unsafe.Sizeof(x) < 4 || m.inLines() || m.separable() || m.N*m.C*m.Out[0]*m.Out[1]*m.Out[2] == 0 {
		return false
	}
	if m.Windows[0] != nil || m.Windows[1] != nil || m.Windows[2] != nil || m.Stride[0]*m.Stride[1] > mostIdle {
		return false
	}
	if !m.ordered(&m.XLayout, m.In) || !m.ordered(&m.ValuesLayout, m.Out) {
		return false
	}
	return m.Indices == nil || m.N*m.C < blockPlanes && m.ordered(&m.IndicesLayout, m.Out) && m.covered()
}

// ordered reports whether planes of these dimensions lie row by row, one after another.
func (g *Geometry) ordered(l *Layout, d [3]int) bool {
	rows := (d[2] == 1 || l.Spatial[2] == 1) && (d[1] == 1 || l.Spatial[1] == d[2]) && (d[0] == 1 || l.Spatial[0] == d[1]*d[2])
	plane := d[0] * d[1] * d[2]
	return rows && (g.C == 1 || l.Channel == plane) && (g.N == 1 || l.Batch == g.C*plane)
}

// covered reports whether all elements of all windows are inside.
func (g *Geometry) covered() bool {
	for d, n := range g.Out {
		if g.Pad[d] != 0 || g.extent(d, n) > g.In[d] {
			return false
		}
	}
	return true
}

// extent returns how many positions n windows of a dimension have.
func (g *Geometry) extent(d, n int) int { return (n-1)*g.Stride[d] + (g.Kernel[d]-1)*g.Dilation[d] + 1 }

// box is windows that are treated at once: those of whole planes, or of some depths or rows of one.
type box struct {
	planes, depths, rows int    // of outputs
	wide                 [3]int // the positions of a plane that they have; columns are a multiple of their stride
}

// box returns the largest one.
func (g *Geometry) box() box {
	b := box{planes: 1, depths: g.Out[0], rows: g.Out[1]}
	columns := g.extent(2, g.Out[2])
	if g.Pad[2] == 0 && g.In[2]%g.Stride[2] == 0 {
		columns = max(columns, g.In[2]) // what no window has need not be cut off
	}
	columns = (columns + g.Stride[2] - 1) / g.Stride[2] * g.Stride[2]
	size := func() int { return g.extent(0, b.depths) * g.extent(1, b.rows) * columns }
	for size() > boxElements && b.depths > 1 {
		b.depths = (b.depths + 1) / 2
	}
	for size() > 2*boxElements && b.rows > 2*g.Kernel[1] {
		b.rows = (b.rows + 1) / 2
	}
	b.wide = [3]int{g.extent(0, b.depths), g.extent(1, b.rows), columns}
	if b.rows < g.Out[1] {
		return b
	}
	if g.Pad[1] == 0 {
		b.wide[1] = max(b.wide[1], g.In[1])
	}
	if b.depths < g.Out[0] {
		return b
	}
	if g.Pad[0] == 0 {
		b.wide[0] = max(b.wide[0], g.In[0])
	}
	b.planes = max(1, boxElements/(b.wide[0]*b.wide[1]*columns))
	return b
}

// boxes returns how many boxes there are: groups of planes, of depths and of rows.
func (g *Geometry) boxes(b *box) (planes, depths, rows int) {
	return (g.N*g.C + b.planes - 1) / b.planes, (g.Out[0] + b.depths - 1) / b.depths, (g.Out[1] + b.rows - 1) / b.rows
}

// boxed is a box of one Max. Its parts are the elements by the remainders of their columns by the stride, one
// remainder after another; rows have row elements of each. The windows begin at those of first, in plane.
type boxed[T kernels.Number] struct {
	*Max[T]
	box
	plane, row int
	first      [2]int
	parts      []T
}

// computeBoxes computes boxes lo..hi-1.
func (m *Max[T]) computeBoxes(r *maxRow[T], lo, hi int) {
	whole := m.box()
	_, depths, rows := m.boxes(&whole)
	for i := lo; i < hi; i++ {
		b := boxed[T]{Max: m, box: whole, row: whole.wide[2] / m.Stride[2], plane: i / (depths * rows) * whole.planes}
		b.first = [2]int{i / rows % depths * whole.depths, i % rows * whole.rows}
		b.planes = min(b.planes, m.N*m.C-b.plane)
		b.depths, b.rows = min(b.depths, m.Out[0]-b.first[0]), min(b.rows, m.Out[1]-b.first[1])
		b.parts = b.gather(r)
		if m.Stride[2] > 1 {
			x := b.parts
			r.parts = grow(r.parts, len(x)+wholeVectors)[:len(x)]
			split(r.parts, x, m.Stride[2], len(x)/m.Stride[2])
			b.parts = r.parts
		}
		if m.Indices == nil {
			b.most(r)
		} else {
			b.greatest(r)
		}
	}
}

// gather returns the positions of the box with the padding around them: those that lie in memory so, or a copy.
func (b *boxed[T]) gather(r *maxRow[T]) []T {
	in, wide := b.In, b.wide
	from := [2]int{b.first[0]*b.Stride[0] - b.Pad[0], b.first[1]*b.Stride[1] - b.Pad[1]}
	plane, size := in[0]*in[1]*in[2], wide[0]*wide[1]*wide[2]
	whole := wide[2] == in[2] && b.Pad[2] == 0 // rows follow each other
	inside := whole && from[0] >= 0 && from[1] >= 0 && from[0]+wide[0] <= in[0] && from[1]+wide[1] <= in[1]
	x := b.X[b.plane*plane:]
	if inside && (b.planes == 1 || size == plane) && (wide[0] == 1 || wide[1] == in[1]) {
		return x[(from[0]*in[1]+from[1])*in[2]:][:b.planes*size]
	}
	r.rows = grow(r.rows, b.planes*size)
	if !inside {
		b.fill(r.rows)
	}
	top, bottom := max(0, -from[1]), min(wide[1], in[1]-from[1])
	n := min(in[2], wide[2]-b.Pad[2])
	if top >= bottom || n <= 0 {
		return r.rows
	}
	for p := range b.planes {
		for d := max(0, -from[0]); d < min(wide[0], in[0]-from[0]); d++ {
			rows := x[p*plane+((from[0]+d)*in[1]+from[1]+top)*in[2]:][:(bottom-top)*in[2]]
			dst := r.rows[p*size+(d*wide[1]+top)*wide[2]:]
			if whole {
				copy(dst, rows)
				continue
			}
			for i := range bottom - top {
				copy(dst[i*wide[2]+b.Pad[2]:][:n], rows[i*in[2]:])
			}
		}
	}
	return r.rows
}

// most finds what is greatest: of the windows' parts of each row, of these along rows, then along depths. The
// first of equal elements and the last NaN of a window are so in this order, too.
func (b *boxed[T]) most(r *maxRow[T]) {
	by := b.Stride[2]
	part := len(b.parts) / by
	n := part - (b.Kernel[2]-1)*b.Dilation[2]/by
	r.best = grow(r.best, part)
	line := r.best[:n]
	copy(line, b.parts)
	for k := 1; k < b.Kernel[2]; k++ {
		at := k * b.Dilation[2]
		most(line, b.parts[at%by*part+at/by:][:n])
	}
	r.along = grow(r.along, part)
	line, free := mostAlong(line, r.along, b.Kernel[1], b.Dilation[1]*b.row)
	line, _ = mostAlong(line, free[:cap(free)], b.Kernel[0], b.Dilation[0]*b.wide[1]*b.row)
	depth, down := b.wide[1]*b.row, b.Stride[1]*b.row
	for p := range b.planes {
		for d := range b.depths {
			b.take(p, d, line[(p*b.wide[0]+d*b.Stride[0])*depth:], down)
		}
	}
}

// mostAlong sets free to what is greatest of n elements of src, from step elements apart, and returns it and
// src, or, where n is 1, these the other way round.
func mostAlong[T kernels.Number](src, free []T, n, step int) (line, other []T) {
	if n == 1 {
		return src, free
	}
	line = free[:len(src)-(n-1)*step]
	copy(line, src)
	for k := 1; k < n; k++ {
		most(line, src[k*step:][:len(line)])
	}
	return line, src
}

// take copies the windows of a depth out of a line of which rows lie down elements apart.
func (b *boxed[T]) take(plane, depth int, line []T, down int) {
	n := b.Out[2]
	values := b.Values[(((b.plane+plane)*b.Out[0]+b.first[0]+depth)*b.Out[1]+b.first[1])*n:][:b.rows*n]
	switch {
	case down == n:
		copy(values, line)
	case n == 4:
		for i := range b.rows {
			*(*[4]T)(values[4*i:]) = *(*[4]T)(line[i*down:])
		}
	default:
		for i := range b.rows {
			copy(values[i*n:][:n], line[i*down:])
		}
	}
}

// greatest finds what is greatest and where it is, place by place of the windows of a depth.
func (b *boxed[T]) greatest(r *maxRow[T]) {
	by, depth, down := b.Stride[2], b.wide[1]*b.row, b.Stride[1]*b.row
	part, n := len(b.parts)/by, (b.rows-1)*down+b.Out[2]
	parts := b.parts
	if by > 1 { // with others behind them, so that lines are of whole vectors
		n = (n + wholeVectors - 1) &^ (wholeVectors - 1)
		parts = parts[:len(parts)+wholeVectors]
	}
	r.best, r.at = grow(r.best, n), grow(r.at, n)
	for i := range b.planes * b.depths {
		p, d := i/b.depths, i%b.depths
		first := (p*b.wide[0] + d*b.Stride[0]) * depth
		copy(r.best, parts[first:])
		clear(r.at)
		for k0 := range b.Kernel[0] {
			for k1 := range b.Kernel[1] {
				at := first + k0*b.Dilation[0]*depth + k1*b.Dilation[1]*b.row
				index := (k0*b.Dilation[0]*b.In[1] + k1*b.Dilation[1]) * b.In[2]
				for k2 := range b.Kernel[2] {
					if k0+k1+k2 == 0 {
						continue // it is there already
					}
					shift := k2 * b.Dilation[2]
					greater(r.best, r.at, parts[shift%by*part+at+shift/by:][:n], int32(index+shift))
				}
			}
		}
		b.take(p, d, r.best, down)
		b.places(p, d, r.at, down)
	}
}

// places is take of where the elements are behind the first ones of their windows.
func (b *boxed[T]) places(plane, depth int, at []int32, down int) {
	n := b.Out[2]
	depth += b.first[0]
	indices := b.Indices[(((b.plane+plane)*b.Out[0]+depth)*b.Out[1]+b.first[1])*n:]
	for i := range b.rows {
		first := (depth*b.Stride[0]*b.In[1] + (b.first[1]+i)*b.Stride[1]) * b.In[2]
		line := at[i*down:][:n]
		row := indices[i*n:][:len(line)]
		for j, v := range line {
			row[j] = int64(first + int(v))
			first += b.Stride[2]
		}
	}
}
