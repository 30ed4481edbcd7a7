package native

import (
	"math"
	"math/big"

	"github.com/loris-ml/loris/internal/native/a64"
	"github.com/loris-ml/loris/internal/native/x64"
	"github.com/loris-ml/loris/internal/twooverpi"
)

// Sine, cosine and tangent of f64: x = q·π/2 + r, and r is the sum of two floats. Up to 2³⁶ q is a
// product with 2/π: x less q times the first part of π/2 is exact, and two more parts leave an error
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

func (g *gen) sin64(x val) val {
	a := g.angle64(x)
	return g.tiny(x, g.sinOf64(a, a.q))
}

func (g *gen) cos64(x val) val {
	a := g.angle64(x)
	return g.sinOf64(a, g.next(a.q))
}

func (g *gen) tan64(x val) val {
	a := g.angle64(x)
	return g.tiny(x, g.div(8, g.sinOf64(a, a.q), g.sinOf64(a, g.next(a.q))))
}

// tiny is x where it is so small that it is its sine and tangent, -0 among them, and y elsewhere.
func (g *gen) tiny(x, y val) val {
	return g.blend(8, g.cmpF(8, cmpLT, g.abs(8, x), g.num(8, 0x1p-30)), x, y)
}

func (g *gen) next(q val) val { return g.op2(x64.PADDQ, g.vl(8), q, g.konst(8, 1)) }

// angle is r and rest, whose sum is within π/4, and the quadrant q, in the low bits.
type angle struct{ r, rest, q val }

// sinOf64 is sin(r + rest + q·π/2).
func (g *gen) sinOf64(a angle, q val) val {
	const w = 8
	n := g.vl(8)
	z := g.mulF(w, a.r, a.r)
	// sin: r - ((z·(rest/2 - v·P) - rest) - v·p₀), v = z·r.
	v := g.mulF(w, z, a.r)
	s := g.subMul(w, g.half(a.rest), v, g.poly(w, z, sinP[1:]))
	s = g.subF(w, g.mulF(w, s, z), a.rest)
	s = g.subF(w, a.r, g.subMul(w, s, v, g.num(w, sinP[0])))
	// cos: u + (((1 - u) - z/2) + (z²·P - r·rest)), u = 1 - z/2.
	one, h := g.num(w, 1), g.half(z)
	u := g.subF(w, one, h)
	c := g.subMul(w, g.mulF(w, g.poly(w, z, cosP), g.mulF(w, z, z)), a.r, a.rest)
	c = g.addF(w, u, g.addF(w, g.subF(w, g.subF(w, one, u), h), c))
	odd := g.nonZero(w, g.op2(x64.PANDQ, n, q, g.konst(w, 1)))
	y := g.blend(w, odd, c, s)
	// Bit 1 of q becomes the sign.
	sign := g.op2(x64.PANDQ, n, g.op1i(x64.PSLLQ, n, q, 62), g.signBit(w))
	return g.op2(x64.PXORQ, n, y, sign)
}

// angle64 reduces x.
func (g *gen) angle64(x val) angle {
	const w = 8
	n := g.vl(8)
	magic := g.num(w, f64.magic)
	q := g.mulAdd(w, x, g.num(w, 2/math.Pi), magic)
	k := g.subF(w, q, magic)
	first := g.subMul(w, x, k, g.num(w, halfPi[0])) // exact
	t := g.mulF(w, k, g.num(w, halfPi[1]))
	r := g.subF(w, first, t)
	// What is lost of t and of the difference, and the third part.
	lost := g.fma(x64.FMSUB213PD, n, k, g.num(w, halfPi[1]), t)
	back := g.subF(w, r, first)
	rest := g.subF(w, g.subF(w, first, g.subF(w, r, back)), g.addF(w, t, back))
	rest = g.subMul(w, g.subF(w, rest, lost), k, g.num(w, halfPi[2]))
	sum := g.addF(w, r, rest)
	rest = g.subF(w, rest, g.subF(w, sum, r))
	abs := g.abs(w, x)
	huge := g.and(g.cmpF(w, cmpGE, abs, g.num(w, trigMost64)), g.cmpF(w, cmpLT, abs, g.num(w, math.Inf(1))))
	return g.eachHuge64(n, huge, x, angle{sum, rest, q})
}

// hugeSlots is where the lanes of angles lie while they are done one by one: x, the results, where the
// mask is set, and what is between.
type hugeSlots struct{ x, r, rest, q, mask, between int32 }

