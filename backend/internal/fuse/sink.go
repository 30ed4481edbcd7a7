package fuse

import (
	"encoding/binary"
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// Sink is a place to which the kernel of a group stores a value over its dimensions besides its own results.
type Sink struct {
	// ID is the value: one from outside, which lies in memory or is Chosen, or one of the group, which nothing else
	// needs then.
	ID graph.ID
	// To is the place. By, if not nil, is an index that chooses parts of it, as that of a Chosen does.
	To Value
	By *Chosen
	// Sum says that the value is added to what is there, row by row in order.
	Sum bool
}

// Storer is a Backend whose kernels may have Sinks.
type Storer interface {
	Backend
	// Store emits the store of a Sink without a kernel of a group.
	Store(s *Sink)
}

// AddSink has the kernel that is to compute a value store another one, too, which may be that value. It reports
// whether it will. The Sink needs its places when the group is closed, which must come before anything joins it.
func (gs *Groups) AddSink(with graph.ID, s *Sink) bool {
	g, own := gs.pending[with], gs.pending[s.ID]
	if _, ok := gs.b.(Storer); !ok || g == nil || g.nest == nil || g.reduced || own != nil && own != g || !gs.p.Shape(s.ID).SameDims(g.key.shape) {
		return false
	}
	d := gs.p.Shape(s.ID).DType()
	if d.Size() > 8 || d.IsComplex() || loop.ComputeDType(d) != d || own == g && !s.Sum ||
		s.Sum && !gs.b.Supports(Probe{Op: aten.Add, In: [3]ir.DType{d, d}, N: 2, Out: d}) ||
		len(g.inputs)+g.results+4*(len(g.sinks)+1) > loop.MaxArgs {
		return false
	}
	if own == g {
		if gs.uses.Kept[s.ID] || gs.usesOutside(s.ID, g) != 1 {
			return false
		}
		if g.sunk == nil {
			g.sunk = map[graph.ID]bool{}
		}
		g.sunk[s.ID] = true
	}
	g.sinks = append(g.sinks, s)
	g.template = nil
	return true
}

// Waits reports whether a group is still to compute a value.
func (gs *Groups) Waits(id graph.ID) bool { return gs.pending[id] != nil }

// Nanos returns what an element of the group costs that is to compute a value, in nanoseconds, roughly.
func (gs *Groups) Nanos(id graph.ID) (n float64) {
	if g := gs.pending[id]; g != nil {
		n = gs.nanos(g)
	}
	return n
}

func (gs *Groups) nanos(g *group) (n float64) {
	for _, i := range g.members {
		n += costOf(gs.p.Instrs[i].Op)
	}
	return n
}

// usesOutside counts the uses of a value by others than the members of a group.
func (gs *Groups) usesOutside(id graph.ID, g *group) (n int) {
	for _, u := range gs.uses.Users[id] {
		if gs.pending[gs.p.Instrs[u].Out] != g {
			n++
		}
	}
	return n
}

// sums reports whether a group adds to what is there.
func (g *group) sums() bool {
	return slices.ContainsFunc(g.sinks, func(s *Sink) bool { return s.Sum })
}

// sink writes a value that goes elsewhere, and returns where. Sums read first what is there.
func (b *builder) sink(n int) (arg int, v loop.Value) {
	s := b.g.sinks[n]
	d := b.dtype(s.ID)
	v = b.value(s.ID)
	arg = b.sinkOperand(n)
	if s.Sum {
		v = b.apply(aten.Add, d, d, []loop.Value{b.load(arg, d), v})
	}
	return arg, v
}

// sinkOperand returns the number of the operand that a sink stores to.
func (b *builder) sinkOperand(n int) int {
	s := b.g.sinks[n]
	to := b.arg(argKey{graph.ID(n), Stored}, func() Arg { return Arg{DType: b.dtype(s.ID), Buf: s.To.Buf, View: s.To.View} })
	if s.By != nil {
		by := b.arg(argKey{graph.ID(n), StoredBy}, func() Arg { return Arg{DType: ir.I64, Buf: s.By.Index.Buf, View: s.By.Index.View} })
		a := &b.args[to]
		a.By, a.Size, a.Step, a.Chooser = by+1, s.By.Size, s.By.Step, s.By.Instr
	}
	return to
}

// AddMoved returns the kernel by which in adds a value in memory, of dtype d, to the place of a sink; false if kernels can't.
func AddMoved(in *graph.Instr, d ir.DType, s *Sink, src Value) (*Kernel, bool) {
	w := &kernelWriter{}
	w.begin()
	w.store(1, w.apply(aten.Add, d, d, []loop.Value{w.load(1, d), w.load(0, d)}))
	k := &Kernel{Loop: &w.k, Cost: w.cost, Instrs: []*graph.Instr{in}, Ordered: true, Args: []Arg{
		{DType: d, Buf: src.Buf, View: src.View, Role: Input, ID: NoValue},
		{DType: d, Buf: s.To.Buf, View: s.To.View, Role: Stored, ID: NoValue, By: 3, Size: s.By.Size, Step: s.By.Step, Chooser: in},
		{DType: ir.I64, Buf: s.By.Index.Buf, View: s.By.Index.View, Role: StoredBy, ID: NoValue},
	}}
	return k, k.layOut(src.View.Dims[:src.View.Rank], [ir.MaxRank]bool{}, new(Slab[int]))
}

const (
	keySum = 1 << iota
	keyBy
)

// sinkStructure appends what decides the stores of a group that go elsewhere.
func (gs *Groups) sinkStructure(key []byte, g *group, ref func(id graph.ID) int32) []byte {
	for _, s := range g.sinks {
		marks := byte(0)
		if s.Sum {
			marks |= keySum
		}
		if s.By != nil {
			marks |= keyBy
		}
		key = binary.AppendUvarint(append(key, marks), uint64(ref(s.ID)))
		key = append(key, byte(gs.p.Shapes[s.ID].DType())|gs.chosenMark(g, s.ID))
	}
	return key
}
