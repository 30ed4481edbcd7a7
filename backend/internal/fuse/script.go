package fuse

import (
	"errors"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// ErrStale is what is panicked with where a Script does not fit the sizes of a Program after all.
var ErrStale = errors.New("the script is for other sizes")

// Script has what was decided of the instructions of a Program, for Programs of the same Template
// (graph.Program.Template), of which the same is decided: whether sizes are equal, 0 or 1 decides it,
// and what else does is looked at again. It is not changed once it is recorded.
type Script struct {
	Uses      *Uses
	epilogues []scriptedEpilogue
	inner     []bool
	tests     []numberTest
	cuts      []cut

	groups []*group
	closes [][]int32 // by instruction: the groups that are closed when it is added
	joined []bool    // by instruction: what Add returns
	never  bool

	// Steps and Buffers is how many the plan has.
	Steps, Buffers int
}

// cut is what was found of a reduction: whether its lines are cut into parts, or lie beside each other
// although their elements adjoin.
type cut struct {
	of            *graph.Instr
	mask          [ir.MaxRank]bool
	axis          loop.Axis
	parts, beside bool
}

type scriptedEpilogue struct {
	tail int32
	e    *Epilogue
	ops  []int32
}

// Record is New and Epilogues, and takes what they and the Groups decide. The Script is ready when all
// instructions are added and what is needed is computed.
func Record(p *graph.Program, u *Uses, b Backend, rule func(in *graph.Instr) (Rule, bool)) (gs *Groups, byTail []*Epilogue, inner []bool, s *Script) {
	gs = New(p, u, b)
	s = &Script{Uses: u, closes: make([][]int32, len(p.Instrs)), joined: make([]bool, len(p.Instrs))}
	gs.records = s
	byTail, s.inner, s.tests = epilogues(p, u, rule)
	for tail, e := range byTail {
		if e == nil {
			continue
		}
		q := scriptedEpilogue{tail: int32(tail), e: e}
		for _, in := range e.Ops {
			q.ops = append(q.ops, indexOf(p, in))
		}
		s.epilogues = append(s.epilogues, q)
	}
	return gs, byTail, s.inner, s
}

// indexOf returns the number of an instruction, whose results have the greatest IDs up to its own.
func indexOf(p *graph.Program, in *graph.Instr) int32 {
	lo, hi := 0, len(p.Instrs)
	for lo+1 < hi {
		if mid := (lo + hi) / 2; p.Instrs[mid].Out <= in.Out {
			lo = mid
		} else {
			hi = mid
		}
	}
	return int32(lo)
}

// Recorded returns the Script that the Groups have recorded; nil if it would not serve other sizes.
func (gs *Groups) Recorded() *Script {
	s := gs.records
	if s.never {
		return nil
	}
	s.groups = gs.made
	return s
}

// serves reports whether constants and the parts of lines decide what they did.
func (s *Script) serves(p *graph.Program, b Backend) bool {
	for _, q := range s.tests {
		if isNumber(p, &p.Instrs[q.instr], q.want) != q.same {
			return false
		}
	}
	for _, c := range s.cuts {
		if (partsOf(p, b, c.of, c.mask, c.axis) > 1) != c.parts {
			return false
		}
		adjoin := c.beside || c.axis == loop.Columns
		if adjoin && b.Beside(reductionOf(p, c.of, c.mask, loop.Columns)) != c.beside {
			return false
		}
	}
	return true
}

// partsOf returns into how many parts the lines of a reduction are cut. The instruction may be that of
// another Program of the Template.
func partsOf(p *graph.Program, b Backend, in *graph.Instr, mask [ir.MaxRank]bool, axis loop.Axis) int {
	return b.Parts(reductionOf(p, in, mask, axis))
}

func reductionOf(p *graph.Program, in *graph.Instr, mask [ir.MaxRank]bool, axis loop.Axis) Reduction {
	return Reduction{p.Shape(in.Args[0]), mask, axis, p.Shape(in.Out).Numel(), places(in.Op), in.Op == aten.Prod}
}

// Follow is New and Epilogues for a Program of the Template; false if the Script does not serve it.
func Follow(s *Script, p *graph.Program, b Backend) (gs *Groups, byTail []*Epilogue, inner []bool, ok bool) {
	if !s.serves(p, b) {
		return nil, nil, nil, false
	}
	byTail = make([]*Epilogue, len(p.Instrs))
	epilogues := make([]Epilogue, len(s.epilogues))
	var ops Slab[*graph.Instr]
	for i := range s.epilogues {
		q, e := &s.epilogues[i], &epilogues[i]
		*e = *q.e
		e.Ops = ops.Take(len(q.ops))
		for k, at := range q.ops {
			e.Ops[k] = &p.Instrs[at]
		}
		byTail[q.tail] = e
	}
	gs = newGroups(p, s.Uses, b)
	gs.follows = s
	gs.made = make([]*group, len(s.groups))
	room := make([]group, len(s.groups))
	for i, of := range s.groups {
		g := &room[i]
		gs.made[i] = g
		gs.like(g, of)
		for _, m := range g.members {
			gs.pending[p.Instrs[m].Out] = g
		}
	}
	return gs, byTail, s.inner, true
}

// like makes g what the group of another Program of the Template is.
func (gs *Groups) like(g, of *group) {
	*g = *of
	if len(of.sinks) > 0 { // those of the other Program
		g.sinks, g.sunk, g.template = nil, nil, nil
	}
	g.key.shape = gs.p.Shape(g.over).WithDType(ir.U8)
	if of.nest == nil || !of.reduced {
		return
	}
	n := *of.nest
	g.nest = &n
	n.lines = gs.p.Shape(n.of.Out).Numel()
	n.parts = partsOf(gs.p, gs.b, n.of, n.mask, n.axis)
}

// follow is Add by the Script.
func (gs *Groups) follow(i int32) bool {
	for _, n := range gs.follows.closes[i] {
		gs.close(gs.made[n])
	}
	return gs.follows.joined[i]
}

// Instrs returns the number of instructions of the Program.
func (s *Script) Instrs() int { return len(s.joined) }
