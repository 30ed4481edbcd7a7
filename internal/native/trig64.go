package native

import (
	"math"
	"math/big"

	"github.com/loris-ml/loris/internal/native/a64"
	"github.com/loris-ml/loris/internal/native/x64"
	"github.com/loris-ml/loris/internal/twooverpi"
)

// Sine, cosine and tangent of f64: x = q·π/2 + r, or q·π + r of sines, and r is the sum of two floats. Up to 2³⁶ q
// is a product with 2/π: x less q times the first part of π/2 is exact, and two more parts leave an error
// far below r's second float, of whichever x r is smallest. Lanes beyond are rare; they are done one by
// one in integers, with the 190 bits of 2/π behind the point that moves with x's exponent.

// halfPi is π/2 in three parts.
var halfPi = [3]float64{math.Pi / 2, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}

const (
	// trigMost64 is where lanes are done one by one.
	trigMost64 = 0x1p36
	// digitsRow is the bytes of a row of digits of 2/π, digitsZeros the zeros before the first.
	digitsRow   = 152
	digitsZeros = 32
)

// digits is the bits of 2/π behind zeros, eight times, row s from bit s on. Bytes of a row come from
// the last to the first, so that words of it are read in the processor's order.
var digits = func() (table []byte) {
	bits := twooverpi.Int()
	have := 64*len(twooverpi.Words) + digitsZeros
	for s := range 8 {
		row := new(big.Int).Rsh(bits, uint(have-s-8*digitsRow)).FillBytes(make([]byte, digitsRow+1))[1:]
		for i := range row {
			table = append(table, row[len(row)-1-i])
		}
	}
	return table
}()

// turns is what angles are counted in: quadrants, or halves from 0 or from -π/2 on, of which one polynomial is
// the sine.
type turns int

const (
	quadrants turns = iota
	halves
	shiftedHalves
)

func (g *gen) sin64(x val) val {
	a := g.angle64(x, halves)
	return g.tiny(x, g.sinOfHalves(a))
}

func (g *gen) cos64(x val) val { return g.sinOfHalves(g.angle64(x, shiftedHalves)) }

func (g *gen) tan64(x val) val {
	a := g.angle64(x, quadrants)
	s, c := g.sinCos64(a)
	return g.tiny(x, g.tangent(8, s, c, a.q))
}

// tiny is x where it is so small that it is its sine and tangent, -0 among them, and y elsewhere.
func (g *gen) tiny(x, y val) val {
	return g.blend(8, g.cmpF(8, cmpLT, g.abs(8, x), g.num(8, 0x1p-30)), x, y)
}

// angle is r and rest, whose sum is within half a turn of those that q counts, in its low bits.
type angle struct{ r, rest, q val }

// sinTail is (sin √z - √z)/√z³ for z up to π²/4.
var sinTail = []float64{-0.16666666666666666, 0.008333333333333194, -0.00019841269841209224, 2.755731921113772e-06,
	-2.5052106872827373e-08, 1.6058939706575049e-10, -7.642991495790375e-13, 2.7211749445155667e-15}

// sinOfHalves is the sine of r + rest, negative where q is odd.
func (g *gen) sinOfHalves(a angle) val {
	n := g.vl(8)
	y := g.sineOf(a, g.mulF(8, a.r, a.r), sinTail)
	return g.op2(x64.PXORQ, n, y, g.op1i(x64.PSLLQ, n, a.q, 63))
}

// sineOf is r - ((z·(rest/2 - v·P) - rest) - v·p₀), v = z·r, z = r².
func (g *gen) sineOf(a angle, z val, p []float64) val {
	const w = 8
	v := g.mulF(w, z, a.r)
	s := g.subMul(w, g.half(a.rest), v, g.poly(w, z, p[1:]))
	s = g.fma(x64.FMSUB213PD, g.vl(w), s, z, a.rest)
	return g.subF(w, a.r, g.subMul(w, s, v, g.num(w, p[0])))
}

// sinCos64 returns the sine and the cosine of r + rest, at most π/4.
func (g *gen) sinCos64(a angle) (s, c val) {
	const w = 8
	z := g.mulF(w, a.r, a.r)
	// cos: u + (((1 - u) - z/2) + (z²·P - r·rest)), u = 1 - z/2.
	one, h := g.num(w, 1), g.half(z)
	u := g.subF(w, one, h)
	c = g.subMul(w, g.mulF(w, g.poly(w, z, cosP), g.mulF(w, z, z)), a.r, a.rest)
	return g.sineOf(a, z, sinP), g.addF(w, u, g.addF(w, g.subF(w, g.subF(w, one, u), h), c))
}

