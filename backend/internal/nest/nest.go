// Package nest says how a processor goes over the grid of a fused kernel: in which pieces, and with
// which hints to its caches. What it makes is data (loop.Nest), which backend/cpu runs and
// backend/internal/ahead writes down for other processes.
package nest

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/loop"
)

// pieceNanos is what a piece of a pointwise kernel should cost at most, in nanoseconds: half of what is
// worth another processor, so that costly functions of few elements are spread, too.
const pieceNanos = 15_000

// Of returns how a kernel goes over its grid in pieces of about the given number of elements, fewer
// where pointwise ones cost much. The operands' buffers must be known.
func Of(k *fuse.Kernel, piece int) *loop.Nest {
	if k.Loop.Axis == loop.None {
		piece = min(piece, int(pieceNanos/max(k.Cost, 0.1)))
	}
	n := &loop.Nest{Rows: k.Grid.Rows.N, Cols: k.Grid.Cols.N, Units: cut(&k.Grid, k.Loop, k.Parts, piece)}
	for _, o := range k.Grid.Outer {
		n.Outer = append(n.Outer, o.N)
	}
	n.Args = make([]loop.NestArg, 0, len(k.Args))
	for i := range k.Args {
		n.Args = append(n.Args, arg(n, k, i))
	}
	return n
}

// leastColumns is how many columns a unit has at least of those that are cut for several threads.
const leastColumns = 64

// ColumnCuts returns into how many pieces CutColumns cuts so many columns.
func ColumnCuts(cols, threads int) int { return max(1, min(threads, cols/leastColumns)) }

// CutColumns cuts a nest whose units have all columns into as many pieces along these, if they are wide enough: for as
// many threads, where rows are computed in their order.
func CutColumns(n *loop.Nest, pieces int) {
	u := &n.Units
	most := ColumnCuts(n.Cols, pieces)
	u.ColSize = min(wholeLines((n.Cols+most-1)/most), n.Cols)
	u.Cols = (n.Cols + u.ColSize - 1) / max(u.ColSize, 1)
}

// callCost is what a call of a kernel takes beside its elements, in nanoseconds.
const callCost = 60

// Cost returns what a unit costs on a processor, in nanoseconds, roughly.
func Cost(k *fuse.Kernel, n *loop.Nest) float64 {
	return k.Cost*float64(n.Rows*n.Cols/(n.Units.Rows*n.Units.Cols)) + callCost
}

// arg returns operand i of a kernel. It makes room for one that is scratch.
func arg(n *loop.Nest, k *fuse.Kernel, i int) loop.NestArg {
	a := &k.Args[i]
	size := a.DType.Size()
	na := loop.NestArg{Buf: a.Buf, Off: a.View.Offset * size, Row: k.Grid.Rows.Steps[i] * size, Col: k.Grid.Cols.Steps[i] * size}
	if a.Role == fuse.Scratch {
		na.Buf, na.Off, na.Col = loop.Private, n.Scratch, size
		line := (size*n.Cols + lineBytes - 1) &^ (lineBytes - 1)
		if k.Loop.Args[i].Scratch {
			na.Row = line
			line *= lineElements
		}
		n.Scratch += line
	}
	if k.Loop.Args[i].Cols == loop.Unit {
		na.Col = size
	}
	if a.By > 0 {
		na.Size, na.Step = a.Size, a.Step*size
	}
	if a.Role == fuse.Part {
		na.Part = k.Lines * size
	}
	for _, o := range k.Grid.Outer {
		na.Outer = append(na.Outer, o.Steps[i]*size)
	}
	return na
}

const (
	// lineBytes and lineElements are a cache line, in bytes and in elements of f32.
	lineBytes    = 64
	lineElements = 16
	// streamBytes is from where on a result that nothing in the Program reads
	// passes by the cache if the kernel's operands together have more than
	// streamTogether, streamAlways from where on any does. What the cache of all
	// processors holds is better kept there: stores past it wait for the memory, to
	// which two processors write no faster than one.
	streamBytes    = 4 << 20
	streamTogether = 20 << 20
	streamAlways   = 24 << 20
	// aheadBytes is from where on an operand is not expected in the cache, and
	// aheadRow the most of a row that is fetched early.
	aheadBytes = 1 << 20
	aheadRow   = 16 << 10
)

