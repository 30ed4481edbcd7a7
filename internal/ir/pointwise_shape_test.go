package ir

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestPointwiseShapes(t *testing.T) {
	f, i, m := tensor(F32, 2, 3), tensor(I32, 3), tensor(Bool, 2, 1)
	half := tensor(F16, 3)
	checkUses(t, []use{
		{op: "add", args: []any{f, i}, want: "f32[2,3]"},
		{op: "add", args: []any{tensor(F32, 2, 1), tensor(F32, 1, 4)}, want: "f32[2,4]"},
		{op: "add", args: []any{tensor(F32, 0), tensor(F32, 1)}, want: "f32[0]"},
		{op: "add", args: []any{i, 2.5}, want: "f32[3]"},
		{op: "add", args: []any{half, 2.5}, want: "f16[3]"},
		{op: "add", args: []any{half, tensor(F64)}, want: "f16[3]"},
		{op: "add", args: []any{half, tensor(BF16, 3)}, want: "f32[3]"},
		{op: "div", args: []any{i, 2}, want: "f32[3]"},
		{op: "exp", args: []any{m}, want: "f32[2,1]"},
		{op: "eq", args: []any{f, i}, want: "bool[2,3]"},
		{op: "logical_and", args: []any{half, i}, want: "bool[3]"},
		{op: "isnan", args: []any{i}, want: "bool[3]"},
		{op: "bitwise_and", args: []any{m, i}, want: "i32[2,3]"},
		{op: "sub", args: []any{m, 1}, want: "i64[2,1]"},

		{op: "where", args: []any{m, f, 0}, want: "f32[2,3]"},
		{op: "where", args: []any{m, i, 0.5}, want: "f32[2,3]"},
		{op: "where", args: []any{tensor(Bool, 4, 1, 1), half, tensor(F64, 2, 1)}, want: "f64[4,2,3]"},
		{op: "cast", args: []any{i, BF16}, want: "bf16[3]"},
		{op: "cast", args: []any{tensor(F8E5M2, 2), F32}, want: "f32[2]"},
		{op: "cast", args: []any{f, F8E4M3FN}, want: "f8e4m3fn[2,3]"},

		{op: "square", args: []any{m}, want: "i64[2,1]"},
		{op: "clamp", args: []any{i, 0}, want: "i32[3]"},
		{op: "clamp", args: []any{i, nil, 1.5}, want: "f32[3]"},
		{op: "clamp", args: []any{f, tensor(F32, 4, 1, 1)}, want: "f32[4,2,3]"},
		{op: "leaky_relu", args: []any{half, 0.2}, want: "f16[3]"},
		{op: "leaky_relu", args: []any{tensor(F16), 0.2}, want: "f16[]"},
		{op: "threshold", args: []any{i, 0.5, 2}, want: "i32[3]"},
		{op: "addcmul", args: []any{i, i, i, A("value", 0.5)}, want: "i32[3]"},
		{op: "addcmul", args: []any{i, half, i}, want: "f16[3]"},
		{op: "addcdiv", args: []any{f, i, half}, want: "f32[2,3]"},
		{op: "lerp", args: []any{half, half, 0.001}, want: "f16[3]"},
		{op: "lerp", args: []any{f, f, tensor(F32, 5, 1, 1)}, want: "f32[5,2,3]"},
		{op: "masked_fill", args: []any{i, m, 1.5}, want: "i32[2,3]"},
		{op: "masked_fill", args: []any{half, m, tensor(F64)}, want: "f16[2,3]"},
		{op: "nan_to_num", args: []any{i}, want: "i32[3]"},
		{op: "xlogy", args: []any{i, 2}, want: "f32[3]"},
	})
}

