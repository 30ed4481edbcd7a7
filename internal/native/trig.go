package native

import (
	"math"
	"math/big"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
	"github.com/loris-ml/loris/internal/twooverpi"
)

// Sine, cosine and tangent of f32 in f64 (those of f64 are in trig64.go): x = q·π/2 + r, |r| ≤ π/4. Up to 2⁴⁵ q is
// a product with 2/π and r what remains after two parts of π/2, which leaves r
// more bits than f32 has. Lanes beyond are rare; they are done one by one in
// integers, with the bits of 2/π that decide the quadrant and those behind.

// sinP and cosP are (sin √z - √z)/√z³ and (cos √z - 1 + z/2)/z² for z up to π²/16.
var (
	sinP = []float64{-0.1666666666666662767, 0.00833333333332128246, -0.0001984126982886818259, 2.755731335544207981e-6,
		-2.505070396146168994e-8, 1.589357988724728306e-10}
	cosP = []float64{0.04166666666666659101, -0.001388888888887259171, 0.00002480158728848819544, -2.755731405556900806e-7,
		2.087568175535520626e-9, -1.135744277127388459e-11}
)

const (
	// trigMost is where lanes are done one by one.
	trigMost = 0x1p45
	// trigFirst is the exponent of the least significant bit of an f32 there, and
	// trigExponents how many there are up to the largest.
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
	one := func(f, wide func(g *gen, x val) val) emitters {
		return onDoubles(func(g *gen, x []val) val { return f(g, x[0]) }, func(g *gen, x []val) val { return wide(g, x[0]) })
	}
	return map[ir.Op]emitters{
		aten.Sin: one(func(g *gen, x val) val {
			r, q := g.quadrant(x)
			// Of the smallest numbers the sine is the number; it keeps the sign of 0.
			return g.blend(8, g.cmpF(8, cmpLT, g.abs(8, x), g.num(8, 0x1p-30)), x, g.sinOf(r, q))
		}, (*gen).sin64),
		aten.Cos: one(func(g *gen, x val) val {
			r, q := g.quadrant(x)
			return g.sinOf(r, g.op2(x64.PADDQ, g.vl(8), q, g.konst(8, 1)))
		}, (*gen).cos64),
		aten.Tan: one(func(g *gen, x val) val {
			r, q := g.quadrant(x)
			s, c := g.sinOf(r, q), g.sinOf(r, g.op2(x64.PADDQ, g.vl(8), q, g.konst(8, 1)))
			return g.blend(8, g.cmpF(8, cmpLT, g.abs(8, x), g.num(8, 0x1p-30)), x, g.div(8, s, c))
		}, (*gen).tan64),
	}
}

// sinOf is sin(r + q·π/2) for |r| ≤ π/4 and q in the low bits.
func (g *gen) sinOf(r, q val) val {
	const w = 8
	n := g.vl(8)
	z := g.mulF(w, r, r)
	s := g.mulAdd(w, g.mulF(w, g.poly(w, z, sinP), z), r, r)
	c := g.mulAdd(w, g.poly(w, z, cosP), g.mulF(w, z, z), g.fma(x64.FNMADD213PD, n, g.num(w, 0.5), z, g.num(w, 1)))
	odd := g.nonZero(w, g.op2(x64.PANDQ, n, q, g.konst(w, 1)))
	y := g.blend(w, odd, c, s)
	// Bit 1 of q becomes the sign.
	sign := g.op2(x64.PANDQ, n, g.op1i(x64.PSLLQ, n, q, 62), g.signBit(w))
	return g.op2(x64.PXORQ, n, y, sign)
}

// quadrant returns r and q of x.
func (g *gen) quadrant(x val) (r, q val) {
	const w = 8
	n := g.vl(8)
	magic := g.num(w, f64.magic)
	q = g.mulAdd(w, x, g.num(w, 2/math.Pi), magic)
	k := g.subF(w, q, magic)
	r = g.subMul(w, x, k, g.num(w, math.Pi/2))
	r = g.subMul(w, r, k, g.num(w, 6.123233995736766e-17))
	huge := g.and(g.cmpF(w, cmpGE, g.abs(w, x), g.num(w, trigMost)), g.cmpF(w, cmpLT, g.abs(w, x), g.num(w, math.Inf(1))))
	return g.eachHuge(n, huge, x, r, q)
}

