package fuse

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/loop"
)

// Templates keeps the kernels of groups by what they compute. Sizes are no part of that: a group that
// differs from an earlier one only in sizes, or in where it is in the Program, has the same kernel on
// other operands. It is safe for concurrent use.
type Templates struct {
	mu    sync.Mutex
	known map[string]*template // guarded by mu
	bytes int                  // of known, about; guarded by mu
}

// maxTemplates and maxTemplateBytes bound what is kept. All of it is forgotten when one is reached.
const (
	maxTemplates     = 1 << 12
	maxTemplateBytes = 16 << 20
)

// NewTemplates returns an empty one.
func NewTemplates() *Templates { return &Templates{known: map[string]*template{}} }

// Templated is a Backend that keeps Templates for further Programs.
type Templated interface {
	Backend
	Templates() *Templates
}

// template is the kernel of a group without the dimensions and places of its operands. The kernels
// made from it share it; it must not be changed.
type template struct {
	k         loop.Kernel
	args      []templateArg
	cost      float64
	divisions map[loop.Value]int // by member
	layouts   atomic.Pointer[[]*Layout]
}

// templateArg says what operand of the group is an operand of the kernel.
type templateArg struct {
	role Role
	last int
	// ref is a member, or, after the members, a value from outside; of a Stored, the sink.
	ref int
	// user is the member that reads a row statistic from outside.
	user int
}

// find returns the template with a key, or nil.
func (t *Templates) find(key []byte) *template {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[string(key)]
}

func (t *Templates) keep(key []byte, m *template) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(len(key) + int(unsafe.Sizeof(*m)) + len(m.k.Instrs)*int(unsafe.Sizeof(loop.Instr{})) +
		len(m.k.Args)*int(unsafe.Sizeof(loop.Arg{})) + len(m.args)*int(unsafe.Sizeof(templateArg{})))
	t.known[string(key)] = m
}

// count makes room for so many bytes; the caller holds mu.
func (t *Templates) count(bytes int) {
	if t.bytes += bytes; len(t.known) >= maxTemplates || t.bytes > maxTemplateBytes {
		clear(t.known)
		t.bytes = bytes
	}
}

// The marks of a member in a key.
const (
	keyLeaves = 1 << iota
	keyStatistic
	keySpread
	keyAlias
)

// keyChosen is added to the dtype of what is read by an index.
const keyChosen = 0x80

// chosenMark returns keyChosen for what a group reads by an index, else 0.
func (gs *Groups) chosenMark(g *group, id graph.ID) byte {
	if _, ok := g.chosen[id]; ok {
		return keyChosen
	}
	return 0
}

// keyLong is behind the axis of a group whose lines are long, where others have the number of members,
// which has never that many.
const keyLong = 0xff

// structure appends what decides the kernel of a group, which is not cut into parts: of each member
// the op, the dtypes, where its operands come from, and what becomes of it. It notes in gs.ref the
// numbers of members and of values from outside, and returns the latter.
func (gs *Groups) structure(key []byte, g *group) (_ []byte, outside []graph.ID) {
	key = append(key, byte(g.axis))
	if g.long {
		key = append(key, keyLong)
	}
	key = binary.AppendUvarint(key, uint64(len(g.members)))
	for k, i := range g.members {
		gs.ref[gs.p.Instrs[i].Out] = int32(k)
	}
	for _, i := range g.members {
		in := &gs.p.Instrs[i]
		marks := byte(0)
		if gs.leaves(in.Out, g) {
			marks |= keyLeaves
		}
		if g.statistic[in.Out] {
			marks |= keyStatistic
		}
		if g.spread[in.Out] {
			marks |= keySpread
		}
		root, alias := g.alias[in.Out]
		if alias {
			marks |= keyAlias
		}
		key = binary.LittleEndian.AppendUint16(key, uint16(in.Op))
		key = append(key, byte(gs.p.Shapes[in.Out].DType()), marks, byte(len(in.Args)))
		if alias {
			key = binary.AppendUvarint(key, uint64(gs.ref[root]))
		}
		for _, id := range in.Args {
			if gs.pending[id] != g && gs.outsideOf(outside, id) < 0 {
				gs.ref[id] = int32(len(g.members) + len(outside))
				outside = append(outside, id)
			}
			key = binary.AppendUvarint(key, uint64(gs.ref[id]))
			key = append(key, byte(gs.p.Shapes[id].DType())|gs.chosenMark(g, id))
		}
	}
	key = gs.sinkStructure(key, g, func(id graph.ID) int32 {
		if gs.pending[id] != g && gs.outsideOf(outside, id) < 0 {
			gs.ref[id] = int32(len(g.members) + len(outside))
			outside = append(outside, id)
		}
		return gs.ref[id]
	})
	return key, outside
}

