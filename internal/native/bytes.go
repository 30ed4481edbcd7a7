package native

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Kernels of nothing but elements of a byte are computed with AVX2 in lanes of a byte, four times as many as otherwise.
// Integers wrap by themselves then. Bools are masks: lanes that are all ones or zeros, which compare like unsigned
// integers.

// byteLanes is how many there are in a vector.
const byteLanes = 32

// byteOp computes an op on lanes of a dtype of one byte.
type byteOp = func(g *gen, d ir.DType, x []val) val

// inBytes returns the byteOp of an instruction of two sources.
func inBytes(op x64.Op) byteOp {
	return func(g *gen, _ ir.DType, x []val) val { return g.onBytes(op, x[0], x[1]) }
}

// unlessBools is bools for bools.
func unlessBools(ints, bools byteOp) byteOp {
	return func(g *gen, d ir.DType, x []val) val {
		if d == ir.Bool {
			return bools(g, d, x)
		}
		return ints(g, d, x)
	}
}

// notOf inverts a mask, and swapped takes operands in the other order.
func notOf(f byteOp) byteOp {
	return func(g *gen, d ir.DType, x []val) val { return g.notBytes(f(g, d, x)) }
}

func swapped(f byteOp) byteOp {
	return func(g *gen, d ir.DType, x []val) val { return f(g, d, []val{x[1], x[0]}) }
}

// setBoth joins the masks of operands that are not 0.
func setBoth(op x64.Op) byteOp {
	return func(g *gen, d ir.DType, x []val) val { return g.onBytes(op, g.setBytes(d, x[0]), g.setBytes(d, x[1])) }
}

func sameByte(_ *gen, _ ir.DType, x []val) val { return x[0] }

func neverByte(g *gen, _ ir.DType, _ []val) val { return g.konst(1, 0) }

func negByte(g *gen, _ ir.DType, x []val) val { return g.onBytes(x64.PSUBB, g.konst(1, 0), x[0]) }

func anySetByte(g *gen, d ir.DType, x []val) val {
	return g.setBytes(d, g.onBytes(x64.PORD, x[0], x[1]))
}

func noneSetByte(g *gen, d ir.DType, x []val) val { return g.notBytes(g.setBytes(d, x[0])) }

func invertByte(g *gen, _ ir.DType, x []val) val { return g.notBytes(x[0]) }

// ofSigned is f for i8, and other for what has no sign.
func ofSigned(f, other byteOp) byteOp {
	return func(g *gen, d ir.DType, x []val) val {
		if d == ir.I8 {
			return f(g, d, x)
		}
		return other(g, d, x)
	}
}

func absByte(g *gen, _ ir.DType, x []val) val { return g.op1(x64.PABSB, byteLanes, x[0]) }

func reluByte(g *gen, d ir.DType, x []val) val { return greatestByte(g, d, []val{x[0], g.konst(1, 0)}) }

func negativeByte(g *gen, _ ir.DType, x []val) val {
	return g.onBytes(x64.PCMPGTB, g.konst(1, 0), x[0])
}

func signByte(g *gen, d ir.DType, x []val) val {
	least := leastByte(g, d, []val{x[0], g.konst(1, 1)})
	if d == ir.U8 {
		return least
	}
	return greatestByte(g, d, []val{least, g.konst(1, 0xff)})
}

