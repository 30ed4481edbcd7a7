package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// Predicates are masks: bits of a k register with AVX-512, lanes that are all ones or zeros
// with AVX2. Those lanes have 64 bits where elements of 64 bits were compared, since mostly such are
// chosen by them, and else 32.

// by returns the form of an operation for elements of w bytes.
func by(w int, four, eight x64.Op) x64.Op {
	if w == 8 {
		return eight
	}
	return four
}

// Predicates of floats, as cmpps has them: ordered ones are false for NaN.
const (
	cmpEQ    = 0
	cmpLT    = 0x11
	cmpLE    = 0x12
	cmpUNORD = 3
	cmpORD   = 7
	cmpNLT   = 0x15
	cmpNLE   = 0x16
	cmpNGE   = 0x19
	cmpNE    = 4
	cmpGE    = 0x1d
	cmpGT    = 0x1e
)

// cmpF compares floats.
func (g *gen) cmpF(w int, pred byte, a, b val) val {
	op := by(w, x64.CMPPS, x64.CMPPD)
	if g.evex() {
		return g.add(vop{op: op, len: g.vl(w), dst: g.maskTemp(), a: a, b: b, imm: pred})
	}
	return g.laneMask(w, g.op2i(op, g.vl(w), a, b, pred))
}

// laneMask makes a mask of lanes of w bytes, with AVX2. NEON narrows lanes by one instruction.
func (g *gen) laneMask(w int, m val) val {
	if w == 8 && g.neon() {
		return g.resize(x64.PMOVQD, 32, 16, m, 0)
	}
	g.vals[m].eights = w == 8
	return m
}

// maskFor returns a mask as lanes of w bytes, with AVX2.
func (g *gen) maskFor(w int, m val) val {
	switch eights := g.vals[m].eights; {
	case eights == (w == 8):
		return m
	case eights:
		return g.lowHalves(m)
	}
	return g.op1(x64.PMOVSXDQ, g.vl(8), m)
}

// Predicates of signed integers, as vpcmpd has them.
const (
	intEQ = 0
	intLT = 1
	intLE = 2
	intNE = 4
	intGE = 5
	intGT = 6
)

// cmpI compares signed integers.
func (g *gen) cmpI(w int, pred byte, a, b val) val {
	n := g.vl(w)
	if g.evex() {
		return g.add(vop{op: by(w, x64.PCMPD, x64.PCMPQ), len: n, dst: g.maskTemp(), a: a, b: b, imm: pred})
	}
	eq, gt := by(w, x64.PCMPEQD, x64.PCMPEQQ), by(w, x64.PCMPGTD, x64.PCMPGTQ)
	switch pred {
	case intEQ:
		return g.laneMask(w, g.op2(eq, n, a, b))
	case intNE:
		return g.not(g.laneMask(w, g.op2(eq, n, a, b)))
	case intGT:
		return g.laneMask(w, g.op2(gt, n, a, b))
	case intLT:
		return g.laneMask(w, g.op2(gt, n, b, a))
	case intLE:
		return g.not(g.laneMask(w, g.op2(gt, n, a, b)))
	}
	return g.not(g.laneMask(w, g.op2(gt, n, b, a)))
}

// nonZero tells which integers are not 0.
func (g *gen) nonZero(w int, x val) val {
	if g.evex() {
		return g.add(vop{op: by(w, x64.PTESTMD, x64.PTESTMQ), len: g.vl(w), dst: g.maskTemp(), a: x, b: x})
	}
	return g.cmpI(w, intNE, x, g.konst(w, 0))
}

func (g *gen) mask2(k, v x64.Op, a, b val) val {
	if g.evex() {
		return g.add(vop{op: k, len: 16, dst: g.maskTemp(), a: a, b: b})
	}
	w := 4
	if g.vals[a].eights || g.vals[b].eights {
		w, a, b = 8, g.maskFor(8, a), g.maskFor(8, b)
	}
	return g.laneMask(w, g.op2(v, g.vl(w), a, b))
}

func (g *gen) and(a, b val) val    { return g.mask2(x64.KANDW, x64.PANDD, a, b) }
func (g *gen) or(a, b val) val     { return g.mask2(x64.KORW, x64.PORD, a, b) }
func (g *gen) xor(a, b val) val    { return g.mask2(x64.KXORW, x64.PXORD, a, b) }
func (g *gen) andNot(a, b val) val { return g.mask2(x64.KANDNW, x64.PANDND, b, a) } // a and not b

func (g *gen) not(a val) val {
	if g.evex() {
		return g.add(vop{op: x64.KNOTW, len: 16, dst: g.maskTemp(), b: a})
	}
	w := 4
	if g.vals[a].eights {
		w = 8
	}
	return g.laneMask(w, g.op2(x64.PXORD, g.vl(w), a, g.konst(w, uint64(math.MaxUint64)>>(64-8*w))))
}

// constMask returns a mask that is true or false everywhere.
func (g *gen) constMask(set bool) val {
	if !g.evex() {
		bits := uint64(0)
		if set {
			bits = 0xffffffff
		}
		return g.konst(4, bits)
	}
	op := x64.KXORW
	if set {
		op = x64.KXNORW
	}
	return g.add(vop{op: op, len: 16, dst: g.maskTemp(), a: g.tails[0], b: g.tails[0]})
}

// blend is x where the mask is set, and y elsewhere.
func (g *gen) blend(w int, m, x, y val) val {
	n := g.vl(w)
	if g.evex() {
		return g.add(vop{op: by(w, x64.PBLENDMD, x64.PBLENDMQ), len: n, dst: g.temp(n), a: y, b: x, c: m})
	}
	return g.bySign(w, g.maskFor(w, m), x, y)
}

// bySign is x where s has its sign bit set, and y elsewhere, with AVX2.
func (g *gen) bySign(w int, s, x, y val) val {
	n := g.vl(w)
	return g.add(vop{op: by(w, x64.BLENDVPS, x64.BLENDVPD), len: n, dst: g.temp(n), a: y, b: x, c: s})
}

// pick is the constant with bits where the mask is set, and 0 elsewhere.
func (g *gen) pick(m val, w int, bits uint64) val {
	n, k := g.vl(w), g.konst(w, bits)
	op := by(w, x64.PANDD, x64.PANDQ)
	if g.evex() {
		return g.add(vop{op: op, len: n, dst: g.temp(n), a: k, b: k, c: m, zero: true})
	}
	return g.op2(op, n, g.maskFor(w, m), k)
}