// angle64 reduces x.
func (g *gen) angle64(x val, by turns) angle {
	const w = 8
	n := g.vl(8)
	magic, scale := g.num(w, f64.magic), 1.0
	if by != quadrants {
		scale = 2
	}
	var q, k val
	if by == shiftedHalves {
		half := g.num(w, 0.5)
		q = g.addF(w, g.mulAdd(w, x, g.num(w, 1/math.Pi), half), magic)
		k = g.subF(w, g.subF(w, q, magic), half)
	} else {
		q = g.mulAdd(w, x, g.num(w, 2/math.Pi/scale), magic)
		k = g.subF(w, q, magic)
	}
	second := g.num(w, scale*halfPi[1])
	first := g.subMul(w, x, k, g.num(w, scale*halfPi[0])) // exact, or next to an extremum
	t := g.mulF(w, k, second)
	r := g.subF(w, first, t)
	// What is lost of t and of the difference, and the third part.
	lost := g.fma(x64.FMSUB213PD, n, k, second, t)
	back := g.subF(w, r, first)
	rest := g.subF(w, g.subF(w, first, g.subF(w, r, back)), g.addF(w, t, back))
	rest = g.subMul(w, g.subF(w, rest, lost), k, g.num(w, scale*halfPi[2]))
	sum := g.addF(w, r, rest)
	rest = g.subF(w, rest, g.subF(w, sum, r))
	abs := g.abs(w, x)
	huge := g.and(g.cmpF(w, cmpGE, abs, g.num(w, trigMost64)), g.cmpF(w, cmpLT, abs, g.num(w, math.Inf(1))))
	return g.eachHuge64(n, huge, x, angle{sum, rest, q}, by)
}

// hugeSlots is where the lanes of angles lie while they are done one by one: x, the results, where the
// mask is set, and what is between.
type hugeSlots struct{ x, r, rest, q, mask, between int32 }

// eachHuge64 replaces the angles of the lanes of a mask, which are done one by one.
func (g *gen) eachHuge64(n uint8, huge, x val, a angle, by turns) angle {
	s := hugeSlots{g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot()}
	keep := [3]int32{g.newSlot(), g.newSlot(), g.newSlot()}
	g.add(vop{op: x64.MOVUPSst, len: n, b: x, mem: g.slot(s.x), store: true})
	g.storeLanes64(huge, n, g.slot(s.mask))
	bits := func(x float64) int { return int(math.Float64bits(x)) }
	// In pairs, as the instructions read them.
	table := g.poolVal(poolKey{w: 8, name: "digits of 2/π"}, func(b []byte) []byte {
		for _, c := range []float64{0x1p-64, 0x1p-116, halfPi[0], halfPi[1], 2 * halfPi[0], 2 * halfPi[1]} {
			b = appendBits(appendBits(b, 8, uint64(bits(c))), 8, uint64(bits(c)))
		}
		return append(b, digits...)
	})
	lbl := g.vals[table].lbl
	g.scalar(func() {
		g.onLanes64(int(n)/8, s.mask, keep, func(at func(int32) x64.Mem) {
			g.hugeProduct(s, at, lbl, by)
			g.hugeAngle(s, at, lbl, by)
		})
	})
	// Where no lane is huge the slots have something else, of which no lane is taken.
	load := func(at int32, or val) val {
		return g.blend(8, huge, g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.slot(at)}), or)
	}
	return angle{load(s.r, a.r), load(s.rest, a.rest), load(s.q, a.q)}
}

// storeLanes64 keeps a mask of lanes of f64 for onLanes64.
func (g *gen) storeLanes64(mask val, n uint8, at addr) {
	if g.evex() {
		g.add(vop{op: x64.KMOVWst, len: 16, b: mask, mem: at, store: true})
		return
	}
	g.add(vop{op: x64.MOVUPSst, len: n, b: g.pick(mask, 8, 1), mem: at, store: true})
}