// bytewise reports whether a kernel is computed in lanes of a byte.
func bytewise(k *loop.Kernel, isa ISA) bool {
	if isa != AVX2 || k.Axis != loop.None || k.Width > 0 || k.Height > 0 {
		return false
	}
	one := func(d ir.DType) bool { return d == ir.U8 || d == ir.I8 || d == ir.Bool }
	for i := range k.Args {
		if a := &k.Args[i]; !one(a.DType) || a.By > 0 || a.Cols == loop.Free || a.Write && a.Cols != loop.Unit {
			return false
		}
	}
	for i := range k.Instrs {
		in := &k.Instrs[i]
		switch in.Code {
		case loop.Load, loop.Store:
		case loop.Const:
			if !one(in.DType) {
				return false
			}
		case loop.Apply:
			if !one(in.DType) || in.Op != aten.Cast && in.Op != aten.Where && table[in.Op].bytes == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (g *gen) onBytes(op x64.Op, a, b val) val { return g.op2(op, byteLanes, a, b) }

// blendBytes is x where the mask is set, and y elsewhere.
func (g *gen) blendBytes(m, x, y val) val {
	return g.add(vop{op: x64.PBLENDVB, len: byteLanes, dst: g.temp(byteLanes), a: y, b: x, c: m})
}

func (g *gen) notBytes(x val) val { return g.onBytes(x64.PXORD, x, g.konst(1, 0xff)) }

// setBytes is the mask of lanes that are not 0.
func (g *gen) setBytes(d ir.DType, x val) val {
	if d == ir.Bool {
		return x
	}
	return g.notBytes(g.onBytes(x64.PCMPEQB, x, g.konst(1, 0)))
}

func greatestByte(g *gen, d ir.DType, x []val) val {
	if d == ir.I8 {
		return g.onBytes(x64.PMAXSB, x[0], x[1])
	}
	return g.onBytes(x64.PMAXUB, x[0], x[1])
}

func leastByte(g *gen, d ir.DType, x []val) val {
	if d == ir.I8 {
		return g.onBytes(x64.PMINSB, x[0], x[1])
	}
	return g.onBytes(x64.PMINUB, x[0], x[1])
}

// atLeastByte is where the greater one is the first.
func atLeastByte(g *gen, d ir.DType, x []val) val {
	return g.onBytes(x64.PCMPEQB, greatestByte(g, d, x), x[0])
}

// mulBytes multiplies the even and the odd bytes as words.
func mulBytes(g *gen, _ ir.DType, x []val) val {
	const n = byteLanes
	even := g.onBytes(x64.PANDD, g.onBytes(x64.PMULLW, x[0], x[1]), g.lowBytes())
	odd := g.onBytes(x64.PMULLW, g.op1i(x64.PSRLW, n, x[0], 8), g.op1i(x64.PSRLW, n, x[1], 8))
	return g.onBytes(x64.PORD, even, g.op1i(x64.PSLLW, n, odd, 8))
}

// lowBytes has the bits of the even bytes.
func (g *gen) lowBytes() val {
	return g.poolVal(poolKey{w: 2, name: "low bytes of words"}, func(b []byte) []byte {
		for range byteLanes / 2 {
			b = append(b, 0xff, 0)
		}
		return b
	})
}

// applyBytes is apply in lanes of a byte.
func (g *gen) applyBytes(in *loop.Instr, d ir.DType, x []val) val {
	switch {
	case in.Op == aten.Where:
		return g.blendBytes(x[0], x[1], x[2])
	case in.Op != aten.Cast:
		return table[in.Op].bytes(g, d, x)
	case in.DType == ir.Bool:
		return g.setBytes(d, x[0])
	case d == ir.Bool:
		return g.onBytes(x64.PANDD, x[0], g.konst(1, 1))
	}
	return x[0]
}

// byteConstant is constant in lanes of a byte.
func (g *gen) byteConstant(in *loop.Instr) val {
	if in.DType == ir.Bool && in.Bits != 0 {
		return g.konst(1, 0xff)
	}
	return g.konst(1, in.Bits&0xff)
}

// readBytes is read in lanes of a byte.
func (g *gen) readBytes(arg int) val {
	a := &g.k.Args[arg]
	op, from := x64.MOVUPS, g.element(arg)
	switch {
	case a.Cols == loop.Fixed:
		op, from = x64.PBROADCASTB, g.addr(place{arg: arg})
	case g.tail:
		slot := g.newSlot()
		g.moveTail(arg, slot, false)
		from = g.slot(slot)
	}
	v := g.add(vop{op: op, len: byteLanes, dst: g.temp(byteLanes), mem: from})
	if a.DType == ir.Bool {
		return g.setBytes(ir.U8, v)
	}
	return v
}

// writeBytes is write in lanes of a byte.
func (g *gen) writeBytes(arg int, v val) {
	if g.k.Args[arg].DType == ir.Bool {
		v = g.onBytes(x64.PANDD, v, g.konst(1, 1))
	}
	op, to := x64.MOVUPSst, g.element(arg)
	switch {
	case g.tail:
		slot := g.newSlot()
		g.add(vop{op: op, len: byteLanes, b: v, mem: g.slot(slot), store: true})
		g.moveTail(arg, slot, true)
		return
	case g.stream && g.streams(arg):
		op = x64.MOVNTPS
	}
	g.add(vop{op: op, len: byteLanes, b: v, mem: to, store: true})
}

// moveTail copies the bytes of a tail between an operand and a slot, at most eight at a time.
func (g *gen) moveTail(arg int, slot int32, store bool) {
	g.scalar(func() {
		a := g.asm
		a.Lea(x64.RAX, x64.Mem{Base: g.pointer(arg, x64.RAX), Index: column, Scale: 1})
		a.MovImm(x64.RDX, 0)
		a.MovLoad(x64.R8, inSpill(atTail))
		from, to := x64.Mem{Base: x64.RAX, Index: x64.RDX, Scale: 1}, x64.Mem{Base: spillBase, Index: x64.RDX, Scale: 1, Disp: slot}
		if store {
			from, to = to, from
		}
		for _, size := range []int{8, 4, 2, 1} {
			again, next := a.Label(), a.Label()
			a.Bind(again)
			a.ArithImm(x64.Cmp, x64.R8, int32(size))
			a.JumpIf(x64.Less, next)
			a.LoadSize(x64.RBX, from, size)
			a.StoreSize(to, x64.RBX, size)
			a.ArithImm(x64.Add, x64.RDX, int32(size))
			a.ArithImm(x64.Sub, x64.R8, int32(size))
			if size == 8 {
				a.Jump(again)
			}
			a.Bind(next)
		}
	})
}

// powersOfTwo returns 2ⁱ for each byte of a table, by the bytes of exponents, and 0 for those that it has not.
func (g *gen) powersOfTwo(name string, exponents val, table ...byte) val {
	powers := g.poolVal(poolKey{w: 1, name: name}, func(b []byte) []byte {
		for range byteLanes / 16 {
			b = append(append(b, table...), make([]byte, 16-len(table))...)
		}
		return b
	})
	return g.onBytes(x64.PSHUFB, powers, g.onBytes(x64.PMINUB, exponents, g.konst(1, 15)))
}

// shiftBytesLeft multiplies by powers of two. Counts that are not below the width give 0, and negative ones are very large.
func shiftBytesLeft(g *gen, d ir.DType, x []val) val {
	return mulBytes(g, d, []val{x[0], g.powersOfTwo("bytes shifted left", x[1], 1, 2, 4, 8, 16, 32, 64, 128)})
}

// shiftBytesRight fills with the sign.
func shiftBytesRight(g *gen, d ir.DType, x []val) val {
	if d == ir.U8 {
		return g.shiftUnsigned(x[0], x[1])
	}
	// With 128 added no number is negative; what that becomes is subtracted again.
	top, count := g.konst(1, 0x80), g.onBytes(x64.PMINUB, x[1], g.konst(1, 7))
	return g.onBytes(x64.PSUBB, g.shiftUnsigned(g.onBytes(x64.PXORD, x[0], top), count), g.shiftUnsigned(top, count))
}

// shiftUnsigned shifts even and odd bytes to the right: the upper bytes of their products with 2⁸⁻ⁿ, which for no shift at
// all is no byte.
func (g *gen) shiftUnsigned(x, count val) val {
	const n = byteLanes
	upper := g.powersOfTwo("bytes shifted right", count, 0, 128, 64, 32, 16, 8, 4, 2)
	low := g.lowBytes()
	even := g.op1i(x64.PSRLW, n, g.onBytes(x64.PMULLW, g.onBytes(x64.PANDD, x, low), g.onBytes(x64.PANDD, upper, low)), 8)
	odd := g.onBytes(x64.PMULLW, g.op1i(x64.PSRLW, n, x, 8), g.op1i(x64.PSRLW, n, upper, 8))
	shifted := g.onBytes(x64.PORD, even, g.onBytes(x64.PANDND, low, odd))
	return g.blendBytes(g.onBytes(x64.PCMPEQB, count, g.konst(1, 0)), x, shifted)
}
