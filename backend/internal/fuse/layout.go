package fuse

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// Layout is how kernels of one template are laid out whose operands lie alike: only the buffers and
// where they begin in these differ. It is safe for concurrent use.
type Layout struct {
	shape ir.Shape // of the group
	mask  [ir.MaxRank]bool
	views []strided.View
	lines int
	grid  Grid
	loop  *loop.Kernel // shared by the kernels once something is kept
	kept  atomic.Value
}

// Kept returns what Keep was called with last, or nil.
func (l *Layout) Kept() any {
	if l == nil {
		return nil
	}
	return l.kept.Load()
}

// Keep has a backend keep something with the Layout, always of one type. From then on the loops of
// kernels with the Layout are shared and must not be changed.
func (l *Layout) Keep(v any) {
	if l != nil {
		l.kept.Store(v)
	}
}

// maxLayouts bounds those of a template; a new one takes the place of the oldest.
const maxLayouts = 16

// layout returns the Layout of a kernel of the template, or nil.
func (t *template) layout(k *Kernel, g *group) *Layout {
	if of := t.layouts.Load(); of != nil {
		for _, l := range *of {
			if l.fits(k, g) {
				return l
			}
		}
	}
	return nil
}

func (l *Layout) fits(k *Kernel, g *group) bool {
	if l.shape != g.key.shape || l.mask != g.mask || l.lines != k.Lines {
		return false
	}
	for i := range k.Args {
		v, w := &k.Args[i].View, &l.views[i]
		if v.Rank != w.Rank || v.Strides != w.Strides || v.Dims != w.Dims {
			return false
		}
	}
	return true
}

// layOutAs finds the grid of a kernel of a template, by that of one whose operands lie alike if there is
// one, and reports whether kernels can be such.
func (gs *Groups) layOutAs(k *Kernel, t *template, g *group) bool {
	if l := t.layout(k, g); l != nil {
		k.Layout, k.Grid, k.Loop = l, l.grid, l.loop
		if l.Kept() == nil {
			own := *l.loop
			own.Args = slices.Clone(own.Args)
			k.Loop = &own
		}
		return true
	}
	if !k.layOut(g.key.shape.Dims(), g.mask, &gs.steps) {
		return false
	}
	of := *k.Loop
	of.Args = slices.Clone(of.Args)
	l := &Layout{shape: g.key.shape, mask: g.mask, views: make([]strided.View, len(k.Args)), lines: k.Lines, grid: k.Grid, loop: &of}
	for i := range k.Args {
		l.views[i] = k.Args[i].View
	}
	k.Layout = l
	gs.templates.lay(t, l)
	return true
}

// lay adds a Layout to a template.
func (ts *Templates) lay(t *template, l *Layout) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var of []*Layout
	if known := t.layouts.Load(); known != nil {
		of = *known
	}
	if len(of) == maxLayouts {
		of = of[1:]
	} else {
		ts.count(int(unsafe.Sizeof(*l)) + len(l.views)*int(unsafe.Sizeof(strided.View{})+unsafe.Sizeof(loop.Arg{})))
	}
	of = append(slices.Clip(of), l)
	t.layouts.Store(&of)
}
