// Package fuse decides which instructions of a Program become one kernel (package
// loop), over which grid, and which pointwise ops the kernel of a product or
// convolution applies to its results. It knows nothing of memory or devices, so that
// all backends that emit kernels fuse alike.
//
// A backend goes through the instructions in order and Adds each to the Groups. An
// instruction that is taken waits in a group of instructions over the same
// dimensions until one of the group's values is Needed; the group is then built as
// a kernel, which the backend compiles and emits. An instruction that is not taken
// is emitted by the backend itself, after it has Needed the operands.
//
//	for i := range p.Instrs {
//		if !groups.Add(int32(i)) {
//			for _, id := range p.Instrs[i].Args {
//				groups.Need(id)
//			}
//			… // compute it from where its operands lie
//		}
//	}
//	for _, id := range p.Returns {
//		groups.Need(id)
//	}
package fuse

import (
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
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
	// Mask marks the dimensions that are reduced.
	Mask [ir.MaxRank]bool
	// Axis is what they are to a kernel.
	Axis loop.Axis
	// Lines is the number of results.
	Lines int
	// Place says that results are places of elements, which parts of a line can't give.
	Place bool
	// Product says that elements are factors.
	Product bool
}

// Backend emits the kernels of Groups. Its methods are called from those of Groups
// only. What they emit runs in the order in which they are called.
type Backend interface {
	// Supports reports whether kernels can hold an instruction like the probe. The
	// answer depends on the probe alone: it decides what an instruction is computed
	// by wherever it stands.
	Supports(q Probe) bool
	// Parts returns into how many parts the lines of a reduction are cut by one
	// kernel, to be reduced by a second, or 1. The answer depends on the reduction
	// alone, since floats summed in other parts have another sum. A backend whose
	// kernels share lines out themselves returns 1.
	Parts(r Reduction) int
	// Beside reports whether the lines of a reduction, whose elements adjoin, are computed beside each
	// other, an element of each at a time: its Axis is Rows then. The answer depends on the reduction
	// alone, as that of Parts does.
	Beside(r Reduction) bool
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

// Brief is a Backend that needs of a Kernel nothing but Instrs, Divisions and Layout once it is emitted:
// the memory of the rest is that of the next one.
type Brief interface {
	Backend
	BriefKernels()
}

// Singly is a Backend whose kernels read elements of some dtypes one by one where they lie apart, which takes
// longer than to read a copy of them in order.
type Singly interface {
	Backend
	ReadsSingly(d ir.DType) bool
}

// LaneOrdered is a Backend whose kernels add up floats of less than 64 bits along columns in an order of their lanes, of
// which they have half as many with elements of 64 bits. No kernel has both then, since the order of a sum must not
// depend on what else is in its kernel.
type LaneOrdered interface {
	Backend
	OrdersByLanes() bool
}

// Groups holds the instructions of a Program that wait to become kernels.
type Groups struct {
	p       *graph.Program
	b       Backend
	uses    *Uses
	unused  []int32 // by ID: how many users have not joined its group
	open    map[groupKey]*group
	pending []*group // by ID: the open group that will compute it
	// places has the values that are wanted in a part of another's buffer.
	places map[graph.ID]Value

	templates *Templates
	ref       []int32 // by ID: scratch of structure
	key       []byte  // scratch of fromTemplate
	filler    builder // scratch of fromTemplate
	args      []Arg   // scratch of fromTemplate, and so is kernel, for a Brief backend
	kernel    Kernel
	brief     bool
	singly    func(d ir.DType) bool // of a Singly backend
	byLanes   bool                  // of a LaneOrdered backend
	chooser   Chooser               // the backend, if it is one
	steps     Slab[int]

	records *Script // takes what is decided, if not nil
	follows *Script // has what is decided, if not nil
	made    []*group
	adding  int32 // the instruction that Add was called with, or -1
	closing int   // how many closings are in progress, one within another
}

// New returns the Groups of a Program, which has been checked, for a backend.
func New(p *graph.Program, u *Uses, b Backend) *Groups {
	gs := newGroups(p, u, b)
	gs.unused = make([]int32, len(p.Shapes))
	for id, users := range u.Users {
		gs.unused[id] = int32(len(users))
	}
	return gs
}

func newGroups(p *graph.Program, u *Uses, b Backend) *Groups {
	gs := &Groups{
		p: p, b: b, uses: u, open: map[groupKey]*group{}, pending: make([]*group, len(p.Shapes)),
		places: map[graph.ID]Value{}, ref: make([]int32, len(p.Shapes)), adding: -1,
	}
	_, gs.brief = b.(Brief)
	gs.singly = func(ir.DType) bool { return false }
	if s, ok := b.(Singly); ok {
		gs.singly = s.ReadsSingly
	}
	if l, ok := b.(LaneOrdered); ok {
		gs.byLanes = l.OrdersByLanes()
	}
	gs.chooser, _ = b.(Chooser)
	if t, ok := b.(Templated); ok {
		gs.templates = t.Templates()
	} else {
		gs.templates = NewTemplates()
	}
	return gs
}

// Add takes the next instruction into a group: every pointwise one, reductions
// that there is code for, and views of what a group reduces. It reports whether it
// did; if not, the backend computes it. Composites are never taken.
func (gs *Groups) Add(i int32) bool {
	switch {
	case gs.follows != nil:
		return gs.follow(i)
	case gs.records != nil:
		gs.adding = i
		joined := gs.add(i)
		gs.adding = -1
		gs.records.joined[i] = joined
		return joined
	}
	return gs.add(i)
}

func (gs *Groups) add(i int32) bool {
	if s := gs.p.Instrs[i].Op.Spec(); s.Category == ir.Pointwise && !s.Composite() {
		gs.join(i)
		return true
	}
	return gs.joinReduce(i) || gs.joinView(i)
}

// Need closes the group that is to compute a value, if one is: afterwards the
// backend has been told where it lies.
func (gs *Groups) Need(id graph.ID) {
	if g := gs.pending[id]; g != nil {
		gs.close(g)
	}
}

// Place asks for a value to be computed in its place in a larger one, if a kernel
// is to compute it and nothing but that kernel and the present instruction uses it.
// Whether that was done is seen by the Value's buffer when it has been Needed.
func (gs *Groups) Place(id graph.ID, v Value) {
	if gs.placeable(id) {
		gs.places[id] = v
	}
}

// PlaceInOrder asks, as Place does, for a value to be computed in a buffer of its own where its dimensions are in another
// order in memory, if a kernel without reductions is to compute it from few operands of its size. A result whose elements
// are narrower than theirs is copied in less time than they are read in another order.
func (gs *Groups) PlaceInOrder(id graph.ID, order []int) {
	if !gs.placeable(id) || gs.pending[id].reduced || len(gs.pending[id].sinks) > 0 {
		return
	}
	s, whole := gs.p.Shape(id), 0
	for _, in := range gs.pending[id].inputs {
		if x := gs.p.Shape(in); x.SameDims(s) {
			if x.DType().Size() > s.DType().Size() {
				return
			}
			whole++
		}
	}
	if whole > mostReordered {
		return
	}
	dims := make([]int, len(order))
	for to, from := range order {
		dims[to] = s.Dim(from)
	}
	gs.places[id] = Value{None, strided.Dense(dims).Permute(inverseOf(order))}
}

// mostReordered is how many operands are read in another order at most so that a result is written in order.
const mostReordered = 2

// placeable reports whether a kernel is to compute a value that nothing but that kernel and the present instruction uses.
func (gs *Groups) placeable(id graph.ID) bool {
	g := gs.pending[id]
	if g == nil || g.nest == nil || g.statistic[id] || gs.uses.Kept[id] {
		return false
	}
	users := gs.uses.Users[id]
	if len(users) > 1 && g.reduced {
		return false // a later pass reads it where it would lie by itself
	}
	outside := 0
	for _, u := range users {
		if gs.pending[gs.p.Instrs[u].Out] != g {
			outside++
		}
	}
	return outside == 1
}