// onLanes64 emits a test whether a mask that storeLanes64 kept has a lane, and code for each that it has,
// which finds a lane's element of a slot by at. The registers of kept are free, and saved in slots.
func (g *gen) onLanes64(lanes int, mask int32, keep [3]int32, one func(at func(slot int32) x64.Mem)) {
	a := g.asm
	none := a.Label()
	if g.evex() {
		a.LoadSize(x64.RAX, inSpill(mask), 2)
	} else {
		g.orWords(mask, uint8(8*lanes))
	}
	a.ArithImm(x64.Cmp, x64.RAX, 0)
	a.JumpIf(x64.Zero, none)
	whole := x64.Inst{Op: x64.MOVUPSst, Len: 32, V: x64.NoReg, EVEX: g.evex()}
	if g.evex() {
		whole.Len = 64
	}
	saved := func(op x64.Op) {
		for i, at := range keep {
			m := inSpill(at)
			whole.Op, whole.Reg, whole.Mem = op, g.kept(i), &m
			a.Vec(whole)
		}
	}
	saved(x64.MOVUPSst)
	for i := range lanes {
		next := a.Label()
		at := func(slot int32) x64.Mem { return inSpill(slot + int32(8*i)) }
		if g.evex() {
			a.LoadSize(x64.RAX, inSpill(mask), 2)
			a.ArithImm(x64.And, x64.RAX, 1<<i)
		} else {
			a.MovLoad(x64.RAX, at(mask))
			a.ArithImm(x64.Cmp, x64.RAX, 0)
		}
		a.JumpIf(x64.Zero, next)
		one(at)
		a.Bind(next)
	}
	saved(x64.MOVUPS)
	a.Bind(none)
}

// kept returns a register, of three, that scalar code saves and then uses.
func (g *gen) kept(i int) x64.Reg {
	if g.neon() {
		return x64.Reg(a64.Vectors - 3 + i)
	}
	return x64.Reg(13 + i)
}

// hugeProduct multiplies x = M·2ᵏ, M of 53 bits, by the 192 bits of 2/π of which the first two count
// quadrants, or the first halves. It leaves those in q, rounded to the nearest, the magnitude of the rest of 128 bits in R8
// and between, in units of 2⁻¹²⁸ quadrants, and the sign of the angle in RBX.
func (g *gen) hugeProduct(s hugeSlots, at func(int32) x64.Mem, table x64.Label, by turns) {
	a := g.asm
	count := byte(2) // the bits that count turns
	if by != quadrants {
		count = 1
	}
	a.MovLoad(x64.RBX, at(s.x))
	a.ShiftImm(x64.Shl, x64.RBX, 1)
	a.ShiftImm(x64.Shr, x64.RBX, 53)
	a.ArithImm(x64.Sub, x64.RBX, 1075+2-digitsZeros) // the position of the first bit
	a.MovImm(x64.RAX, 7)
	a.Arith(x64.And, x64.RAX, x64.RBX)
	a.MovImm(x64.R8, digitsRow)
	a.IMul(x64.RAX, x64.R8)
	a.ShiftImm(x64.Shr, x64.RBX, 3)
	a.Arith(x64.Sub, x64.RAX, x64.RBX)
	a.Lea(x64.RBX, x64.Mem{Index: x64.NoReg, Label: table})
	a.Arith(x64.Add, x64.RBX, x64.RAX)
	word := func(i int32) x64.Mem { return x64.At(x64.RBX, digitsAt+digitsRow-8*(i+1)) }
	a.MovLoad(x64.R8, at(s.x))
	a.ShiftImm(x64.Shl, x64.R8, 12)
	a.ShiftImm(x64.Shr, x64.R8, 12)
	a.MovImm(x64.RAX, 1)
	a.ShiftImm(x64.Shl, x64.RAX, 52)
	a.Arith(x64.Or, x64.R8, x64.RAX) // M
	carried := a.Label()
	a.Mov(x64.RAX, x64.R8)
	a.MulLoad(word(2))
	a.MovStore(at(s.rest), x64.RDX)
	a.Mov(x64.RAX, x64.R8)
	a.MulLoad(word(1))
	a.ArithLoad(x64.Add, x64.RAX, at(s.rest))
	a.JumpIf(x64.AboveEq, carried)
	a.ArithImm(x64.Add, x64.RDX, 1)
	a.Bind(carried)
	a.IMulLoad(x64.R8, word(0))
	a.Arith(x64.Add, x64.R8, x64.RDX)
	a.Mov(x64.RDX, x64.RAX) // R8:RDX is the product
	if by == shiftedHalves {
		a.MovImm(x64.RAX, 1)
		a.ShiftImm(x64.Shl, x64.RAX, 62)
		a.Arith(x64.Add, x64.R8, x64.RAX)
	}
	a.MovImm(x64.RAX, 1)
	a.ShiftImm(x64.Shl, x64.RAX, 63-count)
	a.Arith(x64.Add, x64.RAX, x64.R8)
	a.ShiftImm(x64.Shr, x64.RAX, 64-count)
	positive := a.Label()
	a.MovLoad(x64.RBX, at(s.x))
	a.ArithImm(x64.Cmp, x64.RBX, 0)
	a.JumpIf(x64.GreatEq, positive)
	a.Neg(x64.RAX)
	if by == shiftedHalves {
		a.ArithImm(x64.Add, x64.RAX, 1)
	}
	a.Bind(positive)
	a.MovStore(at(s.q), x64.RAX)
	a.Mov(x64.RAX, x64.RDX)
	a.ShiftImm(x64.Shr, x64.RAX, 64-count)
	a.ShiftImm(x64.Shl, x64.RDX, count)
	a.ShiftImm(x64.Shl, x64.R8, count)
	a.Arith(x64.Or, x64.R8, x64.RAX)
	a.Arith(x64.Xor, x64.RBX, x64.R8)
	a.ShiftImm(x64.Shr, x64.RBX, 63)
	a.ShiftImm(x64.Shl, x64.RBX, 63)
	magnitude := a.Label()
	a.ArithImm(x64.Cmp, x64.R8, 0)
	a.JumpIf(x64.GreatEq, magnitude)
	a.Neg(x64.R8)
	a.Neg(x64.RDX)
	a.ArithImm(x64.Cmp, x64.RDX, 0)
	a.JumpIf(x64.Zero, magnitude)
	a.ArithImm(x64.Sub, x64.R8, 1)
	a.Bind(magnitude)
	a.MovStore(at(s.between), x64.RDX)
}

