package native

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// looseValues returns which values of narrow integers are not wrapped: those whose users look at no bits but the
// ones that the dtype has.
func looseValues(k *loop.Kernel) []bool {
	loose := make([]bool, len(k.Instrs))
	for v := range k.Instrs {
		d := k.Instrs[v].Result()
		loose[v] = isNarrow(d) && k.Instrs[v].Code == loop.Apply
	}
	// Users come behind what they use.
	for u := len(k.Instrs) - 1; u >= 0; u-- {
		in := &k.Instrs[u]
		for i, v := range in.In[:in.N] {
			loose[v] = loose[v] && lowBits(k, in, i, loose[u])
		}
	}
	return loose
}

// lowBits reports whether an instruction looks at the low bits of an operand alone, where its own result is loose
// or not.
func lowBits(k *loop.Kernel, in *loop.Instr, operand int, loose bool) bool {
	switch in.Code {
	case loop.Store:
		return true // cuts off the others
	case loop.Apply:
	default:
		return false
	}
	switch in.Op {
	case aten.Add, aten.Sub, aten.Mul, aten.Neg, aten.BitwiseNot:
		return true // wrapped itself, unless it is loose
	case aten.BitwiseAnd, aten.BitwiseOr, aten.BitwiseXor:
		return loose
	case aten.Where:
		return operand > 0 && loose
	case aten.Cast:
		from := k.Instrs[in.In[0]].Result()
		return from != in.DType && isNarrow(in.DType) && in.DType.Size() <= from.Size() || from == in.DType && loose
	}
	return false
}

func isNarrow(d ir.DType) bool { return d.IsInt() && d.Size() < 4 }
