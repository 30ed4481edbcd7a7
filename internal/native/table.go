package native

import (
	"maps"
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
)

// table has the native ops. Its rows are filled in by init, after ir's.
var table map[ir.Op]emitters

type (
	wordOp = func(g *gen, w int, x []val) val
	maskOp = func(g *gen, x []val) val
)

// two returns the emitter of an instruction of two sources.
func two(four, eight x64.Op) wordOp {
	return func(g *gen, w int, x []val) val { return g.op2(by(w, four, eight), g.vl(w), x[0], x[1]) }
}

func same(g *gen, w int, x []val) val { return x[0] }

func rounding(mode byte) emitters {
	return emitters{f: func(g *gen, w int, x []val) val {
		return g.op1i(by(w, x64.ROUNDPS, x64.ROUNDPD), g.vl(w), x[0], mode)
	}, i: same, bytes: sameByte, words: sameByte}
}

func compare(f, i byte, b maskOp, bytes, words byteOp) emitters {
	return emitters{
		f:         func(g *gen, w int, x []val) val { return g.cmpF(w, f, x[0], x[1]) },
		i:         func(g *gen, w int, x []val) val { return g.cmpI(w, i, x[0], x[1]) },
		b:         b,
		bytes:     bytes,
		words:     words,
		predicate: true,
	}
}

// logical is an op on what is not 0.
func logical(b func(g *gen, x, y val) val, bytes byteOp) emitters {
	return emitters{
		f: func(g *gen, w int, x []val) val {
			zero := g.konst(w, 0)
			return b(g, g.cmpF(w, cmpNE, x[0], zero), g.cmpF(w, cmpNE, x[1], zero))
		},
		i:         func(g *gen, w int, x []val) val { return b(g, g.nonZero(w, x[0]), g.nonZero(w, x[1])) },
		b:         func(g *gen, x []val) val { return b(g, x[0], x[1]) },
		bytes:     bytes,
		predicate: true,
	}
}

// classify is a test whose answer on integers is known.
func classify(f wordOp, onInts bool) emitters {
	all, bytes := func(g *gen) val { return g.constMask(onInts) }, neverByte
	if onInts {
		bytes = notOf(neverByte)
	}
	return emitters{
		f: f, i: func(g *gen, _ int, _ []val) val { return all(g) }, b: func(g *gen, _ []val) val { return all(g) },
		bytes: bytes, predicate: true,
	}
}

func onMasks(f func(g *gen, a, b val) val) maskOp {
	return func(g *gen, x []val) val { return f(g, x[0], x[1]) }
}

