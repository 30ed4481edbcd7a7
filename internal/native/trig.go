package native

import (
	"math"
	"math/big"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
	"github.com/loris-ml/loris/internal/twooverpi"
)

// Sine, cosine and tangent of f32 (those of f64 are in trig64.go): x = q·π/2 + r, |r| ≤ π/4. Below
// angleMost the reduction is in f32 with π/2 in three parts. A vector with a lane beyond jumps to code
// that reduces in f64, where q up to 2⁴⁵ is a product with 2/π and r what remains after two parts
// of π/2, which leaves r more bits than f32 has. Lanes beyond that are done one by one in integers,
// with the bits of 2/π that decide the quadrant and those behind. Each lane has the result of its own
// reduction, whatever its neighbours need.

// sinP and cosP are (sin √z - √z)/√z³ and (cos √z - 1 + z/2)/z² for z up to π²/16, for f64; sinP32 is
// the first for f32, negated, and cosP32 cos √z whole.
var (
	sinP = []float64{-0.1666666666666662767, 0.00833333333332128246, -0.0001984126982886818259, 2.755731335544207981e-6,
		-2.505070396146168994e-8, 1.589357988724728306e-10}
	cosP = []float64{0.04166666666666659101, -0.001388888888887259171, 0.00002480158728848819544, -2.755731405556900806e-7,
		2.087568175535520626e-9, -1.135744277127388459e-11}
	sinP32 = []float64{0.16666654609539855, -0.008332160761451912, 0.00019515283147842483}
	cosP32 = []float64{1, -0.5, 0.04166664686642409, -0.0013887367514961288, 2.4438451515203588e-05}
)

// halfPi32 is π/2 in three parts. The first two are rounded down, so that of -0 all products have the
// sign that keeps it.
var halfPi32 = [3]float64{0x1.921fb4p+0, 0x1.4442d0p-24, 0x1.84698ap-48}

const (
	// angleMost bounds the reduction in f32. Below it x less q times the first part of π/2 is exact: a
	// multiple of 2⁻²⁴ below 1. The second product is added with one rounding, and q times the third is
	// below 2⁻²⁷: next to 0, where it matters, it is added, and elsewhere the cosine is not changed by it.
	angleMost = 0x1p20
	// trigFirst is the exponent of the least significant bit of an f32 of 2⁴⁵, from where lanes are done
	// one by one, and trigExponents how many there are up to the largest.
	trigFirst     = 45 - 23
	trigExponents = 127 - 45 + 1
)

// twoOverPi has, for each exponent k from trigFirst, 2/π·2ᵏ modulo 4 as two words:
// 2 bits before the point and 126 behind, the high word first.
var twoOverPi = func() []byte {
	digits := twooverpi.Int()
	mask := new(big.Int).Lsh(big.NewInt(1), 64)
	mask.Sub(mask, big.NewInt(1))
	var table []byte
	for k := range trigExponents {
		w := new(big.Int).Rsh(digits, uint(64*len(twooverpi.Words)-126-(trigFirst+k)))
		lo := new(big.Int).And(w, mask).Uint64()
		hi := new(big.Int).And(w.Rsh(w, 64), mask).Uint64()
		table = appendBits(appendBits(table, 8, hi), 8, lo)
	}
	return table
}()

func trigonometric() map[ir.Op]emitters {
	return map[ir.Op]emitters{
		aten.Sin: inWidth(func(g *gen, x val) val {
			s, c, q := g.sinCos32(x)
			return g.inQuadrant32(s, c, q)
		}, (*gen).sin64),
		aten.Cos: inWidth(func(g *gen, x val) val {
			s, c, q := g.sinCos32(x)
			return g.inQuadrant32(s, c, g.op2(x64.PADDD, g.vl(4), q, g.konst(4, 1)))
		}, (*gen).cos64),
		aten.Tan: inWidth(func(g *gen, x val) val {
			s, c, q := g.sinCos32(x)
			return g.tangent(4, s, c, q)
		}, (*gen).tan64),
	}
}

// tangent is s/c or -c/s, for q in the low bit.
func (g *gen) tangent(w int, s, c, q val) val {
	n := g.vl(w)
	bit := g.op2(by(w, x64.PANDD, x64.PANDQ), n, q, g.konst(w, 1))
	odd := g.nonZero(w, bit)
	y := g.nearQuotient(w, g.blend(w, odd, c, s), g.blend(w, odd, s, c))
	return g.op2(by(w, x64.PXORD, x64.PXORQ), n, y, g.op1i(by(w, x64.PSLLD, x64.PSLLQ), n, bit, byte(8*w-1)))
}

