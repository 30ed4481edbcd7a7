package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/a64"
	"github.com/loris-ml/loris/internal/native/x64"
)

// regFile is the vector or the mask registers during the allocation of a region.
type regFile struct {
	// order lists the registers that may be used, the ones to be pinned last.
	order []x64.Reg
	free  int // how many of order are not pinned
	held  [32]val
	next  [32]int32 // next use of what is held
	busy  [32]int32 // the op that has the register locked, plus 1
}

const never = math.MaxInt32

// cheap is by how many operations the next use of a constant counts as later than it is when a
// register is to be freed: a constant needs no saving and can be an operand in memory.
const cheap = 8

// spillBase and frameBase are the registers with the spill memory and the frame.
const (
	frameBase = x64.RDI
	spillBase = x64.RSI
	column    = x64.RCX
)

func (g *gen) initRegs() {
	vec, masks := &g.regs[0], &g.regs[1]
	n := x64.Reg(16)
	if g.neon() {
		n = a64.Vectors
	}
	if g.evex() {
		n = 32
		for k := x64.Reg(1); k < tailMask; k++ {
			masks.order = append(masks.order, k)
		}
	}
	for r := range n {
		vec.order = append(vec.order, r)
	}
	for i := range g.regs {
		g.regs[i].free = len(g.regs[i].order)
	}
}

// tailMask is the mask register that covers the lanes of a tail.
const tailMask x64.Reg = 7

func (g *gen) file(v val) *regFile {
	if g.vals[v].mask && g.evex() {
		return &g.regs[1]
	}
	return &g.regs[0]
}

// flush allocates registers for the operations of a region and encodes them. But for the loops of
// while a region has no jumps: each val is computed before it is used, and the next use of everything is known. When registers
// run out, the one whose content is used last is freed, and its content saved unless it is in
// memory already.
func (g *gen) flush(ops []vop) {
	g.findUses(ops)
	for f := range g.regs {
		for i := range g.regs[f].held {
			g.regs[f].held[i], g.regs[f].busy[i] = none, 0
		}
	}
	for i := range ops {
		g.encode(&ops[i], int32(i))
	}
	g.endRegion(ops)
}

// findUses fills in next.
func (g *gen) findUses(ops []vop) {
	for i := range ops {
		for _, v := range [5]val{ops[i].dst, ops[i].t, ops[i].a, ops[i].b, ops[i].c} {
			g.vals[v].use = never
		}
	}
	for i := len(ops) - 1; i >= 0; i-- {
		o := &ops[i]
		o.next = [5]int32{g.vals[o.t].use, g.vals[o.a].use, g.vals[o.b].use, g.vals[o.c].use, g.vals[o.dst].use}
		for _, v := range [4]val{o.t, o.a, o.b, o.c} {
			g.vals[v].use = int32(i)
		}
	}
}

// endRegion forgets where vals were.
func (g *gen) endRegion(ops []vop) {
	for i := range ops {
		for _, v := range [5]val{ops[i].dst, ops[i].t, ops[i].a, ops[i].b, ops[i].c} {
			if v == none {
				continue
			}
			in := &g.vals[v]
			in.reg = x64.NoReg
			if in.kind == temp && in.slot != 0 {
				g.freeSlots = append(g.freeSlots, in.slot)
				in.slot = 0
			}
		}
	}
}

// where returns the register that v is in, or NoReg.
func (g *gen) where(v val) x64.Reg {
	if p := g.vals[v].pin; p != x64.NoReg {
		return p
	}
	return g.vals[v].reg
}

// take returns a register for v, freeing that of another val if none is free.
func (g *gen) take(v val, pos int32) x64.Reg {
	f := g.file(v)
	best, far := x64.NoReg, int32(-1)
	for _, r := range f.order[:f.free] {
		if f.busy[r] == pos+1 {
			continue
		}
		if f.held[r] == none {
			best = r
			break
		}
		n := f.next[r]
		if g.vals[f.held[r]].kind == pooled && n < never-cheap {
			n += cheap
		}
		if n > far {
			best, far = r, n
		}
	}
	if old := f.held[best]; old != none {
		g.evict(old, f.next[best])
	}
	f.held[best], f.busy[best] = v, pos+1
	g.vals[v].reg = best
	return best
}