// outsideOf returns the number of a value from outside, or -1: gs.ref may be of an earlier group.
func (gs *Groups) outsideOf(outside []graph.ID, id graph.ID) int {
	for k, o := range outside {
		if o == id {
			return k
		}
	}
	return -1
}

// fromTemplate returns the kernel of a group that is not cut into parts, and the template if there was
// one.
func (gs *Groups) fromTemplate(g *group) (*Kernel, *template) {
	if g.template == nil {
		gs.key, g.outside = gs.structure(gs.key[:0], g)
		g.template = gs.templates.find(gs.key)
	}
	if g.template == nil {
		b := newBuilder(gs, g)
		b.build()
		g.template = b.template()
		gs.templates.keep(gs.key, g.template)
		return b.kernel(gs.instrs(g), g.parts), nil
	}
	t, outside := g.template, g.outside
	b := &gs.filler
	*b = builder{gs: gs, g: g, args: gs.args[:0]}
	if gs.args = nil; cap(b.args) < len(t.args) {
		room := len(t.args)
		if gs.brief {
			room = max(room, maxScratch)
		}
		b.args = make([]Arg, 0, room)
	}
	for i := range t.args {
		a := &t.args[i]
		b.pass = a.last
		switch a.role {
		case Index, StoredBy: // come with their operands
			continue
		case Stored:
			b.sinkOperand(a.ref)
			continue
		}
		id := graph.ID(0)
		if a.ref < len(g.members) {
			id = gs.p.Instrs[g.members[a.ref]].Out
		} else {
			id = outside[a.ref-len(g.members)]
		}
		switch a.role {
		case Input:
			b.operand(id)
		case Statistic:
			b.statisticOperand(id, gs.p.Shape(gs.p.Instrs[g.members[a.user]].Out))
		default:
			b.result(id, a.role)
		}
	}
	k := t.k
	instrs := gs.instrs(g)
	out := &gs.kernel
	if !gs.brief {
		out = &Kernel{}
	}
	*out = Kernel{Loop: &k, Args: b.args, Parts: g.parts, Lines: g.lines, Cost: t.cost, Instrs: instrs, Ordered: g.sums()}
	if t.divisions != nil {
		out.Divisions = make(map[loop.Value]*graph.Instr, len(t.divisions))
		for v, member := range t.divisions {
			out.Divisions[v] = instrs[member]
		}
	}
	return out, t
}

// maxScratch is how many operands there is memory for that kernels use one after another.
const maxScratch = 16

// template returns what a builder has built, for groups of the same structure.
func (b *builder) template() *template {
	t := &template{k: b.k, cost: b.cost}
	for i := range b.args {
		a := &b.args[i]
		m := templateArg{role: a.Role, last: a.Last, ref: int(b.gs.ref[a.ID])}
		switch a.Role {
		case Statistic:
			m.user = int(b.gs.ref[b.reader[a.ID]])
		case Stored:
			m.ref = int(a.ID)
		}
		t.args = append(t.args, m)
	}
	if b.divisions != nil {
		t.divisions = make(map[loop.Value]int, len(b.divisions))
		for v, in := range b.divisions {
			t.divisions[v] = int(b.gs.ref[in.Out])
		}
	}
	return t
}
