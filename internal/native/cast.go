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
	return g.lowHalves(x)
}

// lowHalves returns the lower halves of lanes of 64 bits, with AVX2.
func (g *gen) lowHalves(x val) val {
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
		x = g.toLong(from, x)
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
	if to == ir.F32 {
		return g.resize(x64.CVTPD2PS, g.vl(8), max(g.vl(4), 16), g.longToDouble(g.withoutTies(x)), 0)
	}
	return g.longToDouble(x)
}

// longToDouble converts integers of 64 bits to f64, with AVX2: the upper 16 bits and the lower 48 become parts of two
// floats whose sum is rounded once.
func (g *gen) longToDouble(x val) val {
	const w, upper, lower = 8, 0x1.8p68, 0x1p52 // with units of 2¹⁶ and 1 in their last places
	n := g.vl(w)
	hi := g.op2(x64.PANDQ, n, g.op1i(x64.PSRAD, n, x, 16), g.konst(w, math.MaxUint32<<32))
	hi = g.op2(x64.PADDQ, n, hi, g.konst(w, math.Float64bits(upper)))
	lo := g.op2(x64.PANDQ, n, x, g.konst(w, 1<<48-1))
	lo = g.op2(x64.PORQ, n, lo, g.konst(w, math.Float64bits(lower)))
	return g.addF(w, g.subF(w, hi, g.num(w, upper+lower)), lo)
}

// withoutTies replaces integers that f64 may not have by ones that it has and that round to the same f32: a bit that f32
// does not reach stands for all those below.
func (g *gen) withoutTies(x val) val {
	const w, most, below = 8, 1 << 53, 1<<11 - 1
	n := g.vl(w)
	large := g.or(g.cmpI(w, intGT, x, g.konst(w, most)), g.cmpI(w, intLT, x, g.konst(w, math.MaxUint64-most+1)))
	some := g.op2(x64.PADDQ, n, g.op2(x64.PANDQ, n, x, g.konst(w, below)), g.konst(w, below))
	kept := g.op2(x64.PANDQ, n, g.op2(x64.PORQ, n, x, some), g.konst(w, math.MaxUint64-below))
	return g.blend(w, large, kept, x)
}

// toLong converts floats to integers of 64 bits without their fractions, with AVX2: those below 2⁵¹ by the low bits of
// what is added to them, others lane by lane.
func (g *gen) toLong(from ir.DType, x val) val {
	const w = 8
	if from == ir.F32 {
		x = g.resize(x64.CVTPS2PD, g.vl(w), g.vl(w), x, 0)
	}
	near := g.cmpF(w, cmpLT, g.abs(w, x), g.num(w, 0x1p51))
	sum := g.addF(w, g.trunc(w, x), g.num(w, f64.magic))
	fast := g.op2(x64.PSUBQ, g.vl(w), sum, g.konst(w, math.Float64bits(f64.magic)))
	return g.blend(w, near, fast, g.singly(x, g.not(near)))
}

// singly converts f64s to integers of 64 bits one by one, through memory, if a mask has a lane.
func (g *gen) singly(x, some val) val {
	n, xs, mask := g.vl(8), g.newSlot(), g.newSlot()
	g.add(vop{op: x64.MOVUPSst, len: n, b: x, mem: g.slot(xs), store: true})
	g.add(vop{op: x64.MOVUPSst, len: n, b: g.maskFor(8, some), mem: g.slot(mask), store: true})
	g.scalar(func() {
		end := g.asm.Label()
		g.unlessAny(mask, int(n), end)
		for at := int32(0); at < int32(n); at += 8 {
			m := inSpill(xs + at)
			g.asm.Vec(x64.Inst{Op: x64.CVTTSD2SI, Len: 16, Reg: x64.RAX, V: x64.NoReg, Mem: &m})
			g.asm.MovStore(m, x64.RAX)
		}
		g.asm.Bind(end)
	})
	return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.slot(xs)})
}