func TestPointwiseErrors(t *testing.T) {
	f, i, m := tensor(F32, 2, 3), tensor(I64, 3), tensor(Bool, 3)
	checkUses(t, []use{
		{op: "add", args: []any{f, tensor(F32, 2)}, err: ErrShape, msg: "broadcast"},
		{op: "add", args: []any{f}, err: ErrArg, msg: `"other"`},
		{op: "add", args: []any{f, "x"}, err: ErrArg, msg: "Tensor"},
		{op: "add", args: []any{tensor(C64, 2), 1}, want: "c64[2]"},
		{op: "floor", args: []any{tensor(C64, 2)}, err: ErrDType, msg: "c64"},
		{op: "add", args: []any{tensor(F8E5M2, 2), tensor(F8E5M2, 2)}, err: ErrDType, msg: "f8e5m2"},
		{op: "add", args: []any{tensor(F8E5M2, 2), f}, err: ErrDType, msg: "promote"},
		{op: "neg", args: []any{m}, err: ErrDType, msg: "logical_not"},
		{op: "sub", args: []any{m, m}, err: ErrDType, msg: "logical_xor"},
		{op: "bitwise_and", args: []any{f, f}, err: ErrDType, msg: "f32"},
		{op: "bitwise_and", args: []any{i, 1.5}, err: ErrDType, msg: "f32"},
		{op: "where", args: []any{i, f, f}, err: ErrDType, msg: "condition must be bool, got i64"},
		{op: "where", args: []any{tensor(Bool, 4), f, f}, err: ErrShape, msg: "broadcast"},
		{op: "cast", args: []any{tensor(C64, 2), F32}, want: "f32[2]"},
		{op: "cast", args: []any{f, C128}, want: "c128[2,3]"},
		{op: "cast", args: []any{f, nil}, err: ErrArg, msg: "dtype"},
		{op: "clamp", args: []any{f}, err: ErrArg, msg: "at least one"},
		{op: "gelu", args: []any{f, A("approximate", "erf")}, err: ErrArg, msg: `"erf"`},
		{op: "gelu", args: []any{i}, err: ErrDType, msg: "i64"},
		{op: "addcdiv", args: []any{i, i, i}, err: ErrDType, msg: "i64"},
		{op: "addcmul", args: []any{m, m, m}, err: ErrDType, msg: "bool"},
		{op: "hardtanh", args: []any{m}, err: ErrDType, msg: "bool"},
		{op: "lerp", args: []any{f, tensor(F32, 2), 0.5}, err: ErrShape, msg: "in sub"},
		{op: "masked_fill", args: []any{f, i, 1}, err: ErrDType, msg: "mask must be bool, got i64"},
		{op: "masked_fill", args: []any{f, m, tensor(F32, 1)}, err: ErrShape, msg: "no dimensions"},
	})
}

// An error names the op, the operands' shapes and the user's line.
func TestPointwiseErrorsSayWhere(t *testing.T) {
	for _, op := range []string{"mul", "lerp"} {
		o, _ := Lookup(op)
		args := []any{tensor(F32, 2, 3), tensor(F32, 4), 0.5}
		err := catch(func() { new(Builder).Call(o, args[:len(o.Spec().Schema.Params)]) })
		var oe *OpError
		if !errors.As(err, &oe) {
			t.Fatalf("%s: %v is not an OpError", op, err)
		}
		want := []Shape{MakeShape(F32, 2, 3), MakeShape(F32, 4)}
		if oe.Op != op || !reflect.DeepEqual(oe.Shapes[:2], want) || !strings.Contains(oe.Line, "pointwise_shape_test.go:") {
			t.Errorf("%s: op %q, shapes %v, line %q", op, oe.Op, oe.Shapes, oe.Line)
		}
		for _, part := range []string{op + "(f32[2,3], f32[4]", "shape error", oe.Line} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", op, err, part)
			}
		}
	}
}

