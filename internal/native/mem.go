package native

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// The spill memory begins with what the scalar code keeps; slots follow.
const (
	atPointers = 0                                            // where each operand's row is
	atRows     = atPointers + loop.MaxArgs*8                  // rows still to do
	atIndex    = atRows + 8                                   // index of the row's first element
	atTail     = atIndex + 8                                  // elements of the tail
	atFault    = atTail + 8                                   // 1 more than the instruction that divided by zero
	atPlanes   = atFault + 8                                  // grids still to do
	atPlane    = atPlanes + 8                                 // where each operand's grid is
	atInPlace  = atPlane + loop.MaxArgs*8                     // whether a result lies in the memory of an operand
	atWrong    = atInPlace + 8                                // the index that is out of range, where atFault is -1 less the operand
	atUnchosen = atWrong + 8                                  // where each operand's row would be without its index
	atBounce   = (atUnchosen + loop.MaxArgs*8 + 63) / 64 * 64 // a vector on its way to or from single elements
	atSlots    = atBounce + 64
)

// Where the fields of a Frame are.
const (
	frameRows  = int32(unsafe.Offsetof(loop.Frame{}.Rows))
	frameCols  = int32(unsafe.Offsetof(loop.Frame{}.Cols))
	frameFirst = int32(unsafe.Offsetof(loop.Frame{}.First))
	frameSpill = int32(unsafe.Offsetof(loop.Frame{}.Spill))
	framePtr   = int32(unsafe.Offsetof(loop.Frame{}.Ptr))
	frameRow   = int32(unsafe.Offsetof(loop.Frame{}.Row))
	frameCol   = int32(unsafe.Offsetof(loop.Frame{}.Col))

	framePlanes = int32(unsafe.Offsetof(loop.Frame{}.Planes))
	framePlane  = int32(unsafe.Offsetof(loop.Frame{}.Plane))

	frameSize = int32(unsafe.Offsetof(loop.Frame{}.Size))
	frameStep = int32(unsafe.Offsetof(loop.Frame{}.Step))
)

func inFrame(at int32) x64.Mem { return x64.At(frameBase, at) }
func inSpill(at int32) x64.Mem { return x64.At(spillBase, at) }

// address returns where a place is; for operands without a register of their own
// it emits a load of the pointer.
func (g *gen) address(at addr) x64.Mem {
	p := &g.places[at]
	if p.arg < 0 {
		return p.mem
	}
	if p.chosen {
		return g.chosenRow(p)
	}
	if p.free {
		// RAX is the address of the first lane's element.
		g.asm.Lea(x64.RAX, x64.At(column, p.disp))
		g.asm.IMulLoad(x64.RAX, inFrame(frameCol+8*int32(p.arg)))
		g.asm.Arith(x64.Add, x64.RAX, g.rowOf(p, x64.RBX))
		return x64.At(x64.RAX, p.beyond)
	}
	if p.ends {
		g.asm.MovLoad(x64.RAX, inFrame(frameCols))
		size := g.k.Args[p.arg].DType.Size()
		return x64.Mem{Base: g.pointer(p.arg, x64.RBX), Index: x64.RAX, Scale: uint8(size), Disp: int32(-g.lanes * size)}
	}
	m := x64.At(g.rowOf(p, x64.RAX), p.disp)
	if p.col {
		m.Index, m.Scale = column, uint8(g.k.Args[p.arg].DType.Size())
	}
	return m
}

// rowOf is pointer, of the row that a place is in.
func (g *gen) rowOf(p *place, scratch x64.Reg) x64.Reg {
	first := g.pointer(p.arg, scratch)
	if p.rows == 0 {
		return first
	}
	g.asm.MovImm(x64.RDX, p.rows)
	g.asm.IMulLoad(x64.RDX, inFrame(frameRow+8*int32(p.arg)))
	g.asm.Arith(x64.Add, x64.RDX, first)
	return x64.RDX
}

// pointer returns the register with an operand's row, which is scratch if it has
// none of its own.
func (g *gen) pointer(arg int, scratch x64.Reg) x64.Reg {
	if r := g.args[arg]; r != x64.NoReg {
		return r
	}
	g.asm.MovLoad(scratch, inSpill(atPointers+8*int32(arg)))
	return scratch
}

// bounce is the address of the bounce buffer.
const bounce addr = 1

// stride returns how an operand moves along the columns of this region. A Final
// for a row or for everything is about one element.
func (g *gen) stride(arg int) loop.Stride {
	switch {
	case g.group != nil && g.group.finals && g.k.Args[arg].RowStep == 1:
		return loop.Unit
	case g.final && g.k.Axis != loop.Rows:
		return loop.Fixed
	}
	return g.k.Args[arg].Cols
}

// slot returns the place of so many bytes of the spill memory.
func (g *gen) slot(at int32) addr { return g.addr(place{arg: -1, mem: inSpill(at)}) }

