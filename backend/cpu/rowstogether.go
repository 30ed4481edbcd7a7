package cpu

import (
	"math"
	"slices"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/loop"
)

// mostTogether is how many columns a row has at most of which several are taken together.
const mostTogether = 16

// takeTogether has a kernel take several rows at a time, if its rows have few columns, or its columns lie a few
// elements apart and are made rows. It changes nothing and returns false where there is no code for that.
func (l *lowering) takeTogether(k *fuse.Kernel) bool {
	if l.engine.together == nil || k.Loop.Axis != loop.None || k.Parts > 1 {
		return false
	}
	g := k.Grid
	switch {
	case g.Cols.N <= mostTogether && (g.Rows.N >= l.tune.together || fewTogether(&g)):
	case g.Cols.N >= 2*l.tune.together && slices.ContainsFunc(k.Loop.Args, func(a loop.Arg) bool { return a.Cols == loop.Free }):
		g = columnsAsRows(&k.Grid)
	default:
		return false
	}
	width := k.Loop.Width
	k.Loop.Width = g.Cols.N
	for i := range k.Loop.Args {
		a, row, col := &k.Loop.Args[i], g.Rows.Steps[i], g.Cols.Steps[i]
		if k.Args[i].Role == fuse.Scratch || row != int(int16(row)) || col != int(int16(col)) {
			row = math.MinInt32 // too far for rows to be in a few vectors
		}
		a.RowStep, a.ColStep = int32(row), int32(col)
	}
	if !l.engine.together(k.Loop) {
		k.Loop.Width = width
		for i := range k.Loop.Args {
			k.Loop.Args[i].RowStep, k.Loop.Args[i].ColStep = 0, 0
		}
		return false
	}
	k.Grid = g
	return true
}

// mostWhole is how many columns a row has at most that is taken whole.
const mostWhole = 64

// takeWhole has a kernel go over its columns without a loop, if there are few and there is code for that. Results
// that pass by the cache are stored in loops.
func (l *lowering) takeWhole(k *fuse.Kernel) {
	g := &k.Grid
	if l.engine.whole == nil || l.tune.piece < mostWhole || g.Cols.N > mostWhole || g.Rows.N < l.tune.together && len(g.Outer) == 0 {
		return
	}
	if slices.ContainsFunc(k.Loop.Args, func(a loop.Arg) bool { return a.Stream }) {
		return
	}
	k.Loop.Width = g.Cols.N
	if !l.engine.whole(k.Loop) {
		k.Loop.Width = 0
	}
}

// fewTogether reports whether few rows are taken together, too: a call has them of many grids, and they fill a
// vector that has several.
func fewTogether(g *fuse.Grid) bool {
	return len(g.Outer) > 0 && g.Rows.N*g.Cols.N >= mostTogether && (2*g.Cols.N <= mostTogether || g.Rows.N >= 4)
}

// columnsAsRows returns a grid whose rows are the columns of another, whose rows are gone through outside.
func columnsAsRows(of *fuse.Grid) fuse.Grid {
	g := fuse.Grid{Rows: of.Cols, Cols: fuse.Dim{N: 1, Steps: make([]int, len(of.Cols.Steps))}, Outer: of.Outer}
	if of.Rows.N != 1 {
		g.Outer = append(slices.Clip(of.Outer), of.Rows)
	}
	return g
}
