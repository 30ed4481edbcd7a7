package native

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Lanes of a byte (packed.go) are four times as many as those of other kernels with AVX2. Integers wrap by themselves then. Bools are masks: lanes that are all ones or zeros, which compare like unsigned
// integers.

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

func absByte(g *gen, _ ir.DType, x []val) val { return g.op1(x64.PABSB, vectorBytes, x[0]) }

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

// bytewise reports whether all that a kernel computes has a form in lanes of a byte.
func bytewise(k *loop.Kernel) bool {
	one := func(d ir.DType) bool { return d == ir.U8 || d == ir.I8 || d == ir.Bool }
	for i := range k.Args {
		if !one(k.Args[i].DType) {
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

func (g *gen) onBytes(op x64.Op, a, b val) val { return g.op2(op, vectorBytes, a, b) }

// blendBytes is x where the mask is set, and y elsewhere.
func (g *gen) blendBytes(m, x, y val) val {
	return g.add(vop{op: x64.PBLENDVB, len: vectorBytes, dst: g.temp(vectorBytes), a: y, b: x, c: m})
}

func (g *gen) notBytes(x val) val { return g.onBytes(x64.PXORD, x, g.konst(g.packed, math.MaxUint64)) }

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
	const n = vectorBytes
	even := g.onBytes(x64.PANDD, g.onBytes(x64.PMULLW, x[0], x[1]), g.lowBytes())
	odd := g.onBytes(x64.PMULLW, g.op1i(x64.PSRLW, n, x[0], 8), g.op1i(x64.PSRLW, n, x[1], 8))
	return g.onBytes(x64.PORD, even, g.op1i(x64.PSLLW, n, odd, 8))
}

// lowBytes has the bits of the even bytes.
func (g *gen) lowBytes() val {
	return g.poolVal(poolKey{w: 2, name: "low bytes of words"}, func(b []byte) []byte {
		for range vectorBytes / 2 {
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

// powersOfTwo returns 2ⁱ for each byte of a table, by the bytes of exponents, and 0 for those that it has not.
func (g *gen) powersOfTwo(name string, exponents val, table ...byte) val {
	powers := g.poolVal(poolKey{w: 1, name: name}, func(b []byte) []byte {
		for range vectorBytes / 16 {
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
	const n = vectorBytes
	upper := g.powersOfTwo("bytes shifted right", count, 0, 128, 64, 32, 16, 8, 4, 2)
	low := g.lowBytes()
	even := g.op1i(x64.PSRLW, n, g.onBytes(x64.PMULLW, g.onBytes(x64.PANDD, x, low), g.onBytes(x64.PANDD, upper, low)), 8)
	odd := g.onBytes(x64.PMULLW, g.op1i(x64.PSRLW, n, x, 8), g.op1i(x64.PSRLW, n, upper, 8))
	shifted := g.onBytes(x64.PORD, even, g.onBytes(x64.PANDND, low, odd))
	return g.blendBytes(g.onBytes(x64.PCMPEQB, count, g.konst(1, 0)), x, shifted)
}