// element returns the place of the present vector of an operand.
func (g *gen) element(arg int) addr {
	size := g.k.Args[arg].DType.Size()
	if s, ok := g.rowsOf(arg); ok {
		return g.part(arg, 0, &s)
	}
	beyond, rows := g.rowBytes(arg)
	return g.addr(place{arg: arg, col: true, disp: int32(g.unit*g.lanes*size) + beyond, rows: rows})
}

// read loads an operand.
func (g *gen) read(arg int) val {
	if g.packed > 0 {
		return g.readPacked(arg)
	}
	if g.keepsRows(arg) {
		return g.readOnce(arg)
	}
	return g.readNow(arg)
}

// readNow loads an operand of the present row.
func (g *gen) readNow(arg int) val {
	d := g.k.Args[arg].DType
	size := d.Size()
	stride := g.stride(arg)
	if g.short && g.k.Args[arg].By > 0 {
		return g.readChosen(arg)
	}
	if s, ok := g.rowsOf(arg); ok {
		switch {
		case s.one():
			stride = loop.Fixed
		case !s.packed():
			return g.readRows(arg, &s)
		default:
			stride = loop.Unit
		}
	}
	switch stride {
	case loop.Fixed:
		return g.readFixed(arg, d)
	case loop.Free:
		if size >= 4 && !(g.neon() && g.tail) {
			return g.gather(arg, size)
		}
		g.moveSingly(arg, false)
		return g.widen(d, none, bounce)
	}
	p := g.element(arg)
	switch {
	case !g.tail:
		return g.widen(d, none, p)
	case g.evex():
		g.places[p].masked = true
		n := max(g.vl(size), 16)
		v := g.add(vop{op: maskedLoads[size], len: n, dst: g.temp(n), mem: p, zero: true})
		return g.widen(d, v, 0)
	case size >= 4 && !g.neon():
		op, m := x64.MASKMOVPS, g.tails[0]
		if size == 8 {
			op, m = x64.MASKMOVPD, g.tails[1]
		}
		return g.add(vop{op: op, len: g.vl(size), dst: g.temp(g.vl(size)), c: m, mem: p})
	}
	g.moveSingly(arg, false)
	return g.widen(d, none, bounce)
}

// gather loads a vector of an operand that moves by a stride of its own. Nothing
// but the elements is touched, and in a tail only those in it.
func (g *gen) gather(arg, size int) val {
	n, lanes := g.vl(size), g.vl(4)
	stride := g.add(vop{op: x64.BROADCASTSS, len: max(lanes, 16), dst: g.temp(max(lanes, 16)), mem: g.addr(place{arg: -1, mem: inFrame(frameCol + 8*int32(arg))})})
	places := make([]int, max(lanes, 16)/4)
	for i := range places {
		places[i] = i
	}
	offsets := g.op2(x64.PMULLD, max(lanes, 16), stride, g.lanesOf("places", 4, places...))
	// The instruction clears its mask.
	var mask val
	switch {
	case g.evex() && g.tail:
		mask = g.add(vop{op: x64.KMOVW, len: 16, dst: g.maskTemp(), b: g.tails[0]})
	case g.evex():
		mask = g.constMask(true)
	default:
		m := g.konst(size, math.MaxUint64)
		if g.tail {
			m = g.tails[size/8]
		}
		mask = g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), b: m})
	}
	zero := g.konst(size, 0)
	beyond, rows := g.rowBytes(arg)
	return g.add(vop{
		op: by(size, x64.PGATHERDD, x64.PGATHERDQ), len: n, dst: g.temp(n), t: zero, a: offsets, c: mask,
		mem: g.addr(place{arg: arg, free: true, disp: int32(g.unit * g.lanes), rows: rows, beyond: beyond}),
	})
}

var (
	maskedLoads  = map[int]x64.Op{1: x64.MOVDQU8, 2: x64.MOVDQU16, 4: x64.MOVDQU32, 8: x64.MOVDQU64}
	maskedStores = map[int]x64.Op{1: x64.MOVDQU8st, 2: x64.MOVDQU16st, 4: x64.MOVDQU32st, 8: x64.MOVDQU64st}
	broadcasts   = map[int]x64.Op{1: x64.PBROADCASTB, 2: x64.PBROADCASTW, 4: x64.BROADCASTSS, 8: x64.BROADCASTSD}
)

// readFixed loads one element into all lanes.
func (g *gen) readFixed(arg int, d ir.DType) val {
	size := d.Size()
	n := max(g.vl(size), 16)
	beyond, rows := g.rowBytes(arg)
	v := g.add(vop{op: broadcasts[size], len: n, dst: g.temp(n), mem: g.addr(place{arg: arg, disp: beyond, rows: rows})})
	return g.widen(d, v, 0)
}

