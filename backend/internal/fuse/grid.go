package fuse

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// Grid is how the dimensions of a kernel's operands become rows and columns.
// What is left over is gone through outside of the kernel.
type Grid struct {
	Rows, Cols Dim
	Outer      []Dim
}

// Dim is a merged dimension: how many steps and, by operand, how many elements
// each moves. Those of a reduction are Folded.
type Dim struct {
	N       int
	Steps   []int
	Reduced bool
}

// lay merges the dimensions of operands where all of them allow it, and
// chooses among the merged ones. A reduction's geometry does not depend on the
// operands.
func lay(kind loop.Axis, dims []int, mask [ir.MaxRank]bool, args []Arg, room *Slab[int]) Grid {
	runs := make([]Dim, 0, len(dims))
	for d, n := range dims {
		if n == 1 {
			continue
		}
		steps := room.Take(len(args))
		for i := range args {
			if args[i].Role != Scratch {
				steps[i] = args[i].View.Strides[d]
			}
		}
		if k := len(runs) - 1; k >= 0 && runs[k].Reduced == mask[d] && follows(runs[k].Steps, steps, n) {
			runs[k].N *= n
			runs[k].Steps = steps
			continue
		}
		runs = append(runs, Dim{n, steps, mask[d]})
	}
	one := Dim{N: 1, Steps: room.Take(len(args))}
	g := Grid{Rows: one, Cols: one}
	take := func(reduced bool) Dim {
		for k := len(runs) - 1; k >= 0; k-- {
			if runs[k].Reduced == reduced {
				r := runs[k]
				runs = append(runs[:k:k], runs[k+1:]...)
				return r
			}
		}
		return one
	}
	switch kind {
	case loop.None:
		if k := inOrderOfResults(runs, args); k >= 0 {
			g.Cols = runs[k]
			runs = append(runs[:k:k], runs[k+1:]...)
		} else {
			g.Cols = take(false)
		}
		g.Rows = take(false)
	case loop.Columns:
		g.Cols, g.Rows = take(true), take(false)
	case loop.Rows:
		g.Cols, g.Rows = take(false), take(true)
	case loop.Both:
		g.Cols, g.Rows = take(true), take(true)
	}
	g.Outer = runs
	return g
}

// inOrderOfResults returns the number of the dimension along which all results adjoin in memory, or -1. Rows that an index
// chooses stay rows.
func inOrderOfResults(runs []Dim, args []Arg) int {
	if slices.ContainsFunc(args, func(a Arg) bool { return a.By > 0 }) {
		return -1
	}
	return slices.IndexFunc(runs, func(d Dim) bool {
		results := 0
		for i := range args {
			if args[i].Role != Output {
				continue
			}
			results++
			if d.Steps[i] != 1 {
				return false
			}
		}
		return results > 0
	})
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

// reducedMerge reports whether each run of marked dimensions has one stride.
func reducedMerge(v *strided.View, mask *[ir.MaxRank]bool) bool {
	next := -1 // the dimension after, within the run
	for d := v.Rank - 1; d >= 0; d-- {
		if v.Dims[d] == 1 {
			continue
		}
		if !mask[d] {
			next = -1
			continue
		}
		if next >= 0 && v.Strides[d] != v.Strides[next]*v.Dims[next] {
			return false
		}
		next = d
	}
	return true
}

// apartUses is how often the elements of an operand are read where a copy of them in the order of the
// columns takes less time than to read them one by one.
// Where they are read singly at any rate, so it does but for fewSingly elements.
const apartUses, fewSingly = 8, 1 << 10

// apart returns the elements of an operand once each, if they lie apart along the last dimension and are
// used often enough to be copied, or are read singly otherwise.
func apart(v *strided.View, singly bool) (once strided.View, ok bool) {
	last := 0
	for d, n := range v.Dims[:v.Rank] {
		if n > 1 {
			last = v.Strides[d]
		}
	}
	once, uses := usedOnce(v)
	return once, (uses >= apartUses || singly && once.Len() > fewSingly) && last != 0 && last != 1
}

// usedOnce returns the elements of an operand once each, and how often each is used.
func usedOnce(v *strided.View) (once strided.View, uses int) {
	once, uses = *v, 1
	for d, n := range v.Dims[:v.Rank] {
		if v.Strides[d] == 0 {
			uses *= n
			once.Dims[d] = 1
		}
	}
	return once, uses
}

const (
	// shortRow is how long rows are at most that cost more to begin than to go through, and fewRepeated how
	// many elements an operand is repeated to at most.
	shortRow, fewRepeated = 32, 1 << 14
	// repeatUses is how often what is repeated is read, at least.
	repeatUses = 16
)

// repeat returns an operand that has the same short row for all of a dimension, as the numbers of an
// image's channels that lie last, with the row as often as the dimension is long: rows may be joined then.
func repeat(v *strided.View) (repeated strided.View, ok bool) {
	last := v.Rank - 1
	for last > 0 && v.Dims[last] == 1 {
		last--
	}
	before := last - 1
	for before >= 0 && v.Dims[before] == 1 {
		before--
	}
	if before < 0 || v.Dims[last] > shortRow || v.Strides[last] == 0 || v.Strides[before] != 0 {
		return repeated, false
	}
	repeated, _ = usedOnce(v)
	repeated.Dims[before] = v.Dims[before]
	n := repeated.Len()
	return repeated, n <= fewRepeated && v.Len() >= repeatUses*n
}

// axisOf returns how the reduction of the marked dimensions maps to lines; not
// ok if it does not, or there is nothing to reduce.
func axisOf(s ir.Shape, mask [ir.MaxRank]bool) (axis loop.Axis, ok bool) {
	runs, last, reduced := 0, false, false
	for d, n := range s.Dims() {
		if n == 0 {
			return loop.None, false
		}
		if n == 1 {
			continue
		}
		if mask[d] && !reduced {
			runs++
		}
		reduced, last = mask[d], mask[d]
	}
	switch {
	case runs == 1 && last:
		return loop.Columns, true
	case runs == 1:
		return loop.Rows, true
	case runs == 2 && last:
		return loop.Both, true
	}
	return loop.None, false
}