func init() {
	and, or, xor := onMasks((*gen).and), onMasks((*gen).or), onMasks((*gen).xor)
	notB := func(g *gen, x []val) val { return g.not(x[0]) }
	less := func(g *gen, x []val) val { return g.andNot(x[1], x[0]) }
	greater := func(g *gen, x []val) val { return g.andNot(x[0], x[1]) }
	keep := func(g *gen, x []val) val { return x[0] }
	table = map[ir.Op]emitters{
		aten.Add: {f: two(x64.ADDPS, x64.ADDPD), i: two(x64.PADDD, x64.PADDQ), b: or,
			bytes: unlessBools(inBytes(x64.PADDB), inBytes(x64.PORD)), words: inBytes(x64.PADDW), wrap: true},
		aten.Sub:        {f: two(x64.SUBPS, x64.SUBPD), i: two(x64.PSUBD, x64.PSUBQ), bytes: inBytes(x64.PSUBB), words: inBytes(x64.PSUBW), wrap: true},
		aten.Mul:        {f: two(x64.MULPS, x64.MULPD), i: mulInt, b: and, bytes: unlessBools(mulBytes, inBytes(x64.PANDD)), words: inBytes(x64.PMULLW), wrap: true},
		aten.Div:        {f: two(x64.DIVPS, x64.DIVPD)},
		aten.Maximum:    {f: extremum(x64.MAXPS, x64.MAXPD), i: maxInt, b: or, bytes: greatestByte, words: inBytes(x64.PMAXSW)},
		aten.Minimum:    {f: extremum(x64.MINPS, x64.MINPD), i: minInt, b: and, bytes: leastByte, words: inBytes(x64.PMINSW)},
		aten.Sqrt:       {f: sqrt},
		aten.Reciprocal: {f: func(g *gen, w int, x []val) val { return g.div(w, g.num(w, 1), x[0]) }},
		aten.Rsqrt:      {f: rsqrt},
		aten.Neg: {f: func(g *gen, w int, x []val) val {
			return g.op2(by(w, x64.PXORD, x64.PXORQ), g.vl(w), x[0], g.signBit(w))
		},
			i: func(g *gen, w int, x []val) val {
				return g.op2(by(w, x64.PSUBD, x64.PSUBQ), g.vl(w), g.konst(w, 0), x[0])
			}, bytes: negByte, words: withWord(swapped(inBytes(x64.PSUBW)), 0), halves: withWord(inBytes(x64.PXORD), wordSign), wrap: true},
		aten.Abs: {f: func(g *gen, w int, x []val) val { return g.abs(w, x[0]) }, i: absInt,
			bytes: ofSigned(absByte, sameByte), words: absWord, halves: withWord(inBytes(x64.PANDD), wordSign-1), wrap: true},
		aten.Sign: {f: signFloat, i: signInt, b: keep, bytes: unlessBools(signByte, sameByte), words: signWord},
		aten.Relu: {f: func(g *gen, w int, x []val) val {
			return g.op2(by(w, x64.MAXPS, x64.MAXPD), g.vl(w), g.konst(w, 0), x[0])
		}, i: reluInt, bytes: ofSigned(reluByte, sameByte), words: withWord(inBytes(x64.PMAXSW), 0)},
		aten.Floor: rounding(9), aten.Ceil: rounding(10), aten.Round: rounding(8), aten.Trunc: rounding(11),

		aten.Eq: compare(cmpEQ, intEQ, func(g *gen, x []val) val { return g.not(g.xor(x[0], x[1])) }, inBytes(x64.PCMPEQB), inBytes(x64.PCMPEQW)),
		aten.Ne: compare(cmpNE, intNE, xor, notOf(inBytes(x64.PCMPEQB)), notOf(inBytes(x64.PCMPEQW))),
		aten.Lt: compare(cmpLT, intLT, less, notOf(atLeastByte), swapped(inBytes(x64.PCMPGTW))),
		aten.Gt: compare(cmpGT, intGT, greater, swapped(notOf(atLeastByte)), inBytes(x64.PCMPGTW)),
		aten.Le: compare(cmpLE, intLE, func(g *gen, x []val) val { return g.or(x[1], g.not(x[0])) }, swapped(atLeastByte), notOf(inBytes(x64.PCMPGTW))),
		aten.Ge: compare(cmpGE, intGE, func(g *gen, x []val) val { return g.or(x[0], g.not(x[1])) }, atLeastByte, notOf(swapped(inBytes(x64.PCMPGTW)))),

		aten.LogicalAnd: logical((*gen).and, setBoth(x64.PANDD)), aten.LogicalOr: logical((*gen).or, anySetByte),
		aten.LogicalXor: logical((*gen).xor, setBoth(x64.PXORD)),
		aten.LogicalNot: {
			f: func(g *gen, w int, x []val) val { return g.cmpF(w, cmpEQ, x[0], g.konst(w, 0)) },
			i: func(g *gen, w int, x []val) val { return g.cmpI(w, intEQ, x[0], g.konst(w, 0)) }, b: notB, bytes: noneSetByte, predicate: true,
		},
		aten.BitwiseAnd: {i: two(x64.PANDD, x64.PANDQ), b: and, bytes: inBytes(x64.PANDD), words: inBytes(x64.PANDD)},
		aten.BitwiseOr:  {i: two(x64.PORD, x64.PORQ), b: or, bytes: inBytes(x64.PORD), words: inBytes(x64.PORD)},
		aten.BitwiseXor: {i: two(x64.PXORD, x64.PXORQ), b: xor, bytes: inBytes(x64.PXORD), words: inBytes(x64.PXORD)},
		aten.BitwiseNot: {i: func(g *gen, w int, x []val) val {
			return g.op2(by(w, x64.PXORD, x64.PXORQ), g.vl(w), x[0], g.konst(w, math.MaxUint64))
		}, b: notB, bytes: invertByte, words: invertByte, wrap: true},
		aten.BitwiseLeftShift:  {i: shiftLeft, bytes: shiftBytesLeft, wrap: true},
		aten.Gcd:               {i: gcdInt, wrap: true},
		aten.BitwiseRightShift: {i: shiftRight, bytes: shiftBytesRight},

		aten.Signbit: {
			f: func(g *gen, w int, x []val) val { return g.cmpI(w, intLT, x[0], g.konst(w, 0)) },
			i: func(g *gen, w int, x []val) val { return g.cmpI(w, intLT, x[0], g.konst(w, 0)) },
			b: func(g *gen, _ []val) val { return g.constMask(false) }, bytes: ofSigned(negativeByte, neverByte), words: negativeWord, halves: negativeWord, predicate: true,
		},
		aten.IsNaN: classify(func(g *gen, w int, x []val) val { return g.cmpF(w, cmpUNORD, x[0], x[0]) }, false),
		aten.IsInf: classify(func(g *gen, w int, x []val) val { return g.cmpF(w, cmpEQ, g.abs(w, x[0]), g.num(w, math.Inf(1))) }, false),
		aten.IsFinite: classify(func(g *gen, w int, x []val) val {
			return g.cmpF(w, cmpLT, g.abs(w, x[0]), g.num(w, math.Inf(1)))
		}, true),
	}
	maps.Copy(table, elementary())
	maps.Copy(table, rare())
	maps.Copy(table, trigonometric())
	maps.Copy(table, divisions())
}

