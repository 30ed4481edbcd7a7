package emit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// ops has the names of the ops that ops.cuh defines.
var ops = func() map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.FieldsFunc(opsSource, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		if name, ok := strings.CutPrefix(word, "op_"); ok {
			all[name] = true
		}
	}
	return all
}()

// stored returns the C++ type of an element in memory.
func stored(d ir.DType) string {
	if d == ir.Bool {
		return "bool8"
	}
	return d.String()
}

// computed returns the C++ type of a value.
func computed(d ir.DType) string { return d.String() }

// constant returns a literal.
func constant(in *loop.Instr) string {
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
	return fmt.Sprintf("(%s)%dll", computed(in.DType), v)
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
		return fmt.Sprintf("(%s)trunc32(%s)", computed(to), x)
	}
	return fmt.Sprintf("(%s)%s", computed(to), x)
}

// apply returns the expression of a pointwise op.
func apply(in *loop.Instr, v loop.Value, from ir.DType, x []string) string {
	switch in.Op {
	case aten.Cast:
		return cast(from, in.DType, x[0])
	case aten.Where:
		return fmt.Sprintf("op_where<%s>(%s)", computed(in.DType), strings.Join(x, ", "))
	case aten.BitwiseNot:
		if from == ir.Bool {
			return "!" + x[0]
		}
	}
	if in.Op.Spec().Divides && !from.IsFloat() {
		x = append(x, "f.fault", strconv.Itoa(int(v)+1))
	}
	call := fmt.Sprintf("op_%v(%s)", in.Op, strings.Join(x, ", "))
	switch {
	case in.Op.Spec().Predicate:
		return call
	case in.DType == ir.Bool:
		return call + " != 0"
	case in.DType == ir.U8 || in.DType == ir.I8 || in.DType == ir.I16:
		return fmt.Sprintf("(%s)%s", computed(in.DType), call)
	}
	return call
}

// fold is how a Reduce is accumulated: the type that says how, what an element
// gives it, and what is made of it in the end.
type fold struct {
	name string // of the type
	in   func(x, at string) string
	out  func(a string) string
}

// wide returns the dtype in which integers are folded.
func wide(d ir.DType) ir.DType {
	if d.IsIntegral() && d != ir.I64 {
		return ir.I32
	}
	return d
}

func foldOf(in *loop.Instr, from ir.DType) fold {
	d := in.DType
	f := fold{
		in:  func(x, _ string) string { return cast(from, d, x) },
		out: func(a string) string { return cast(wide(d), d, a) },
	}
	switch in.Op {
	case aten.Sum, aten.Prod:
		acc := wide(d)
		if d == ir.F32 {
			acc = ir.F64
			f.out = func(a string) string { return "(f32)" + a }
		}
		f.name = map[ir.Op]string{aten.Sum: "Sum", aten.Prod: "Prod"}[in.Op] + "<" + computed(acc) + ">"
	case aten.Amax:
		f.name = "Max<" + computed(wide(d)) + ">"
	case aten.Amin:
		f.name = "Min<" + computed(wide(d)) + ">"
	case aten.Any:
		f.name = "Any"
	case aten.All:
		f.name = "All"
	case aten.Argmax, aten.Argmin:
		t := computed(wide(from))
		f.name = map[ir.Op]string{aten.Argmax: "ArgMax", aten.Argmin: "ArgMin"}[in.Op] + "<" + t + ">"
		f.in = func(x, at string) string { return fmt.Sprintf("{(%s)%s, %s}", t, x, at) }
		f.out = func(a string) string { return cast(ir.I64, d, a+".at") }
	}
	return f
}
