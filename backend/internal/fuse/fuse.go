// Package fuse decides what of a Program is computed together: which
// instructions become one kernel (package loop), over which grid, and what a
// product or convolution does to its results while it has them. It knows nothing
// of memory or devices, so that every backend that emits kernels has the same
// plan.
//
// A backend goes through the instructions in order and Adds each to a Plan. What
// the Plan takes waits in a *group* of instructions over the same dimensions, until
// one of its values is Needed; the group is then built as a kernel, for which the
// backend is asked. What the Plan does not take the backend computes by itself,
// after it has Needed the operands.
//
//	for i := range p.Instrs {
//		if !plan.Add(int32(i)) {
//			for _, id := range p.Instrs[i].Args {
//				plan.Need(id)
//			}
//			… // compute it from where its operands lie
//		}
//	}
//	for _, id := range p.Returns {
//		plan.Need(id)
//	}
package fuse

import (
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
	"github.com/loris-ml/loris/ir"
)

// Value is where a value of a Program lies: a view, with the value's dimensions,
// of a buffer that the backend numbers from 0 on.
type Value struct {
	Buf  int
	View strided.View
}

// Reduction is the geometry of a reduction.
type Reduction struct {
	// Shape is the operand's.
	Shape ir.Shape
	// Mask marks the dimensions that are folded.
	Mask [ir.MaxRank]bool
	// Axis is what they are to a kernel.
	Axis loop.Axis
	// Lines is the number of results.
	Lines int
}

// Backend is what a Plan needs of whoever computes the Program. Its methods are
// called from those of the Plan only. They may emit work; it is to run in the order
// in which they are called.
type Backend interface {
	// Supports reports whether kernels can hold an instruction like the probe. The
	// answer depends on the probe alone: it decides what an instruction is computed
	// by wherever it stands.
	Supports(q Probe) bool
	// Parts returns into how many parts the lines of a reduction are cut by one
	// kernel, to be folded by a second, or 1. The answer depends on the reduction
	// alone, since floats summed in other parts have another sum. A backend whose
	// kernels share lines out themselves returns 1.
	Parts(r Reduction) int
	// Value returns where a value lies that no group is still to compute.
	Value(id graph.ID) Value
	// SetValue says where a value lies that a kernel has computed, in the dimensions
	// that the Program gives it.
	SetValue(id graph.ID, v Value)
	// Copy emits a dense copy of v, whose elements are of dtype d.
	Copy(d ir.DType, v Value) Value
	// Kernel compiles a kernel; ok is false if there is no code for it. emit, which is
	// called at most once, emits it: it makes the buffers of those operands whose Buf
	// is None and that are not Scratch, Kernel.Bytes large, and sets Buf. Parts have
	// been set to those of an earlier kernel where they are read.
	Kernel(k *Kernel) (emit func(), ok bool)
	// Unfused emits instructions without a kernel: pointwise ones over the same
	// dimensions, of which leaves says what is used by others, or a single
	// reduction or view. It sees to their Values itself.
	Unfused(instrs []int32, leaves func(id graph.ID) bool)
}

// Plan is the plan of a Program while it is being made.
type Plan struct {
	p       *graph.Program
	b       Backend
	uses    *Uses
	unused  []int32 // by ID: how many users have not joined its group
	open    map[groupKey]*group
	pending []*group // by ID: the open group that will compute it
	// places has the values that are wanted in a part of another's buffer.
	places map[graph.ID]Value
}

// New returns the Plan of a Program, which has been checked, for a backend.
func New(p *graph.Program, u *Uses, b Backend) *Plan {
	pl := &Plan{
		p: p, b: b, uses: u, unused: make([]int32, len(p.Shapes)), open: map[groupKey]*group{}, pending: make([]*group, len(p.Shapes)),
		places: map[graph.ID]Value{},
	}
	for id, users := range u.Users {
		pl.unused[id] = int32(len(users))
	}
	return pl
}

// Add takes the next instruction into a group: every pointwise one, reductions
// that there is code for, and views of what a group reduces. It reports whether it
// did; if not, the backend computes it. Composites are never taken.
func (pl *Plan) Add(i int32) bool {
	if s := pl.p.Instrs[i].Op.Spec(); s.Category == ir.Pointwise && !s.Composite() {
		pl.join(i)
		return true
	}
	return pl.joinReduce(i) || pl.joinView(i)
}

// Need closes the group that is to compute a value, if one is: afterwards the
// backend has been told where it lies.
func (pl *Plan) Need(id graph.ID) {
	if g := pl.pending[id]; g != nil {
		pl.close(g)
	}
}

// Place asks for a value to be computed in its place in a larger one, if a kernel
// is to compute it and nothing but the present instruction uses it. Whether that
// was done is seen by the Value's buffer when it has been Needed.
func (pl *Plan) Place(id graph.ID, v Value) {
	if g := pl.pending[id]; g != nil && g.nest != nil && !g.line[id] && !pl.uses.Kept[id] && len(pl.uses.Users[id]) == 1 {
		pl.places[id] = v
	}
}
