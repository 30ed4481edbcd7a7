package native

import (
	"math"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
)

// cast converts between compute dtypes as ir.FloatToInt, IntToFloat and WrapInt define it. The
// processor's conversions give the least integer for NaN and for values out of range, as these do.
func (g *gen) cast(from, to ir.DType, x val) val {
	switch {
	case from == to:
		return x
	case to == ir.Bool:
		return g.toBool(from, x)
	case from == ir.Bool:
		return g.pick(x, width(to), oneOf(to))
	case from.IsFloat() && to.IsFloat():
		if to == ir.F64 {
			return g.resize(x64.CVTPS2PD, g.vl(8), g.vl(8), x, 0)
		}
		return g.resize(x64.CVTPD2PS, g.vl(8), max(g.vl(4), 16), x, 0)
	case from.IsFloat():
		return g.floatToInt(from, to, x)
	case to.IsFloat():
		return g.intToFloat(from, to, x)
	}
	return g.wrap(to, g.intToInt(width(from), width(to), x))
}

// oneOf returns the bits of 1.
func oneOf(d ir.DType) uint64 {
	switch d {
	case ir.F32:
		return uint64(math.Float32bits(1))
	case ir.F64:
		return math.Float64bits(1)
	}
	return 1
}

func (g *gen) toBool(from ir.DType, x val) val {
	w := width(from)
	if from.IsFloat() {
		return g.cmpF(w, cmpNE, x, g.konst(w, 0))
	}
	return g.nonZero(w, x)
}

func (g *gen) intToInt(from, to int, x val) val {
	switch {
	case from == to:
		return x
	case to == 8:
		return g.op1(x64.PMOVSXDQ, g.vl(8), x)
	case g.evex() || g.neon():
		return g.resize(x64.PMOVQD, g.vl(8), max(g.vl(4), 16), x, 0)
	}
	hi := g.resize(x64.EXTRACTI128, 32, 16, x, 1)
	return g.op2i(x64.SHUFPS, 16, x, hi, 0x88)
}

// floatToInt converts by way of 64-bit integers where the low bits of large values matter. From f32
// to u8 they don't, because those of f32s beyond 2³¹ are 0.
func (g *gen) floatToInt(from, to ir.DType, x val) val {
	long := to == ir.I64 || (to == ir.U8 && from == ir.F64)
	switch {
	case !long && from == ir.F32:
		x = g.op1(x64.CVTTPS2DQ, g.vl(4), x)
	case !long:
		x = g.resize(x64.CVTTPD2DQ, g.vl(8), max(g.vl(4), 16), x, 0)
	case (g.evex() || g.neon()) && from == ir.F32:
		x = g.op1(x64.CVTTPS2QQ, g.vl(8), x)
	case g.evex() || g.neon():
		x = g.op1(x64.CVTTPD2QQ, g.vl(8), x)
	default:
		x = g.singly(by(width(from), x64.CVTTSS2SI, x64.CVTTSD2SI), width(from), 8, x)
	}
	if long {
		x = g.intToInt(8, width(to), x)
	}
	return g.wrap(to, x)
}

func (g *gen) intToFloat(from, to ir.DType, x val) val {
	switch {
	case from != ir.I64 && to == ir.F32:
		return g.op1(x64.CVTDQ2PS, g.vl(4), x)
	case from != ir.I64:
		return g.op1(x64.CVTDQ2PD, g.vl(8), x)
	case (g.evex() || g.neon()) && to == ir.F64:
		return g.op1(x64.CVTQQ2PD, g.vl(8), x)
	case g.evex() || g.neon():
		return g.resize(x64.CVTQQ2PS, g.vl(8), max(g.vl(4), 16), x, 0)
	}
	return g.singly(by(width(to), x64.CVTSI2SS, x64.CVTSI2SD), 8, width(to), x)
}

// singly converts lane by lane through memory, for the 64-bit integers that AVX2
// has no conversions for. XMM15 is the register between; it is saved, because it
// may hold something.
func (g *gen) singly(op x64.Op, from, to int, x val) val {
	g.add(vop{op: x64.MOVUPSst, len: max(g.vl(from), 16), b: x, mem: bounce, store: true})
	toInt := op == x64.CVTTSS2SI || op == x64.CVTTSD2SI
	save := g.newSlot()
	g.scalar(func() {
		keep := inSpill(save)
		if !toInt {
			g.asm.Vec(x64.Inst{Op: x64.MOVUPSst, Len: 32, Reg: 15, V: x64.NoReg, Mem: &keep})
		}
		// Results are not wider than 64 bits, so forward order never overwrites what
		// is still to be read unless they grow.
		for i := range g.lanes {
			lane := i
			if to > from {
				lane = g.lanes - 1 - i
			}
			src, dst := inSpill(atBounce+int32(lane*from)), inSpill(atBounce+int32(lane*to))
			if toInt {
				g.asm.Vec(x64.Inst{Op: op, Len: 16, Reg: x64.RAX, V: x64.NoReg, Mem: &src})
				g.asm.MovStore(dst, x64.RAX)
				continue
			}
			g.asm.Vec(x64.Inst{Op: op, Len: 16, Reg: 15, V: 15, Mem: &src})
			g.asm.Vec(x64.Inst{Op: by(to, x64.MOVSSst, x64.MOVSDst), Len: 16, Reg: 15, V: x64.NoReg, Mem: &dst})
		}
		if !toInt {
			g.asm.Vec(x64.Inst{Op: x64.MOVUPS, Len: 32, Reg: 15, V: x64.NoReg, Mem: &keep})
		}
	})
	n := max(g.vl(to), 16)
	return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: bounce})
}
