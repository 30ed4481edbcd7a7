package cpu

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// grid is how the dimensions of a kernel's operands become rows and columns.
// What is left over is gone through outside of the kernel.
type grid struct {
	rows, cols axis
	outer      []axis
}

// axis is a merged dimension: how many steps and, by operand, how many elements
// each moves.
type axis struct {
	n      int
	steps  []int
	folded bool
}

// layGrid merges the dimensions of operands where all of them allow it, and
// chooses among the merged ones. A reduction's geometry does not depend on the
// operands.
func layGrid(kind loop.Axis, dims []int, mask [ir.MaxRank]bool, args []nestArg) grid {
	var runs []axis
	for d, n := range dims {
		if n == 1 {
			continue
		}
		steps := make([]int, len(args))
		for i := range args {
			if args[i].kind != scratchArg {
				steps[i] = args[i].view.Strides[d]
			}
		}
		if k := len(runs) - 1; k >= 0 && runs[k].folded == mask[d] && follows(runs[k].steps, steps, n) {
			runs[k].n *= n
			runs[k].steps = steps
			continue
		}
		runs = append(runs, axis{n, steps, mask[d]})
	}
	one := axis{n: 1, steps: make([]int, len(args))}
	g := grid{rows: one, cols: one}
	take := func(folded bool) axis {
		for k := len(runs) - 1; k >= 0; k-- {
			if runs[k].folded == folded {
				r := runs[k]
				runs = append(runs[:k:k], runs[k+1:]...)
				return r
			}
		}
		return one
	}
	switch kind {
	case loop.None:
		g.cols, g.rows = take(false), take(false)
	case loop.Columns:
		g.cols, g.rows = take(true), take(false)
	case loop.Rows:
		g.cols, g.rows = take(false), take(true)
	case loop.Both:
		g.cols, g.rows = take(true), take(true)
	}
	g.outer = runs
	return g
}

// follows reports whether every operand that moves by before moves n times as
// far as by step.
func follows(before, step []int, n int) bool {
	for i := range before {
		if before[i] != step[i]*n {
			return false
		}
	}
	return true
}

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

// kernelArgs describes the operands to the compiler of kernels.
func (n *nestStep) kernelArgs(g *grid) []loop.Arg {
	out := make([]loop.Arg, len(n.args))
	for i := range n.args {
		a := &n.args[i]
		out[i] = loop.Arg{DType: a.dtype, Write: a.kind.write()}
		switch step := g.cols.steps[i]; {
		case a.kind == scratchArg, step == 1, g.cols.n == 1 && (a.kind == outputArg || a.kind.write() && n.k.Axis == loop.Rows):
			out[i].Cols = loop.Unit
		case step != 0:
			out[i].Cols = loop.Free
		}
		switch {
		case out[i].Cols != loop.Unit:
		case a.kind == outputArg:
			out[i].Stream = n.streams(a)
		case a.kind == inputArg && n.k.Axis == loop.Columns && len(n.k.Passes) > 1:
			size := a.dtype.Size()
			out[i].Ahead = g.rows.steps[i] != 0 && g.cols.n*size <= aheadRow && a.view.Len()*size > aheadBytes
		}
	}
	return out
}

// streams reports whether a result should pass by the cache.
func (n *nestStep) streams(a *nestArg) bool {
	bytes := a.view.Len() * a.dtype.Size()
	return bytes > streamAlways || bytes > streamBytes && a.id >= 0 && len(n.l.users[a.id]) == 0
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
func (g *grid) cut(kind loop.Axis, parts, piece int) units {
	rows, cols := g.rows.n, g.cols.n
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
		if g.crosses() {
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
func (g *grid) crosses() bool {
	for i, s := range g.cols.steps {
		if (s > lineElements || s < -lineElements) && (g.rows.steps[i] == 1 || g.rows.steps[i] == -1) {
			return true
		}
	}
	return false
}

// direct reports whether an operand is a whole buffer in order.
func (a *nestArg) direct(l *lowering) bool {
	return a.view.IsDense() && a.view.Len()*a.dtype.Size() == l.bufs[a.buf].bytes
}

// pairs returns which results may be written over which operands: those read in
// the same places, and not by a later pass.
func (n *nestStep) pairs() []pair {
	last := map[int]int{} // of buffers that are only read in order
	for i := range n.args {
		a := &n.args[i]
		if a.kind.write() {
			continue
		}
		if at, seen := last[a.buf]; a.kind == inputArg && a.direct(n.l) && (!seen || at >= 0) {
			last[a.buf] = max(at, a.last)
		} else {
			last[a.buf] = -1
		}
	}
	var out []pair
	for i := range n.args {
		w := &n.args[i]
		if w.kind != outputArg || !w.direct(n.l) {
			continue
		}
		for k := range n.args {
			r := &n.args[k]
			if at, ok := last[r.buf]; r.kind == inputArg && ok && at >= 0 && at <= w.last && n.l.bufs[r.buf].bytes == n.l.bufs[w.buf].bytes {
				out = append(out, pair{w.buf, r.buf})
			}
		}
	}
	return out
}
