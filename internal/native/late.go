package native

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// lateRounds returns which Rounds are left to the Stores that alone use them: a Store rounds what it gets.
func lateRounds(k *loop.Kernel) []bool {
	late := make([]bool, len(k.Instrs))
	for v := range k.Instrs {
		late[v] = k.Instrs[v].Code == loop.Round
	}
	for u := range k.Instrs {
		in := &k.Instrs[u]
		for _, v := range in.In[:in.N] {
			late[v] = late[v] && in.Code == loop.Store && k.Args[in.Arg].DType == k.Instrs[v].DType
		}
	}
	return late
}

// numbersOf returns which f32s are known to be numbers that a 16-bit float has.
func numbersOf(k *loop.Kernel, d ir.DType) []bool {
	of := make([]bool, len(k.Instrs))
	for v := range k.Instrs {
		switch in := &k.Instrs[v]; in.Code {
		case loop.Load:
			of[v] = k.Args[in.Arg].DType == d
		case loop.Round:
			of[v] = in.DType == d
		case loop.Const:
			x := float64(math.Float32frombits(uint32(in.Bits)))
			of[v] = in.DType == ir.F32 && ir.RoundFloat(d, x) == x
		case loop.Apply:
			of[v] = in.DType == ir.F32 && exact(k, in, of)
		}
	}
	return of
}

// exact reports whether a float has no more bits than the operands that are known to be 16-bit floats, or bytes.
func exact(k *loop.Kernel, in *loop.Instr, of []bool) bool {
	if in.Op == aten.Cast {
		from := k.Instrs[in.In[0]].Result()
		return from.IsIntegral() && from.Size() == 1
	}
	if !in.Op.Spec().Exact {
		return false
	}
	for i, v := range in.In[:in.N] {
		if !of[v] && !(in.Op == aten.Where && i == 0) {
			return false
		}
	}
	return true
}

// narrowQuotients returns which values are divisions of numbers that a 16-bit float has, which one it is, and whose
// quotients nothing but Rounds to it look at.
func narrowQuotients(k *loop.Kernel) []ir.DType {
	of := make([]ir.DType, len(k.Instrs))
	for _, d := range []ir.DType{ir.F16, ir.BF16} {
		var numbers []bool
		for v := range k.Instrs {
			in := &k.Instrs[v]
			if in.Code != loop.Apply || in.Op != aten.Div || in.DType != ir.F32 {
				continue
			}
			if numbers == nil {
				numbers = numbersOf(k, d)
			}
			if numbers[in.In[0]] && numbers[in.In[1]] {
				of[v] = d
			}
		}
	}
	for u := range k.Instrs {
		in := &k.Instrs[u]
		for _, v := range in.In[:in.N] {
			if in.Code != loop.Round || in.DType != of[v] {
				of[v] = ir.Invalid
			}
		}
	}
	return of
}
