package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/loop"
)

const (
	// streamBytes is from where on a result that nothing in the Program reads
	// passes by the cache, streamAlways from where on any does.
	streamBytes  = 4 << 20
	streamAlways = 24 << 20
	// aheadBytes is from where on an operand is not expected in the cache, and
	// aheadRow the most of a row that is fetched early.
	aheadBytes = 1 << 20
	aheadRow   = 16 << 10
)

// hint tells the compiler of kernels how operands lie to the caches.
func (n *nestStep) hint() {
	for i := range n.Args {
		a, arg := &n.Args[i], &n.Loop.Args[i]
		switch {
		case arg.Cols != loop.Unit:
		case a.Role == fuse.Output:
			arg.Stream = n.streams(a)
		case a.Role == fuse.Input && n.Loop.Axis == loop.Columns && len(n.Loop.Passes) > 1:
			size := a.DType.Size()
			arg.Ahead = n.Grid.Rows.Steps[i] != 0 && n.Grid.Cols.N*size <= aheadRow && a.View.Len()*size > aheadBytes
		}
	}
}

// streams reports whether a result should pass by the cache.
func (n *nestStep) streams(a *fuse.Arg) bool {
	bytes := a.View.Len() * a.DType.Size()
	return bytes > streamAlways || bytes > streamBytes && a.ID >= 0 && len(n.l.Users[a.ID]) == 0
}

// units is how a grid is cut into independent pieces: counts along rows and
// columns, and sizes, where a size of 0 cuts into equal parts.
type units struct {
	rows, cols         int // counts
	rowSize, colSize   int
	rowParts, colParts bool // the unit's number along rows or columns is that of its part
}

// lineElements is a cache line of f32.
const lineElements = 16

// cut cuts a grid into pieces of about the given number of elements.
func cut(g *fuse.Grid, kind loop.Axis, parts, piece int) units {
	rows, cols := g.Rows.N, g.Cols.N
	u := units{rows: 1, cols: 1, rowSize: rows, colSize: cols}
	switch {
	case rows*cols == 0:
		return u
	case parts > 1 && kind == loop.Columns:
		u.cols, u.colSize, u.colParts = parts, 0, true
		return u
	case parts > 1:
		u.rows, u.rowSize, u.rowParts = parts, 0, true
		return u
	case kind == loop.Columns:
		u.rowSize = max(1, piece/cols)
	case kind == loop.Rows:
		u.colSize = wholeLines(max(piece/rows, 2*lineElements))
	case kind == loop.None:
		u.colSize = wholeLines(piece)
		if crosses(g) {
			u.colSize = 8 * lineElements
		}
		u.colSize = min(u.colSize, cols)
		u.rowSize = max(1, piece/u.colSize)
	}
	u.rowSize, u.colSize = min(u.rowSize, rows), min(u.colSize, cols)
	u.rows, u.cols = (rows+u.rowSize-1)/u.rowSize, (cols+u.colSize-1)/u.colSize
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
