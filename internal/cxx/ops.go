// Package cxx writes what fused loops compute as C++: the types, ops and reductions that CUDA's kernels
// (backend/cuda/internal/emit) and libraries that a compiler makes (aoti/export) have in common, and
// whole loops for processors. It is plain Go and needs no compiler.
package cxx

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// The definitions. Values come first; Ops need the functions of C's math.h under their names there,
// erfinv and erfinvf, INLINE (what functions begin with), __float_as_uint and the like as in CUDA, and
// atomicMax. Folds come behind Ops.
var (
	//go:embed values.h
	Values string
	//go:embed ops.h
	Ops string
	//go:embed folds.h
	Folds string
)

// names has the names of the ops that Ops defines.
var names = func() map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.FieldsFunc(Ops, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		if name, ok := strings.CutPrefix(word, "op_"); ok {
			all[name] = true
		}
	}
	return all
}()

// Lacks returns which op of an instruction has no definition, or nothing.
func Lacks(k *loop.Kernel, in *loop.Instr) string {
	switch in.Code {
	case loop.Reduce:
		from := k.Instrs[in.In[0]].Result()
		if (in.Op == aten.Amax || in.Op == aten.Amin) && from != in.DType {
			return fmt.Sprintf("%v of %v as %v", in.Op, from, in.DType)
		}
	case loop.Apply:
		if in.Op != aten.Cast && in.Op != aten.Where && !names[in.Op.String()] {
			return in.Op.String()
		}
		s := &in.Op.Spec().Scalar
		if from := k.Instrs[in.In[in.N-1]].Result(); from.IsFloat() && in.Op != aten.Cast && s.F1 == nil && s.F2 == nil && s.F3 == nil {
			return fmt.Sprintf("%v of %v", in.Op, from)
		}
	}
	return ""
}

// Stored returns the C++ type of an element in memory.
func Stored(d ir.DType) string {
	if d == ir.Bool {
		return "bool8"
	}
	return d.String()
}

// Computed returns the C++ type of a value.
func Computed(d ir.DType) string { return d.String() }

// Constant returns a literal for a Const.
func Constant(in *loop.Instr) string {
	switch in.DType {
	case ir.F32:
		x := float64(math.Float32frombits(uint32(in.Bits)))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Sprintf("__uint_as_float(%#xu)", uint32(in.Bits))
		}
		return decimal(x, 32) + "f"
	case ir.F64:
		x := math.Float64frombits(in.Bits)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Sprintf("__longlong_as_double((i64)%#xull)", in.Bits)
		}
		return decimal(x, 64)
	}
	v := ir.WrapInt(in.DType, int64(in.Bits))
	if in.DType == ir.Bool {
		return strconv.FormatBool(v != 0)
	}
	if v == math.MinInt64 {
		return "lowest<i64>()"
	}
	return fmt.Sprintf("(%s)%dll", Computed(in.DType), v)
}

// decimal returns a finite float with a point or an exponent.
func decimal(x float64, bits int) string {
	s := strconv.FormatFloat(x, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// cast returns the conversion of an expression between compute dtypes, as
// ir.FloatToInt, IntToFloat and WrapInt say.
func cast(from, to ir.DType, x string) string {
	switch {
	case from == to:
		return x
	case to == ir.Bool:
		return "(" + x + " != 0)"
	case from.IsFloat() && to.IsIntegral():
		switch to {
		case ir.I32:
			return "trunc32(" + x + ")"
		case ir.I64:
			return "trunc64(" + x + ")"
		case ir.U8:
			return "(u8)trunc64(" + x + ")"
		}
		return fmt.Sprintf("(%s)trunc32(%s)", Computed(to), x)
	}
	return fmt.Sprintf("(%s)%s", Computed(to), x)
}

// Apply returns the expression of value v, a pointwise op on operands of dtype from. fault is where the
// number of an instruction that divides by 0 is left.
func Apply(in *loop.Instr, v loop.Value, from ir.DType, x []string, fault string) string {
	switch in.Op {
	case aten.Cast:
		return cast(from, in.DType, x[0])
	case aten.Where:
		return fmt.Sprintf("op_where<%s>(%s)", Computed(in.DType), strings.Join(x, ", "))
	case aten.BitwiseNot:
		if from == ir.Bool {
			return "!" + x[0]
		}
	}
	if in.Op.Spec().Divides && !from.IsFloat() {
		x = append(x, fault, strconv.Itoa(int(v)+1))
	}
	call := fmt.Sprintf("op_%v(%s)", in.Op, strings.Join(x, ", "))
	switch {
	case in.Op.Spec().Predicate:
		return call
	case in.DType == ir.Bool:
		return call + " != 0"
	case in.DType == ir.U8 || in.DType == ir.I8 || in.DType == ir.I16:
		return fmt.Sprintf("(%s)%s", Computed(in.DType), call)
	}
	return call
}

// Fold is how a Reduce is accumulated: the type that says how, what an element
// gives it, and what is made of it in the end.
type Fold struct {
	Name string // of the type
	In   func(x, at string) string
	Out  func(a string) string
}

// wide returns the dtype in which integers are folded.
func wide(d ir.DType) ir.DType {
	if d.IsIntegral() && d != ir.I64 {
		return ir.I32
	}
	return d
}

// FoldOf returns how a Reduce of elements of a dtype is accumulated.
func FoldOf(in *loop.Instr, from ir.DType) Fold {
	d := in.DType
	f := Fold{
		In:  func(x, _ string) string { return cast(from, d, x) },
		Out: func(a string) string { return cast(wide(d), d, a) },
	}
	switch in.Op {
	case aten.Sum, aten.Prod:
		acc := wide(d)
		if d == ir.F32 {
			acc = ir.F64
			f.Out = func(a string) string { return "(f32)" + a }
		}
		f.Name = map[ir.Op]string{aten.Sum: "Sum", aten.Prod: "Prod"}[in.Op] + "<" + Computed(acc) + ">"
	case aten.Amax:
		f.Name = "Max<" + Computed(wide(d)) + ">"
	case aten.Amin:
		f.Name = "Min<" + Computed(wide(d)) + ">"
	case aten.Any:
		f.Name = "Any"
	case aten.All:
		f.Name = "All"
	case aten.Argmax, aten.Argmin:
		t := Computed(wide(from))
		f.Name = map[ir.Op]string{aten.Argmax: "ArgMax", aten.Argmin: "ArgMin"}[in.Op] + "<" + t + ">"
		f.In = func(x, at string) string { return fmt.Sprintf("{(%s)%s, %s}", t, x, at) }
		f.Out = func(a string) string { return cast(ir.I64, d, a+".at") }
	}
	return f
}
