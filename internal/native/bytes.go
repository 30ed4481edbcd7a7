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

// byteOps are the ops that there is one for.
var byteOps map[ir.Op]byteOp

func init() {
	bytes := func(op x64.Op) byteOp {
		return func(g *gen, _ ir.DType, x []val) val { return g.onBytes(op, x[0], x[1]) }
	}
	// orElse is bools for bools.
	orElse := func(ints, bools byteOp) byteOp {
		return func(g *gen, d ir.DType, x []val) val {
			if d == ir.Bool {
				return bools(g, d, x)
			}
			return ints(g, d, x)
		}
	}
	never := func(g *gen, _ ir.DType, _ []val) val { return g.konst(1, 0) }
	keep := func(_ *gen, _ ir.DType, x []val) val { return x[0] }
	not := func(f byteOp) byteOp {
		return func(g *gen, d ir.DType, x []val) val { return g.notBytes(f(g, d, x)) }
	}
	swap := func(f byteOp) byteOp {
		return func(g *gen, d ir.DType, x []val) val { return f(g, d, []val{x[1], x[0]}) }
	}
	noneSet := func(g *gen, d ir.DType, x []val) val { return g.notBytes(g.setBytes(d, x[0])) }
	or, and, xor, equal := bytes(x64.PORD), bytes(x64.PANDD), bytes(x64.PXORD), bytes(x64.PCMPEQB)
	byteOps = map[ir.Op]byteOp{
		aten.Add: orElse(bytes(x64.PADDB), or), aten.Sub: bytes(x64.PSUBB), aten.Mul: orElse(mulBytes, and),
		aten.Maximum: greatestByte, aten.Minimum: leastByte,
		aten.Neg: func(g *gen, _ ir.DType, x []val) val { return g.onBytes(x64.PSUBB, g.konst(1, 0), x[0]) },
		aten.Abs: func(g *gen, d ir.DType, x []val) val {
			if d == ir.I8 {
				return g.op1(x64.PABSB, byteLanes, x[0])
			}
			return x[0]
		},
		aten.Sign: orElse(func(g *gen, d ir.DType, x []val) val {
			least := leastByte(g, d, []val{x[0], g.konst(1, 1)})
			if d == ir.U8 {
				return least
			}
			return greatestByte(g, d, []val{least, g.konst(1, 0xff)})
		}, keep),
		aten.Relu: func(g *gen, d ir.DType, x []val) val {
			if d == ir.I8 {
				return greatestByte(g, d, []val{x[0], g.konst(1, 0)})
			}
			return x[0]
		},
		aten.Floor: keep, aten.Ceil: keep, aten.Round: keep, aten.Trunc: keep,

		aten.Eq: equal, aten.Ne: not(equal),
		aten.Ge: atLeastByte, aten.Lt: not(atLeastByte), aten.Le: swap(atLeastByte), aten.Gt: swap(not(atLeastByte)),

		aten.LogicalOr: func(g *gen, d ir.DType, x []val) val { return g.setBytes(d, or(g, d, x)) },
		aten.LogicalAnd: func(g *gen, d ir.DType, x []val) val {
			return g.onBytes(x64.PANDD, g.setBytes(d, x[0]), g.setBytes(d, x[1]))
		},
		aten.LogicalXor: func(g *gen, d ir.DType, x []val) val {
			return g.onBytes(x64.PXORD, g.setBytes(d, x[0]), g.setBytes(d, x[1]))
		},
		aten.LogicalNot: noneSet,
		aten.BitwiseAnd: and, aten.BitwiseOr: or, aten.BitwiseXor: xor,
		aten.BitwiseNot: func(g *gen, _ ir.DType, x []val) val { return g.notBytes(x[0]) },
		aten.Signbit: func(g *gen, d ir.DType, x []val) val {
			if d == ir.I8 {
				return g.onBytes(x64.PCMPGTB, g.konst(1, 0), x[0])
			}
			return g.konst(1, 0)
		},
		aten.IsNaN: never, aten.IsInf: never, aten.IsFinite: not(never),
		aten.Where: func(g *gen, _ ir.DType, x []val) val {
			return g.add(vop{op: x64.PBLENDVB, len: byteLanes, dst: g.temp(byteLanes), a: x[2], b: x[1], c: x[0]})
		},
	}
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
			if !one(in.DType) || in.Op != aten.Cast && byteOps[in.Op] == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (g *gen) onBytes(op x64.Op, a, b val) val { return g.op2(op, byteLanes, a, b) }

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
	low := g.poolVal(poolKey{w: 2, name: "low bytes of words"}, func(b []byte) []byte {
		for range n / 2 {
			b = append(b, 0xff, 0)
		}
		return b
	})
	even := g.onBytes(x64.PANDD, g.onBytes(x64.PMULLW, x[0], x[1]), low)
	odd := g.onBytes(x64.PMULLW, g.op1i(x64.PSRLW, n, x[0], 8), g.op1i(x64.PSRLW, n, x[1], 8))
	return g.onBytes(x64.PORD, even, g.op1i(x64.PSLLW, n, odd, 8))
}

// applyBytes is apply in lanes of a byte.
func (g *gen) applyBytes(in *loop.Instr, d ir.DType, x []val) val {
	switch {
	case in.Op != aten.Cast:
		return byteOps[in.Op](g, d, x)
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
		from = g.addr(place{arg: -1, mem: inSpill(slot)})
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
		g.add(vop{op: op, len: byteLanes, b: v, mem: g.addr(place{arg: -1, mem: inSpill(slot)}), store: true})
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