// widen turns stored elements, in a register or in memory, into values.
func (g *gen) widen(d ir.DType, v val, p addr) val {
	size := d.Size()
	if v != none && size >= 4 {
		return v
	}
	n := g.vl(4)
	from := func(op x64.Op, n uint8) val { return g.add(vop{op: op, len: n, dst: g.temp(n), b: v, mem: p}) }
	switch d {
	case ir.F32, ir.I32, ir.F64, ir.I64:
		return from(x64.MOVUPS, g.vl(size))
	case ir.Bool:
		if g.bytesAsMask() {
			if v == none {
				v = from(x64.MOVUPS, 16)
			}
			return g.add(vop{op: x64.PTESTMB, len: 16, dst: g.maskTemp(), a: v, b: v})
		}
		return g.nonZero(4, from(x64.PMOVZXBD, n))
	case ir.U8:
		return from(x64.PMOVZXBD, n)
	case ir.I8:
		return from(x64.PMOVSXBD, n)
	case ir.I16:
		return from(x64.PMOVSXWD, n)
	case ir.F16:
		return from(x64.CVTPH2PS, n)
	case ir.BF16:
		v := g.op1i(x64.PSLLD, n, from(x64.PMOVZXWD, n), 16)
		g.vals[v].half = true
		return v
	}
	fail("elements of %v", d)
	return none
}

// bytesAsMask reports whether a vector of elements of a byte is a register of which a mask selects bytes.
func (g *gen) bytesAsMask() bool { return g.evex() && g.vl(1) == 16 }

// narrow turns values into stored elements, packed at the bottom of a register.
func (g *gen) narrow(d ir.DType, v val) val {
	n := g.vl(4)
	switch d {
	case ir.Bool:
		if g.bytesAsMask() {
			return g.add(vop{op: x64.MOVDQU8, len: 16, dst: g.temp(16), b: g.konst(4, 0x01010101), c: v, zero: true})
		}
		return g.packBytes(g.pick(v, 4, 1))
	case ir.U8, ir.I8:
		return g.packBytes(v)
	case ir.I16:
		return g.packWords(v)
	case ir.F16:
		return g.resize(x64.CVTPS2PH, n, max(n/2, 16), v, 0)
	case ir.BF16:
		if !g.vals[v].half {
			v = g.roundBF16(v)
		}
		return g.packWords(g.op1i(x64.PSRLD, n, v, 16))
	}
	return v
}

func (g *gen) packBytes(v val) val {
	n := g.vl(4)
	if g.evex() || g.neon() {
		return g.resize(x64.PMOVDB, n, 16, v, 0)
	}
	v = g.op2(x64.PSHUFB, n, v, g.lanesOf("low bytes", 1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1))
	if n == 32 {
		v = g.op2(x64.PERMD, n, g.lanesOf("first of each half", 4, 0, 4, 0, 0, 0, 0, 0, 0), v)
	}
	return v
}

func (g *gen) packWords(v val) val {
	n := g.vl(4)
	if g.evex() || g.neon() {
		return g.resize(x64.PMOVDW, n, max(n/2, 16), v, 0)
	}
	v = g.op2(x64.PSHUFB, n, v, g.lanesOf("low words", 1, 0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1))
	if n == 32 {
		v = g.op1i(x64.PERMQ, n, v, 8)
	}
	return v
}

// lanesOf returns a constant whose lanes, of w bytes, differ.
func (g *gen) lanesOf(name string, w int, lanes ...int) val {
	return g.poolVal(poolKey{w: uint8(w), name: name}, func(b []byte) []byte {
		for _, l := range lanes {
			b = appendBits(b, w, uint64(l))
		}
		return b
	})
}