// Steady reports whether Hint tells the same of all kernels whose operands lie alike: no result is so
// large that it matters whether anything reads it.
func Steady(k *fuse.Kernel) bool {
	for i := range k.Args {
		if a := &k.Args[i]; a.Role == fuse.Output && a.View.Len()*a.DType.Size() > streamBytes {
			return false
		}
	}
	return true
}

// Like returns the nest of a kernel as Of does, by that of one of its Layout.
func Like(n *loop.Nest, k *fuse.Kernel) loop.Nest {
	out := *n
	out.Args = make([]loop.NestArg, len(n.Args))
	for i := range out.Args {
		if out.Args[i] = n.Args[i]; n.Args[i].Buf != loop.Private {
			a := &k.Args[i]
			out.Args[i].Buf, out.Args[i].Off = a.Buf, a.View.Offset*a.DType.Size()
			out.Args[i].Size, out.Args[i].Step = a.Size, a.Step*a.DType.Size()
		}
	}
	return out
}

// Hint tells the compiler of kernels how operands lie to the caches.
func Hint(k *fuse.Kernel, uses *fuse.Uses) {
	together := 0
	for i := range k.Args {
		if a := &k.Args[i]; a.Role == fuse.Input || a.Role == fuse.Output {
			together += extent(a) * a.DType.Size()
		}
	}
	for i := range k.Args {
		a, arg := &k.Args[i], &k.Loop.Args[i]
		switch {
		case arg.Cols != loop.Unit:
		case a.Role == fuse.Output:
			arg.Stream = streams(a, together, uses)
		case a.Role == fuse.Input && k.Loop.Axis == loop.Columns && len(k.Loop.Passes) > 1:
			size := a.DType.Size()
			arg.Ahead = a.By == 0 && k.Grid.Rows.Steps[i] != 0 && k.Grid.Cols.N*size <= aheadRow && a.View.Len()*size > aheadBytes
		}
	}
}

// extent is the number of elements that an operand has in memory, each once.
func extent(a *fuse.Arg) int {
	n := 1
	for i, d := range a.View.Dims[:a.View.Rank] {
		if a.View.Strides[i] != 0 {
			n *= d
		}
	}
	return n
}

// streams reports whether a result of a kernel whose operands have so many bytes together should pass by
// the cache.
func streams(a *fuse.Arg, together int, uses *fuse.Uses) bool {
	bytes := a.View.Len() * a.DType.Size()
	return bytes > streamAlways || bytes > streamBytes && together > streamTogether && a.ID >= 0 && len(uses.Users[a.ID]) == 0
}

// cut cuts a grid into pieces of about the given number of elements.
func cut(g *fuse.Grid, k *loop.Kernel, parts, piece int) loop.Units {
	rows, cols := g.Rows.N, g.Cols.N
	kind := k.Axis
	if k.Height > 0 {
		kind = loop.Rows // a call has all rows
	}
	u := loop.Units{Rows: 1, Cols: 1, RowSize: rows, ColSize: cols}
	switch {
	case rows*cols == 0:
		return u
	case parts > 1 && kind == loop.Columns:
		u.Cols, u.ColSize, u.ColParts = parts, 0, true
		return u
	case parts > 1:
		u.Rows, u.RowSize, u.RowParts = parts, 0, true
		return u
	case kind == loop.Columns && crosses(g):
		u.RowSize = max(lineElements, piece/cols)
	case kind == loop.Columns:
		u.RowSize = max(1, piece/cols)
	case kind == loop.Rows:
		u.ColSize = wholeLines(max(piece/rows, 2*lineElements))
	case kind == loop.None:
		u.ColSize = wholeLines(piece)
		if crosses(g) {
			u.ColSize = 8 * lineElements
		}
		u.ColSize = min(u.ColSize, cols)
		u.RowSize = max(1, piece/u.ColSize)
	}
	u.RowSize, u.ColSize = min(u.RowSize, rows), min(u.ColSize, cols)
	u.Rows, u.Cols = (rows+u.RowSize-1)/u.RowSize, (cols+u.ColSize-1)/u.ColSize
	return u
}

func wholeLines(n int) int { return (n + lineElements - 1) / lineElements * lineElements }

// crosses reports whether an operand's columns lie far apart while its rows are
// neighbours, so that a long row would touch each cache line for one element.
func crosses(g *fuse.Grid) bool {
	for i, s := range g.Cols.Steps {
		if (s > lineElements || s < -lineElements) && (g.Rows.Steps[i] == 1 || g.Rows.Steps[i] == -1) {
			return true
		}
	}
	return false
}