// The constants before the digits of 2/π, two of each.
const (
	unit64At  = 0
	unit116At = 16
	halfPiAt  = 32
	piAt      = 64
	digitsAt  = 96
)

// hugeAngle turns what hugeProduct leaves into radians: a float of the 53 highest bits and one of
// those behind, times π/2 or π in two parts.
func (g *gen) hugeAngle(s hugeSlots, at func(int32) x64.Mem, table x64.Label, by turns) {
	a := g.asm
	turn := int32(halfPiAt)
	if by != quadrants {
		turn = piAt
	}
	a.MovLoad(x64.RDX, at(s.between))
	a.ShiftImm(x64.Shr, x64.RDX, 12)
	a.Mov(x64.RAX, x64.R8)
	a.ShiftImm(x64.Shl, x64.RAX, 53)
	a.ShiftImm(x64.Shr, x64.RAX, 1) // bits 62 to 52
	a.Arith(x64.Or, x64.RDX, x64.RAX)
	a.MovStore(at(s.between), x64.RDX)
	a.ShiftImm(x64.Shr, x64.R8, 11)
	a.ShiftImm(x64.Shl, x64.R8, 11)
	a.MovStore(at(s.r), x64.R8)
	a.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: table})
	high, low, product := g.kept(2), g.kept(1), g.kept(0)
	vec := func(op x64.Op, dst, x x64.Reg, m x64.Mem) {
		a.Vec(x64.Inst{Op: op, Len: 16, Reg: dst, V: x, Mem: &m})
	}
	vec(x64.CVTSI2SD, high, high, at(s.r))
	vec(x64.MULPD, high, high, x64.At(x64.RAX, unit64At))
	vec(x64.CVTSI2SD, low, low, at(s.between))
	vec(x64.MULPD, low, low, x64.At(x64.RAX, unit116At))
	vec(x64.MULPD, low, low, x64.At(x64.RAX, turn))
	vec(x64.FMADD231PD, low, high, x64.At(x64.RAX, turn+16))
	vec(x64.MULPD, product, high, x64.At(x64.RAX, turn))
	vec(x64.MOVSDst, product, x64.NoReg, at(s.r))
	vec(x64.FNMADD231PD, product, high, x64.At(x64.RAX, turn)) // less the exact product
	a.Vec(x64.Inst{Op: x64.SUBPD, Len: 16, Reg: low, V: low, RM: product})
	vec(x64.MOVSDst, low, x64.NoReg, at(s.rest))
	a.ArithStore(x64.Xor, at(s.r), x64.RBX)
	a.ArithStore(x64.Xor, at(s.rest), x64.RBX)
}