// eachHuge64 replaces the angles of the lanes of a mask, which are done one by one.
func (g *gen) eachHuge64(n uint8, huge, x val, a angle) angle {
	s := hugeSlots{g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot()}
	keep := [3]int32{g.newSlot(), g.newSlot(), g.newSlot()}
	slot := func(s int32) addr { return g.addr(place{arg: -1, mem: inSpill(s)}) }
	for _, v := range []struct {
		v  val
		at int32
	}{{x, s.x}, {a.r, s.r}, {a.rest, s.rest}, {a.q, s.q}, {g.pick(huge, 8, 1), s.mask}} {
		g.add(vop{op: x64.MOVUPSst, len: n, b: v.v, mem: slot(v.at), store: true})
	}
	bits := func(x float64) int { return int(math.Float64bits(x)) }
	// In pairs, as the instructions read them.
	table := g.poolVal(poolKey{w: 8, name: "digits of 2/π"}, func(b []byte) []byte {
		for _, c := range []float64{0x1p-64, 0x1p-116, halfPi[0], halfPi[1]} {
			b = appendBits(appendBits(b, 8, uint64(bits(c))), 8, uint64(bits(c)))
		}
		return append(b, digits...)
	})
	g.scalar(func() { g.hugeLanes64(int(n)/8, s, keep, g.vals[table].lbl) })
	load := func(at int32) val { return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: slot(at)}) }
	return angle{load(s.r), load(s.rest), load(s.q)}
}

// hugeLanes64 emits the test whether there are such lanes, and a loop over them.
func (g *gen) hugeLanes64(lanes int, s hugeSlots, keep [3]int32, table x64.Label) {
	g.onLanes64(lanes, s.mask, keep, func(at func(int32) x64.Mem) {
		g.hugeProduct(s, at, table)
		g.hugeAngle(s, at, table)
	})
}

// onLanes64 emits a test whether a mask in memory has a lane of f64, and code for each that it has,
// which finds a lane's element of a slot by at. The registers of kept are free, and saved in slots.
func (g *gen) onLanes64(lanes int, mask int32, keep [3]int32, one func(at func(slot int32) x64.Mem)) {
	a := g.asm
	none := a.Label()
	a.MovLoad(x64.RAX, inSpill(mask))
	for i := 1; i < lanes; i++ {
		a.ArithLoad(x64.Or, x64.RAX, inSpill(mask+int32(8*i)))
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
		a.MovLoad(x64.RAX, at(mask))
		a.ArithImm(x64.Cmp, x64.RAX, 0)
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
// quadrants. It leaves those in q, rounded to the nearest, the magnitude of the rest of 128 bits in R8
// and between, in units of 2⁻¹²⁸ quadrants, and the sign of the angle in RBX.
func (g *gen) hugeProduct(s hugeSlots, at func(int32) x64.Mem, table x64.Label) {
	a := g.asm
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
	a.MovImm(x64.RAX, 1)
	a.ShiftImm(x64.Shl, x64.RAX, 61)
	a.Arith(x64.Add, x64.RAX, x64.R8)
	a.ShiftImm(x64.Shr, x64.RAX, 62)
	positive := a.Label()
	a.MovLoad(x64.RBX, at(s.x))
	a.ArithImm(x64.Cmp, x64.RBX, 0)
	a.JumpIf(x64.GreatEq, positive)
	a.Neg(x64.RAX)
	a.Bind(positive)
	a.MovStore(at(s.q), x64.RAX)
	a.Mov(x64.RAX, x64.RDX)
	a.ShiftImm(x64.Shr, x64.RAX, 62)
	a.ShiftImm(x64.Shl, x64.RDX, 2)
	a.ShiftImm(x64.Shl, x64.R8, 2)
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
	digitsAt  = 64
)

// hugeAngle turns what hugeProduct leaves into radians: a float of the 53 highest bits and one of
// those behind, times π/2 in two parts.
func (g *gen) hugeAngle(s hugeSlots, at func(int32) x64.Mem, table x64.Label) {
	a := g.asm
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
	vec(x64.MULPD, low, low, x64.At(x64.RAX, halfPiAt))
	vec(x64.FMADD231PD, low, high, x64.At(x64.RAX, halfPiAt+16))
	vec(x64.MULPD, product, high, x64.At(x64.RAX, halfPiAt))
	vec(x64.MOVSDst, product, x64.NoReg, at(s.r))
	vec(x64.FNMADD231PD, product, high, x64.At(x64.RAX, halfPiAt)) // less the exact product
	a.Vec(x64.Inst{Op: x64.SUBPD, Len: 16, Reg: low, V: low, RM: product})
	vec(x64.MOVSDst, low, x64.NoReg, at(s.rest))
	a.ArithStore(x64.Xor, at(s.r), x64.RBX)
	a.ArithStore(x64.Xor, at(s.rest), x64.RBX)
}