// write stores v to an operand.
func (g *gen) write(arg int, v val) {
	if g.packed > 0 {
		g.writePacked(arg, v)
		return
	}
	d := g.k.Args[arg].DType
	size := d.Size()
	if d == ir.F8E4M3FN || d == ir.F8E5M2 {
		fail("elements of %v", d)
	}
	stride := g.k.Args[arg].Cols
	if g.tall != nil && !g.final && stride == loop.Free {
		g.tall.write[arg] = append(g.tall.write[arg], v)
		return
	}
	v = g.narrow(d, v)
	whole := max(g.vl(size), 16)
	if s, ok := g.rowsOf(arg); ok {
		if !s.packed() {
			g.writeRows(arg, &s, v)
			return
		}
		stride = loop.Unit
	}
	p := g.element(arg)
	one := g.final && g.k.Axis != loop.Rows && g.group == nil
	if g.group != nil && g.group.finals {
		stride = loop.Unit
	}
	switch {
	case one && size >= 4:
		op := x64.MOVDst
		if size == 8 {
			op = x64.MOVQst
		}
		g.add(vop{op: op, len: 16, b: v, mem: g.addr(place{arg: arg}), store: true})
	case one:
		g.add(vop{op: x64.MOVUPSst, len: whole, b: v, mem: bounce, store: true})
		g.scalar(func() { g.copyOne(arg, size) })
	case stride == loop.Fixed:
		fail("a store that does not move along columns")
	case stride == loop.Free || (g.tail && g.singlyStored(size)):
		g.add(vop{op: x64.MOVUPSst, len: whole, b: v, mem: bounce, store: true})
		g.moveSingly(arg, true)
	case g.joins(arg):
		g.writeEnd(arg, size, p, v)
	case g.tail && g.evex():
		g.places[p].masked = true
		g.add(vop{op: maskedStores[size], len: whole, b: v, mem: p, store: true})
	case g.tail:
		op, m := x64.MASKMOVPSst, g.tails[0]
		if size == 8 {
			op, m = x64.MASKMOVPDst, g.tails[1]
		}
		g.add(vop{op: op, len: whole, b: v, c: m, mem: p, store: true})
	case g.vl(size) < 16:
		op := x64.MOVQst
		if g.vl(size) == 4 {
			op = x64.MOVDst
		}
		g.add(vop{op: op, len: 16, b: v, mem: p, store: true})
	default:
		op := x64.MOVUPSst
		if g.stream && g.streams(arg) {
			op = x64.MOVNTPS
		}
		g.add(vop{op: op, len: whole, b: v, mem: p, store: true})
		if g.stored != nil {
			g.stored[arg] = v
		}
	}
}

// singlyStored reports whether there is no masked access to elements of a size.
func (g *gen) singlyStored(size int) bool { return g.neon() || (size < 4 && !g.evex()) }

// fetchAhead fetches the elements below the present ones, in the next row. That
// there may be none does not matter to the instruction.
func (g *gen) fetchAhead(arg int) {
	p := g.element(arg)
	g.scalar(func() {
		m := g.address(p)
		g.asm.Mov(x64.RBX, m.Base)
		g.asm.ArithLoad(x64.Add, x64.RBX, inFrame(frameRow+8*int32(arg)))
		m.Base = x64.RBX
		g.asm.Prefetch(m)
	})
}

// streams reports whether an operand's whole vectors are stored past the cache.
func (g *gen) streams(arg int) bool {
	a := &g.k.Args[arg]
	return a.Stream && a.Write && !g.neon() && a.Cols == loop.Unit && g.vl(a.DType.Size()) >= 16
}

func (g *gen) copyOne(arg, size int) {
	g.asm.LoadSize(x64.RDX, inSpill(atBounce), size)
	g.asm.StoreSize(x64.At(g.pointer(arg, x64.RAX), 0), x64.RDX, size)
}

// moveSingly copies a vector's elements between an operand and the bounce buffer
// one by one: for operands that move by a stride of their own, and for the tails
// of narrow ones where there is no masked access.
func (g *gen) moveSingly(arg int, store bool) {
	size, unit, tail := g.k.Args[arg].DType.Size(), g.unit, g.tail
	free := g.k.Args[arg].Cols == loop.Free
	g.scalar(func() {
		a := g.asm
		if free {
			a.MovLoad(x64.RBX, inFrame(frameCol+8*int32(arg)))
		} else {
			a.MovImm(x64.RBX, int32(size))
		}
		// RAX is the first element's address, RBX from one to the next.
		a.Lea(x64.RDX, x64.At(column, int32(unit*g.lanes)))
		if free {
			a.IMulLoad(x64.RDX, inFrame(frameCol+8*int32(arg)))
		}
		p := g.pointer(arg, x64.RAX)
		if free {
			a.Lea(x64.RAX, x64.Mem{Base: p, Index: x64.RDX, Scale: 1})
		} else {
			a.Lea(x64.RAX, x64.Mem{Base: p, Index: x64.RDX, Scale: uint8(size)})
		}
		top := a.Label()
		a.MovImm(x64.R8, 0)
		a.Bind(top)
		here := x64.Mem{Base: spillBase, Index: x64.R8, Scale: uint8(size), Disp: atBounce}
		if store {
			a.LoadSize(x64.RDX, here, size)
			a.StoreSize(x64.At(x64.RAX, 0), x64.RDX, size)
		} else {
			a.LoadSize(x64.RDX, x64.At(x64.RAX, 0), size)
			a.StoreSize(here, x64.RDX, size)
		}
		a.Arith(x64.Add, x64.RAX, x64.RBX)
		a.ArithImm(x64.Add, x64.R8, 1)
		if tail {
			a.ArithLoad(x64.Cmp, x64.R8, inSpill(atTail))
		} else {
			a.ArithImm(x64.Cmp, x64.R8, int32(g.lanes))
		}
		a.JumpIf(x64.Less, top)
	})
}