func (g *gen) evict(v val, next int32) {
	in := &g.vals[v]
	if in.kind == temp && in.slot == 0 && next != never {
		in.slot = g.newSlot()
		g.move(v, true)
	}
	in.reg = x64.NoReg
}

// evictAll frees all registers that are not pinned.
func (g *gen) evictAll() {
	for i := range g.regs {
		f := &g.regs[i]
		for _, r := range f.order[:f.free] {
			if v := f.held[r]; v != none {
				g.evict(v, f.next[r])
				f.held[r] = none
			}
		}
	}
}

// move stores a val to its slot or loads it from there.
func (g *gen) move(v val, store bool) {
	in := &g.vals[v]
	m := x64.At(spillBase, in.slot)
	op := x64.MOVUPS
	switch {
	case in.mask && g.evex() && store:
		op = x64.KMOVWst
	case in.mask && g.evex():
		op = x64.KMOVWld
	case store:
		op = x64.MOVUPSst
	}
	n := in.len
	if n < 16 {
		n = 16
	}
	g.asm.Vec(x64.Inst{Op: op, Len: n, EVEX: g.evex(), Reg: g.where(v), V: x64.NoReg, Mem: &m})
}

// need returns a register with v, loading it if it is in memory.
func (g *gen) need(v val, pos, next int32) x64.Reg {
	in := &g.vals[v]
	if in.pin != x64.NoReg {
		return in.pin
	}
	f := g.file(v)
	if in.reg == x64.NoReg {
		g.take(v, pos)
		g.load(v)
	}
	f.busy[in.reg], f.next[in.reg] = pos+1, next
	return in.reg
}

// load fills v's register from memory.
func (g *gen) load(v val) {
	in := &g.vals[v]
	if in.kind != pooled {
		g.move(v, false)
		return
	}
	op := x64.MOVUPS
	if !in.full {
		op = x64.BROADCASTSS
		if in.w == 8 {
			op = x64.BROADCASTSD
		}
	}
	m := x64.Mem{Index: x64.NoReg, Label: in.lbl}
	g.asm.Vec(x64.Inst{Op: op, Len: in.len, EVEX: g.evex(), Reg: g.where(v), V: x64.NoReg, Mem: &m})
}

// operand sets the last source of an instruction: to a register, or to memory if the val's next use
// is too late to be worth one.
func (g *gen) operand(inst *x64.Inst, o *vop, pos int32) {
	v := o.b
	in := &g.vals[v]
	next := o.next[2]
	fits := g.where(v) == x64.NoReg && !inst.Op.RegOnly() && !(in.mask && g.evex())
	if in.kind == pooled && !in.full {
		fits = fits && inst.Op.Bcast() == int(in.w)
		inst.Bcast = fits
	}
	if fits && next != never && g.spare(v) {
		fits = false
	}
	if !fits {
		inst.Bcast = false
		inst.RM = g.need(v, pos, next)
		return
	}
	m := x64.At(spillBase, in.slot)
	if in.kind == pooled {
		m = x64.Mem{Index: x64.NoReg, Label: in.lbl}
	}
	inst.Mem = &m
}

// spare reports whether a register is free.
func (g *gen) spare(v val) bool {
	f := g.file(v)
	n := 0
	for _, r := range f.order[:f.free] {
		if f.held[r] == none {
			n++
		}
	}
	return n > 4
}

// encode emits one operation.
func (g *gen) encode(o *vop, pos int32) {
	if o.loops {
		g.evictAll()
	}
	if o.scalar != 0 {
		g.scalars[o.scalar-1]()
		return
	}
	if o.ends {
		g.encodeEnd(o, pos)
		return
	}
	inst := x64.Inst{Op: o.op, Len: max(o.len, 16), EVEX: g.evex(), V: x64.NoReg, Mask: x64.NoReg, Imm: o.imm, Zero: o.zero}
	// A tied source that is used again is copied. The copy must not overwrite another source, so
	// the others are loaded first and keep their registers until then.
	if o.a != none {
		inst.V = g.need(o.a, pos, o.next[1])
	}
	if o.c != none {
		r := g.need(o.c, pos, o.next[3])
		if g.evex() {
			inst.Mask = r
		} else if o.op.Gathers() {
			// V is the index for now.
		} else if o.op == x64.BLENDVPS || o.op == x64.BLENDVPD || o.op == x64.PBLENDVB {
			inst.Is4 = r
		} else {
			inst.V = r // maskmov
		}
	} else if o.mem != 0 && g.places[o.mem].masked && g.evex() {
		inst.Mask = tailMask
	}
	switch {
	case o.store:
		inst.RM = g.need(o.b, pos, o.next[2])
	case o.b != none:
		g.operand(&inst, o, pos)
	}
	if o.mem != 0 {
		m := g.address(o.mem)
		inst.Mem = &m
		if o.op.Gathers() {
			m.Index, m.Scale, inst.V = inst.V, 1, x64.NoReg
			if o.c != none && !g.evex() {
				inst.V = g.where(o.c)
			}
		}
	}
	switch {
	case o.store:
		inst.Reg = inst.RM
	case o.t != none:
		inst.Reg = g.tied(o, pos)
	default:
		g.release(o, pos)
		inst.Reg = g.result(o, pos)
	}
	g.swapFields(&inst)
	g.asm.Vec(inst)
	if !o.store {
		g.settle(o)
	}
	g.release(o, pos)
}