// eachHuge replaces r and q in the lanes of a mask, which are done one by one.
func (g *gen) eachHuge(n uint8, huge, x, r, q val) (val, val) {
	xs, rs, qs, ms := g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot()
	keep := g.newSlot()
	slot := func(s int32) addr { return g.addr(place{arg: -1, mem: inSpill(s)}) }
	for _, v := range []struct {
		v  val
		at int32
	}{{x, xs}, {r, rs}, {q, qs}} {
		g.add(vop{op: x64.MOVUPSst, len: n, b: v.v, mem: slot(v.at), store: true})
	}
	// As numbers of 64 bits, 1 where the mask is set.
	g.add(vop{op: x64.MOVUPSst, len: n, b: g.pick(huge, 8, 1), mem: slot(ms), store: true})
	g.angleUnit = g.lanesOf("unit of angles", 8, int(math.Float64bits(math.Pi/2*0x1p-64)), int(math.Float64bits(math.Pi/2*0x1p-64)))
	table := g.poolVal(poolKey{w: 8, name: "2/π"}, func(b []byte) []byte { return append(b, twoOverPi...) })
	g.scalar(func() { g.hugeLanes(int(n)/8, xs, rs, qs, ms, keep, g.vals[table].lbl) })
	return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: slot(rs)}),
		g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: slot(qs)})
}

// hugeLanes emits a loop over lanes. An f32 in f64 has 24 bits M above 29 zeros:
// x = M·2ᵏ. The product of M and the table's words, modulo 2¹²⁸, has the quadrant
// in its 2 highest bits and then the fraction of one.
func (g *gen) hugeLanes(lanes int, xs, rs, qs, ms, keep int32, table x64.Label) {
	a := &g.asm
	var all = make([]x64.Label, lanes)
	for i := range all {
		all[i] = a.Label()
		next := all[i]
		at := func(s int32) x64.Mem { return inSpill(s + int32(8*i)) }
		a.MovLoad(x64.RAX, at(ms))
		a.ArithImm(x64.Cmp, x64.RAX, 0)
		a.JumpIf(x64.Zero, next)
		a.MovLoad(x64.RBX, at(xs))
		a.ShiftImm(x64.Shl, x64.RBX, 1)
		a.ShiftImm(x64.Shr, x64.RBX, 53)                       // the exponent and its bias
		a.ArithImm(x64.Sub, x64.RBX, int32(1023+23+trigFirst)) // from trigFirst
		a.ShiftImm(x64.Shl, x64.RBX, 4)
		a.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: table})
		a.Arith(x64.Add, x64.RBX, x64.RAX)
		a.MovLoad(x64.R8, at(xs))
		a.ShiftImm(x64.Shl, x64.R8, 12)
		a.ShiftImm(x64.Shr, x64.R8, 41)
		a.ArithImm(x64.Or, x64.R8, 1<<23) // M
		a.Mov(x64.RAX, x64.R8)
		a.MulLoad(x64.At(x64.RBX, 8)) // RDX is what the low word carries
		a.IMulLoad(x64.R8, x64.At(x64.RBX, 0))
		a.Arith(x64.Add, x64.RDX, x64.R8)
		// Rounded to the nearest quadrant, the rest is signed.
		a.MovImm(x64.RAX, 1)
		a.ShiftImm(x64.Shl, x64.RAX, 61)
		a.Arith(x64.Add, x64.RAX, x64.RDX)
		a.ShiftImm(x64.Shr, x64.RAX, 62)
		a.ShiftImm(x64.Shl, x64.RDX, 2)
		positive := a.Label()
		a.MovLoad(x64.RBX, at(xs))
		a.ArithImm(x64.Cmp, x64.RBX, 0)
		a.JumpIf(x64.GreatEq, positive)
		a.Neg(x64.RAX)
		a.Neg(x64.RDX)
		a.Bind(positive)
		a.MovStore(at(qs), x64.RAX)
		a.MovStore(at(rs), x64.RDX)
		g.toAngle(at(rs), keep)
		a.Bind(next)
	}
}

// toAngle turns a signed integer in units of 2⁻⁶⁴ quadrants into radians. XMM15 is
// saved around it.
func (g *gen) toAngle(at x64.Mem, keep int32) {
	a, saved := &g.asm, inSpill(keep)
	whole := x64.Inst{Op: x64.MOVUPSst, Len: 32, Reg: 15, V: x64.NoReg, Mem: &saved, EVEX: g.evex()}
	if g.evex() {
		whole.Len = 64
	}
	a.Vec(whole)
	a.Vec(x64.Inst{Op: x64.CVTSI2SD, Len: 16, Reg: 15, V: 15, Mem: &at})
	unit := x64.Mem{Index: x64.NoReg, Label: g.vals[g.angleUnit].lbl}
	// Lanes beyond the first are of no concern: a product of them can't trap.
	a.Vec(x64.Inst{Op: x64.MULPD, Len: 16, Reg: 15, V: 15, Mem: &unit})
	a.Vec(x64.Inst{Op: x64.MOVSDst, Len: 16, Reg: 15, V: x64.NoReg, Mem: &at})
	whole.Op = x64.MOVUPS
	a.Vec(whole)
}
