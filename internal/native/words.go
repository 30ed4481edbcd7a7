package native

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Lanes of a word (packed.go) have integers of 16 bits, which wrap by themselves, or the bits of 16-bit floats, of which
// only the sign is told and changed. What compares is a mask of words. The emitters are byteOps.

const (
	wordSign = 1 << 15
	wordOnes = 1<<16 - 1
)

// withWord is f with a second operand that is always the same.
func withWord(f byteOp, bits uint64) byteOp {
	return func(g *gen, d ir.DType, x []val) val { return f(g, d, []val{x[0], g.konst(2, bits)}) }
}

var negativeWord = withWord(swapped(inBytes(x64.PCMPGTW)), 0)

func absWord(g *gen, _ ir.DType, x []val) val { return g.op1(x64.PABSW, vectorBytes, x[0]) }

func signWord(g *gen, d ir.DType, x []val) val {
	least := withWord(inBytes(x64.PMINSW), 1)(g, d, x)
	return withWord(inBytes(x64.PMAXSW), wordOnes)(g, d, []val{least})
}

// wordwise reports whether all that a kernel computes has a form in lanes of a word.
func wordwise(k *loop.Kernel) bool {
	d := k.Args[0].DType
	if d != ir.I16 && d != ir.F16 && d != ir.BF16 {
		return false
	}
	for i := range k.Args {
		if k.Args[i].DType != d {
			return false
		}
	}
	for i := range k.Instrs {
		in := &k.Instrs[i]
		switch in.Code {
		case loop.Load, loop.Store, loop.Round:
		case loop.Const:
			if _, ok := wordOf(in, d); !ok {
				return false
			}
		case loop.Apply:
			of := k.Instrs[in.In[in.N-1]].Result()
			if of != loop.ComputeDType(d) || in.Op != aten.Where && wordForm(in.Op, of) == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// wordForm returns the form of an op on values of a dtype.
func wordForm(op ir.Op, d ir.DType) byteOp {
	if d == ir.I16 {
		return table[op].words
	}
	return table[op].halves
}

// wordOf returns the bits of a constant of a kernel of 16-bit elements; not ok if it has none.
func wordOf(in *loop.Instr, d ir.DType) (bits uint64, ok bool) {
	x := math.Float32frombits(uint32(in.Bits))
	switch {
	case in.DType == ir.I16:
		return in.Bits & wordOnes, d == ir.I16
	case in.DType != ir.F32:
		return 0, false
	case d == ir.F16:
		b := half.F32ToF16(x)
		return uint64(b), half.F16ToF32(b) == x
	}
	b := half.F32ToBF16(x)
	return uint64(b), half.BF16ToF32(b) == x
}

// applyWords is apply in lanes of a word.
func (g *gen) applyWords(in *loop.Instr, d ir.DType, x []val) val {
	if in.Op == aten.Where {
		return g.blendBytes(x[0], x[1], x[2])
	}
	return wordForm(in.Op, d)(g, d, x)
}