// swapFields puts registers where the instruction's encoding has them.
func (g *gen) swapFields(inst *x64.Inst) {
	switch inst.Op {
	case x64.EXTRACTI128, x64.EXTRACTI64X4, x64.PMOVDB, x64.PMOVDW, x64.PMOVQD, x64.CVTPS2PH:
		inst.Reg, inst.RM = inst.RM, inst.Reg
	}
	if inst.Op.ByCount() {
		inst.V = inst.Reg
	}
}

// tied returns the destination's register, which holds t.
func (g *gen) tied(o *vop, pos int32) x64.Reg {
	d := &g.vals[o.dst]
	if o.t == o.dst {
		return g.need(o.t, pos, o.next[0])
	}
	if d.pin == x64.NoReg && d.kind == temp && o.next[0] == never && g.vals[o.t].kind == temp && o.t != o.a && o.t != o.b && o.t != o.c {
		// t is not used again: its register becomes the destination's.
		r := g.need(o.t, pos, never)
		f := g.file(o.t)
		g.vals[o.t].reg = x64.NoReg
		f.held[r], f.next[r] = o.dst, o.next[4]
		d.reg = r
		return r
	}
	src := g.where(o.t)
	r := d.pin
	if r == x64.NoReg {
		r = g.take(o.dst, pos)
		f := g.file(o.dst)
		f.next[r] = o.next[4]
	}
	if src == r {
		return r
	}
	// take may have freed t's register if t was not locked; t is in memory then.
	if src = g.where(o.t); src != x64.NoReg {
		g.asm.Vec(x64.Inst{Op: x64.MOVAPS, Len: max(d.len, 16), EVEX: g.evex(), Reg: r, V: x64.NoReg, RM: src})
		if f := g.file(o.t); g.vals[o.t].pin == x64.NoReg {
			f.next[src] = o.next[0]
		}
		return r
	}
	in := g.vals[o.t]
	keep := g.vals[o.t].pin
	g.vals[o.t].pin = r
	g.load(o.t)
	g.vals[o.t].pin = keep
	g.vals[o.t].reg = in.reg
	return r
}

// result returns a register for the destination.
func (g *gen) result(o *vop, pos int32) x64.Reg {
	d := &g.vals[o.dst]
	if d.pin != x64.NoReg {
		return d.pin
	}
	if d.reg != x64.NoReg { // a home with a copy in a register
		return d.reg
	}
	r := g.take(o.dst, pos)
	g.file(o.dst).next[r] = o.next[4]
	return r
}

// settle writes a home that is not pinned to its slot.
func (g *gen) settle(o *vop) {
	d := &g.vals[o.dst]
	if d.kind == home && d.pin == x64.NoReg {
		g.move(o.dst, true)
		f := g.file(o.dst)
		f.next[d.reg] = o.next[4]
	}
}

// release frees the registers of vals that are not used again.
func (g *gen) release(o *vop, pos int32) {
	for i, v := range [5]val{o.t, o.a, o.b, o.c, o.dst} {
		if v == none || (i == 4 && o.store) {
			continue
		}
		in := &g.vals[v]
		if in.reg == x64.NoReg || in.pin != x64.NoReg {
			continue
		}
		f := g.file(v)
		if f.held[in.reg] == v && f.next[in.reg] == never {
			f.held[in.reg], f.busy[in.reg] = none, 0
			in.reg = x64.NoReg
		}
	}
}