// num returns a floating constant.
func (g *gen) num(w int, x float64) val {
	if w == 8 {
		return g.konst(8, math.Float64bits(x))
	}
	return g.konst(4, uint64(math.Float32bits(float32(x))))
}

func (g *gen) signBit(w int) val { return g.konst(w, 1<<(8*w-1)) }

// trunc is x without its fraction.
func (g *gen) trunc(w int, x val) val {
	return g.op1i(by(w, x64.ROUNDPS, x64.ROUNDPD), g.vl(w), x, 11)
}

func (g *gen) div(w int, a, b val) val { return g.op2(by(w, x64.DIVPS, x64.DIVPD), g.vl(w), a, b) }

func (g *gen) abs(w int, x val) val {
	return g.op2(by(w, x64.PANDD, x64.PANDQ), g.vl(w), x, g.konst(w, 1<<(8*w-1)-1))
}

// extremum is the maximum or the minimum. The instruction returns its second
// source if both are equal or one is NaN, so x comes second; what remains is that
// a NaN in y wins.
func extremum(four, eight x64.Op) wordOp {
	return func(g *gen, w int, x []val) val {
		m := g.op2(by(w, four, eight), g.vl(w), x[1], x[0])
		return g.blend(w, g.cmpF(w, cmpUNORD, x[1], x[1]), x[1], m)
	}
}

func mulInt(g *gen, w int, x []val) val {
	n := g.vl(w)
	if w == 4 || g.evex() {
		return g.op2(by(w, x64.PMULLD, x64.PMULLQ), n, x[0], x[1])
	}
	// (a·2³² + b)(c·2³² + d) = (ad + bc)·2³² + bd, modulo 2⁶⁴.
	ad := g.op2(x64.PMULUDQ, n, g.op1i(x64.PSRLQ, n, x[0], 32), x[1])
	bc := g.op2(x64.PMULUDQ, n, g.op1i(x64.PSRLQ, n, x[1], 32), x[0])
	bd := g.op2(x64.PMULUDQ, n, x[0], x[1])
	return g.op2(x64.PADDQ, n, bd, g.op1i(x64.PSLLQ, n, g.op2(x64.PADDQ, n, ad, bc), 32))
}

func maxInt(g *gen, w int, x []val) val {
	if w == 8 && !g.evex() {
		return g.blend(8, g.cmpI(8, intGT, x[0], x[1]), x[0], x[1])
	}
	return g.op2(by(w, x64.PMAXSD, x64.PMAXSQ), g.vl(w), x[0], x[1])
}

func minInt(g *gen, w int, x []val) val {
	if w == 8 && !g.evex() {
		return g.blend(8, g.cmpI(8, intGT, x[0], x[1]), x[1], x[0])
	}
	return g.op2(by(w, x64.PMINSD, x64.PMINSQ), g.vl(w), x[0], x[1])
}

func reluInt(g *gen, w int, x []val) val { return maxInt(g, w, []val{x[0], g.konst(w, 0)}) }

func absInt(g *gen, w int, x []val) val {
	if w == 8 && !g.evex() {
		neg := g.op2(x64.PSUBQ, g.vl(8), g.konst(8, 0), x[0])
		return g.blend(8, g.cmpI(8, intGT, g.konst(8, 0), x[0]), neg, x[0])
	}
	return g.op1(by(w, x64.PABSD, x64.PABSQ), g.vl(w), x[0])
}

func signFloat(g *gen, w int, x []val) val {
	zero := g.konst(w, 0)
	one, minus := g.num(w, 1), g.num(w, -1)
	neg := g.blend(w, g.cmpF(w, cmpLT, x[0], zero), minus, zero)
	return g.blend(w, g.cmpF(w, cmpGT, x[0], zero), one, neg)
}

func signInt(g *gen, w int, x []val) val {
	return maxInt(g, w, []val{minInt(g, w, []val{x[0], g.konst(w, 1)}), g.konst(w, math.MaxUint64)})
}

// shiftLeft: the instruction gives 0 for counts that are not below the width, and
// negative ones are very large to it.
func shiftLeft(g *gen, w int, x []val) val {
	return g.op2(by(w, x64.PSLLVD, x64.PSLLVQ), g.vl(w), x[0], x[1])
}

func shiftRight(g *gen, w int, x []val) val {
	n := g.vl(w)
	if w == 4 || g.evex() {
		return g.op2(by(w, x64.PSRAVD, x64.PSRAVQ), n, x[0], x[1])
	}
	// With the sign's bits inverted before and after, a logical shift fills with
	// the sign.
	sign := g.op2(x64.PCMPGTQ, n, g.konst(8, 0), x[0])
	return g.op2(x64.PXORQ, n, g.op2(x64.PSRLVQ, n, g.op2(x64.PXORQ, n, x[0], sign), x[1]), sign)
}