// inQuadrant32 is sin(r + q·π/2) of the sine and cosine of r, for q in the low bits.
func (g *gen) inQuadrant32(s, c, q val) val {
	n := g.vl(4)
	// Bit 0 of q tells which, and bit 1 becomes the sign.
	var odd val
	if g.evex() {
		odd = g.nonZero(4, g.op2(x64.PANDD, n, q, g.konst(4, 1)))
	} else {
		odd = g.op1i(x64.PSLLD, n, q, 31) // its sign bits select
	}
	return g.op2(x64.PXORD, n, g.blend(4, odd, c, s), g.sign(4, g.op1i(x64.PSLLD, n, q, 30)))
}

// sinCos32 returns the sine and the cosine of what the reduction of x leaves, and the quadrant.
func (g *gen) sinCos32(x val) (s, c, q val) {
	const w = 4
	a := g.angle32(x)
	z := g.squared(w, a.r)
	// The sine is r - (r·z·P + rest), in this order to keep -0.
	s = g.subF(w, a.r, g.mulAdd(w, g.poly(w, z, sinP32), g.mulF(w, z, a.r), a.rest))
	c = g.poly(w, z, cosP32)
	return s, c, a.q
}

// angle32 reduces x; here the angle is r less the rest.
func (g *gen) angle32(x val) angle {
	const w = 4
	n := g.vl(w)
	magic := g.num(w, f32.magic)
	q := g.mulAdd(w, x, g.num(w, 2/math.Pi), magic)
	k := g.subF(w, q, magic)
	r := g.subMul(w, g.subMul(w, x, k, g.num(w, halfPi32[0])), k, g.num(w, halfPi32[1]))
	rest := g.mulF(w, k, g.num(w, halfPi32[2]))

	far := g.cmpF(w, cmpGE, g.abs(w, x), g.num(w, angleMost))
	f := g.farSlots()
	g.add(vop{op: x64.MOVUPSst, len: n, b: x, mem: g.slot(f.x), store: true})
	g.storeMask(far, n, g.slot(f.mask))
	table := g.poolVal(poolKey{w: 8, name: "reduction of angles"}, farTable)
	g.scalar(func() { g.reduceFar(int(n), f, g.vals[table].lbl) })
	// Where no lane is far the slots have something else, of which no lane is taken.
	load := func(at int32) val { return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.slot(at)}) }
	return angle{g.blend(w, far, load(f.r), r), g.blend(w, far, load(f.rest), rest), g.blend(w, far, load(f.q), q)}
}

// farSlots is where angles are reduced in f64: lanes of f32 with the angles, their mask and the
// results, a vector of f64 with each, and registers that are kept.
type farSlots struct{ x, mask, r, rest, q, x64, r64, q64, keepQ, keepR int32 }

func (g *gen) farSlots() *farSlots {
	if g.angles == nil { // one of what is used by one vector after the other
		g.angles = &farSlots{x64: g.newSlot(), r64: g.newSlot(), q64: g.newSlot(), keepQ: g.newSlot(), keepR: g.newSlot()}
	}
	f := *g.angles
	f.x, f.mask, f.r, f.rest, f.q = g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot()
	return &f
}

// Where the constants of reduceFar are, a vector of each, and behind them twoOverPi.
const (
	farMagic = 64 * iota
	farScale
	farHigh
	farLow
	farUnit // π/2·2⁻⁶⁴
	farDigits
)

func farTable(b []byte) []byte {
	for _, x := range []float64{f64.magic, 2 / math.Pi, math.Pi / 2, 6.123233995736766e-17, math.Pi / 2 * 0x1p-64} {
		for range 8 {
			b = appendBits(b, 8, math.Float64bits(x))
		}
	}
	return append(b, twoOverPi...)
}

