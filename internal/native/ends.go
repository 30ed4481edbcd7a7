package native

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// A masked store of the tail of a row holds up the load of the next row's first vector, a part of which the mask has left
// out, where a result lies in the memory of an operand. So the tail of a row with a vector before it is stored together with
// what that has stored last then, as the vector with which the row ends.

// picks choose elements of two vectors, by their size.
var picks = map[int]x64.Op{2: x64.PERMT2W, 4: x64.PERMT2D, 8: x64.PERMT2Q}

// joins reports whether the tail of an operand is a part of the vector with which the row ends.
func (g *gen) joins(arg int) bool {
	a := &g.k.Args[arg]
	size := a.DType.Size()
	return g.tail && g.behind && g.evex() && g.k.Axis != loop.Rows && !g.lines && a.Cols == loop.Unit && !a.Stream && size > 1 &&
		int(g.vl(size)) == g.lanes*size && g.vl(size) >= 16
}

// joinedStores returns the operands that a body stores whose tails are such parts.
func (g *gen) joinedStores(body []loop.Value) (args []int) {
	for _, v := range body {
		if in := &g.k.Instrs[v]; in.Code == loop.Store && g.joins(in.Arg) {
			args = append(args, in.Arg)
		}
	}
	return args
}

// keepInPlace keeps whether one of those operands lies in the memory of another, and rows have a whole vector.
func (g *gen) keepInPlace(all []*regions) {
	a := g.asm
	found, done := a.Label(), a.Label()
	var stores []int
	for _, r := range all {
		stores = append(stores, r.stores...)
	}
	if stores == nil {
		return
	}
	a.MovLoad(x64.RAX, inFrame(frameCols))
	a.ArithImm(x64.Cmp, x64.RAX, int32(g.lanes))
	a.MovImm(x64.RBX, 0)
	a.JumpIf(x64.Less, done)
	for _, s := range stores {
		a.MovLoad(x64.RAX, inFrame(framePtr+8*int32(s)))
		for i := range g.k.Args {
			if i != s && g.k.Args[i].Cols == loop.Unit {
				a.ArithLoad(x64.Cmp, x64.RAX, inFrame(framePtr+8*int32(i)))
				a.JumpIf(x64.Zero, found)
			}
		}
	}
	a.Jump(done)
	a.Bind(found)
	a.MovImm(x64.RBX, 1)
	a.Bind(done)
	a.MovStore(inSpill(atInPlace), x64.RBX)
}

// writeEnd stores a tail at p: in a line of all vectors of a row as the end of the row, in others where keepInPlace says so.
func (g *gen) writeEnd(arg, size int, p addr, v val) {
	n, op := g.vl(size), picks[size]
	index, end := g.fromTail(size), place{arg: arg, ends: true}
	if before, ok := g.stored[arg]; ok {
		v = g.add(vop{op: op, len: n, dst: g.temp(n), t: before, a: index, b: v})
		g.add(vop{op: x64.MOVUPSst, len: n, b: v, mem: g.addr(end), store: true})
		return
	}
	tail := g.places[p]
	before := tail
	before.disp -= int32(g.lanes * size)
	tail.masked = true
	first := g.addr(tail)
	g.addr(before)
	g.addr(end)
	g.add(vop{op: op, len: n, dst: g.temp(n), a: index, b: v, mem: first, ends: true})
}

// encodeEnd emits a store of a tail. The places of its parts are behind its own: those of the vector before and of the one
// with which the row ends.
func (g *gen) encodeEnd(o *vop, pos int32) {
	a, arg := g.asm, g.places[o.mem].arg
	index, v := g.need(o.a, pos, o.next[1]), g.need(o.b, pos, o.next[2])
	both := g.result(o, pos)
	vec := func(op x64.Op, reg x64.Reg, at addr, mask x64.Reg) {
		m := g.address(at)
		a.Vec(x64.Inst{Op: op, Len: o.len, EVEX: true, Reg: reg, V: x64.NoReg, Mask: mask, Mem: &m})
	}
	masked, done := a.Label(), a.Label()
	a.MovLoad(x64.RAX, inSpill(atInPlace))
	a.ArithImm(x64.Cmp, x64.RAX, 0)
	a.JumpIf(x64.Zero, masked)
	vec(x64.MOVUPS, both, o.mem+1, x64.NoReg)
	a.Vec(x64.Inst{Op: o.op, Len: o.len, EVEX: true, Reg: both, V: index, Mask: x64.NoReg, RM: v})
	vec(x64.MOVUPSst, both, o.mem+2, x64.NoReg)
	a.Jump(done)
	a.Bind(masked)
	vec(maskedStores[g.k.Args[arg].DType.Size()], v, o.mem, tailMask)
	a.Bind(done)
	g.release(o, pos)
}

// fromTail returns the numbers of the lanes, from as many on as the tail has: of a vector and the tail behind it those that
// are a whole vector again. Elements of 2 bytes do not get beyond their own.
func (g *gen) fromTail(size int) val {
	n := g.vl(size)
	lanes := make([]int, g.lanes)
	for i := range lanes {
		lanes[i] = i
	}
	rest := g.add(vop{op: broadcasts[size], len: n, dst: g.temp(n), mem: g.slot(atTail)})
	return g.op2(by(size, x64.PADDD, x64.PADDQ), n, g.lanesOf("lanes", size, lanes...), rest)
}
