package cpu

import (
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
			row = loop.Far // than that rows are in a few vectors
		}
		a.RowStep, a.ColStep = int32(row), int32(col)
	}
	if !l.engine.together(k.Loop) {
		k.Loop.Width = width
		forgetSteps(k.Loop)
		return false
	}
	k.Grid = g
	return true
}

// forgetSteps undoes what a kernel was told of where rows and columns lie.
func forgetSteps(k *loop.Kernel) {
	for i := range k.Args {
		a := &k.Args[i]
		a.RowStep, a.ColStep, a.Scratch = 0, 0, false
	}
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

// mostGrouped is how many columns a row has at most of which several are finished together.
const mostGrouped = 256

// takeGrouped has a kernel whose lines are rows finish several of them together, if they are short and there is code for that.
func (l *lowering) takeGrouped(k *fuse.Kernel) {
	g := &k.Grid
	if l.engine.grouped == nil || k.Loop.Axis != loop.Columns || k.Parts > 1 || g.Cols.N > mostGrouped || g.Rows.N < l.tune.together/2 {
		return
	}
	k.Loop.Width = g.Cols.N
	for i := range k.Loop.Args {
		a := &k.Loop.Args[i]
		a.RowStep, a.ColStep, a.Scratch = nearStep(g.Rows.Steps[i]), loop.Far, k.Args[i].Role == fuse.Scratch
	}
	if l.engine.grouped(k.Loop) {
		return
	}
	k.Loop.Width = 0
	forgetSteps(k.Loop)
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

const (
	// mostTall is how many rows there are at most of lines that are taken whole.
	mostTall = 8
	// mostNear is how far elements are apart at most whose places the code knows. Others are as the Frame says, so that
	// the code serves all sizes.
	mostNear = 16
)

func nearStep(step int) int32 {
	if step < 0 || step > mostNear {
		return loop.Far
	}
	return int32(step)
}

// takeTall has a kernel take its lines whole, if they are columns of few rows: those that are reduced, and others whose
// elements adjoin. What an index picks of them is moved for a call. It changes nothing and returns false where there is no code for that.
func (l *lowering) takeTall(k *fuse.Kernel) bool {
	g := &k.Grid
	if l.engine.tall == nil || k.Parts > 1 || g.Rows.N > mostTall || slices.ContainsFunc(k.Args, func(a fuse.Arg) bool { return a.Across }) {
		return false
	}
	switch k.Loop.Axis {
	case loop.Rows:
	case loop.None:
		adjoin := false
		for i := range k.Args {
			adjoin = adjoin || g.Rows.Steps[i] == 1 && g.Cols.Steps[i] == g.Rows.N
		}
		if !adjoin || g.Rows.N == 1 || g.Cols.N < 2*mostTogether {
			return false
		}
	default:
		return false
	}
	k.Loop.Height = g.Rows.N
	for i := range k.Loop.Args {
		a := &k.Loop.Args[i]
		a.RowStep, a.ColStep = nearStep(g.Rows.Steps[i]), nearStep(g.Cols.Steps[i])
	}
	if l.engine.tall(k.Loop) {
		return true
	}
	k.Loop.Height = 0
	forgetSteps(k.Loop)
	return false
}