// Numbers beside tensors keep the precision that composites compute in.
func TestScalarsOfComposites(t *testing.T) {
	for _, c := range []struct {
		op   string
		args []any
		want float64
	}{
		// 0.001 as bf16 would move 1024 by 0.4 %.
		{"lerp", []any{leafOf(scalar{d: BF16}), leafOf(scalar{d: BF16, F: 1 << 20}), 0.001}, RoundFloat(BF16, 1048.576)},
		{"lerp", []any{leafOf(scalar{d: F64}), leafOf(scalar{d: F64, F: 1}), 0.1}, 0.1},
		{"masked_fill", []any{leafOf(scalar{d: F64}), leafOf(scalar{d: Bool, I: 1}), 0.1}, 0.1},
		{"leaky_relu", []any{leafOf(scalar{d: F64, F: -1}), 0.1}, -0.1},
		// The sum is rounded once: 2048 + 0.75·1.5 is 2049.125, in f16 2050 and not 2048.
		{"addcmul", []any{leafOf(scalar{d: F16, F: 2048}), leafOf(scalar{d: F16, F: 0.75}), leafOf(scalar{d: F16, F: 1.5})}, 2050},
	} {
		op, _ := Lookup(c.op)
		got := evaluator{}.eval(new(Builder).Call1(op, c.args))
		if got.F != c.want {
			t.Errorf("%s gives %v, want %v", c.op, got, c.want)
		}
	}
}

func TestCastAndWhere(t *testing.T) {
	for _, c := range []struct {
		from scalar
		to   DType
		want scalar
	}{
		{scalar{d: F32, F: -1.9}, I8, scalar{d: I8, I: -1}},
		{scalar{d: F64, F: 0.1}, F32, scalar{d: F32, F: float64(float32(0.1))}},
		{scalar{d: I64, I: 300}, U8, scalar{d: U8, I: 44}},
		{scalar{d: F32, F: 0.5}, Bool, scalar{d: Bool, I: 1}},
		{scalar{d: I64, I: 256}, Bool, scalar{d: Bool, I: 1}},
		{scalar{d: Bool, I: 1}, BF16, scalar{d: BF16, F: 1}},
	} {
		if got := (evaluator{}).eval(new(Builder).Cast(leafOf(c.from), c.to)); got != c.want {
			t.Errorf("cast of %v %v to %v gives %v, want %v", c.from.d, c.from, c.to, got, c.want)
		}
	}
	b := new(Builder)
	x, y := leafOf(scalar{d: I32, I: 7}), leafOf(scalar{d: I64, I: 9})
	for c, want := range []int64{9, 7} {
		got := evaluator{}.eval(b.Where(leafOf(scalar{d: Bool, I: int64(c)}), x, y))
		if got != (scalar{d: I64, I: want}) {
			t.Errorf("where(%d, 7, 9) = %v", c, got)
		}
	}
}

// A cast passes a gradient between floating dtypes only, and where to the side
// that was chosen.
func TestCastAndWhereGradients(t *testing.T) {
	b := expanding()
	x := leafOf(scalar{d: F32, F: 2})
	g := gradients(b, b.Mul(b.Cast(x, F64), b.Const(3, F64)), []Value{x})[0]
	if g.IsNil() || (evaluator{}).eval(g) != (scalar{d: F32, F: 3}) {
		t.Errorf("gradient through f32 → f64: %v", g)
	}
	if g := gradients(b, b.Cast(b.Cast(x, I32), F32), []Value{x})[0]; !g.IsNil() {
		t.Errorf("gradient through an integer: %v", g)
	}
	z := leafOf(scalar{d: F32, F: 5})
	for c, want := range [][2]float64{{0, 1}, {1, 0}} {
		gs := gradients(b, b.Where(leafOf(scalar{d: Bool, I: int64(c)}), x, z), []Value{x, z})
		for k, g := range gs {
			if got := (evaluator{}).eval(g); got.F != want[k] {
				t.Errorf("where(%d): gradient %d is %v, want %v", c, k, got, want[k])
			}
		}
	}
}