// reduceFar emits a jump where the mask is empty, and before it the reduction in f64 of all lanes of
// a vector of n bytes.
func (g *gen) reduceFar(n int, f *farSlots, table x64.Label) {
	a := g.asm
	end := a.Label()
	g.unlessAny(f.mask, n, end)
	long := 32
	if g.evex() {
		long = 64
	}
	whole := long
	long = min(long, 2*n)
	mem := func(op x64.Op, bytes int, r, v x64.Reg, m x64.Mem) {
		a.Vec(x64.Inst{Op: op, Len: uint8(bytes), Reg: r, V: v, Mem: &m, EVEX: g.evex()})
	}
	reg := func(op x64.Op, r, v, from x64.Reg) {
		a.Vec(x64.Inst{Op: op, Len: uint8(long), Reg: r, V: v, RM: from, EVEX: g.evex()})
	}
	q, r := g.kept(1), g.kept(2)
	mem(x64.MOVUPSst, whole, q, x64.NoReg, inSpill(f.keepQ))
	mem(x64.MOVUPSst, whole, r, x64.NoReg, inSpill(f.keepR))
	for part := range 2 * n / long {
		at := int32(part * long / 2)
		constant := func(at int32) x64.Mem { return x64.At(x64.RAX, at) }
		a.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: table})
		mem(x64.MOVUPS, long/2, r, x64.NoReg, inSpill(f.x+at))
		reg(x64.CVTPS2PD, r, x64.NoReg, r)
		mem(x64.MOVUPSst, long, r, x64.NoReg, inSpill(f.x64))
		mem(x64.MOVUPS, long, q, x64.NoReg, constant(farMagic))
		mem(x64.FMADD231PD, long, q, r, constant(farScale))
		mem(x64.MOVUPSst, long, q, x64.NoReg, inSpill(f.q64))
		mem(x64.SUBPD, long, q, q, constant(farMagic))
		mem(x64.FNMADD231PD, long, r, q, constant(farHigh))
		mem(x64.FNMADD231PD, long, r, q, constant(farLow))
		mem(x64.MOVUPSst, long, r, x64.NoReg, inSpill(f.r64))
		for lane := range int32(long / 8) {
			g.reduceHuge(f, 8*lane, table)
			a.MovLoad(x64.RAX, inSpill(f.q64+8*lane))
			a.StoreSize(inSpill(f.q+at+4*lane), x64.RAX, 4)
		}
		mem(x64.MOVUPS, long, r, x64.NoReg, inSpill(f.r64))
		reg(x64.CVTPD2PS, q, x64.NoReg, r)
		mem(x64.MOVUPSst, long/2, q, x64.NoReg, inSpill(f.r+at))
		reg(x64.CVTPS2PD, q, x64.NoReg, q)
		reg(x64.SUBPD, q, q, r)
		reg(x64.CVTPD2PS, q, x64.NoReg, q)
		mem(x64.MOVUPSst, long/2, q, x64.NoReg, inSpill(f.rest+at))
	}
	mem(x64.MOVUPS, whole, q, x64.NoReg, inSpill(f.keepQ))
	mem(x64.MOVUPS, whole, r, x64.NoReg, inSpill(f.keepR))
	a.Bind(end)
}

// reduceHuge emits the reduction of a lane that may be beyond 2⁴⁵, at an offset in the slots of
// f64. An f32 in f64 has 24 bits M above 29 zeros: x = M·2ᵏ. The product of M and the table's words,
// modulo 2¹²⁸, has the quadrant in its 2 highest bits and then the fraction of one.
func (g *gen) reduceHuge(f *farSlots, lane int32, table x64.Label) {
	a := g.asm
	next := a.Label()
	x := inSpill(f.x64 + lane)
	a.MovLoad(x64.RBX, x)
	a.ShiftImm(x64.Shl, x64.RBX, 1)
	a.ShiftImm(x64.Shr, x64.RBX, 53)                       // the exponent and its bias
	a.ArithImm(x64.Sub, x64.RBX, int32(1023+23+trigFirst)) // from trigFirst
	a.ArithImm(x64.Cmp, x64.RBX, trigExponents)
	a.JumpIf(x64.AboveEq, next)
	a.ShiftImm(x64.Shl, x64.RBX, 4)
	a.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: table})
	a.Arith(x64.Add, x64.RBX, x64.RAX)
	a.MovLoad(x64.R8, x)
	a.ShiftImm(x64.Shl, x64.R8, 12)
	a.ShiftImm(x64.Shr, x64.R8, 41)
	a.ArithImm(x64.Or, x64.R8, 1<<23) // M
	a.Mov(x64.RAX, x64.R8)
	a.MulLoad(x64.At(x64.RBX, farDigits+8)) // RDX is what the low word carries
	a.IMulLoad(x64.R8, x64.At(x64.RBX, farDigits))
	a.Arith(x64.Add, x64.RDX, x64.R8)
	// Rounded to the nearest quadrant, the rest is signed.
	a.MovImm(x64.RAX, 1)
	a.ShiftImm(x64.Shl, x64.RAX, 61)
	a.Arith(x64.Add, x64.RAX, x64.RDX)
	a.ShiftImm(x64.Shr, x64.RAX, 62)
	a.ShiftImm(x64.Shl, x64.RDX, 2)
	positive := a.Label()
	a.MovLoad(x64.RBX, x)
	a.ArithImm(x64.Cmp, x64.RBX, 0)
	a.JumpIf(x64.GreatEq, positive)
	a.Neg(x64.RAX)
	a.Neg(x64.RDX)
	a.Bind(positive)
	a.MovStore(inSpill(f.q64+lane), x64.RAX)
	// In units of 2⁻⁶⁴ quadrants; a product of the other lane can't trap.
	a.MovStore(inSpill(f.r64+lane), x64.RDX)
	a.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: table})
	r, unit := inSpill(f.r64+lane), x64.At(x64.RAX, farUnit)
	y := g.kept(2)
	a.Vec(x64.Inst{Op: x64.CVTSI2SD, Len: 16, Reg: y, V: y, Mem: &r})
	a.Vec(x64.Inst{Op: x64.MULPD, Len: 16, Reg: y, V: y, Mem: &unit})
	a.Vec(x64.Inst{Op: x64.MOVSDst, Len: 16, Reg: y, V: x64.NoReg, Mem: &r})
	a.Bind(next)
}
