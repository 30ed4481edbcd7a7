package ir

import "testing"

func TestScaledShapes(t *testing.T) {
	x, y := tensor(F8E4M3FN, 2, 3), tensor(F8E5M2, 3, 4)
	one, row, col := tensor(F32), tensor(F32, 2, 1), tensor(F32, 1, 4)
	checkUses(t, []use{
		{op: "_scaled_mm", args: []any{x, y, one, one}, want: "f8e4m3fn[2,4]"},
		{op: "_scaled_mm", args: []any{x, y, tensor(F32, 1), tensor(F32, 1, 1), A("out_dtype", BF16)}, want: "bf16[2,4]"},
		{op: "_scaled_mm", args: []any{x, y, row, col, tensor(F16, 4), one, F8E5M2}, want: "f8e5m2[2,4]"},
		{op: "_scaled_mm", args: []any{x, y, one, one, nil, one, F32}, want: "f32[2,4]"},
		{op: "_scaled_mm", args: []any{x, y, row, one}, err: ErrShape, msg: "[2,1] and [1,4]"},
		{op: "_scaled_mm", args: []any{x, y, tensor(F32, 2), tensor(F32, 4)}, err: ErrShape, msg: "single numbers"},
		{op: "_scaled_mm", args: []any{x, y, tensor(F64), one}, err: ErrDType, msg: "must be f32, got f64 and f32"},
		{op: "_scaled_mm", args: []any{x, x, one, one}, err: ErrShape, msg: "inner dimensions 3 and 2"},
		{op: "_scaled_mm", args: []any{tensor(F8E5M2, 3), y, one, one}, err: ErrShape, msg: "2 dimensions, got 1 and 2"},
		{op: "_scaled_mm", args: []any{tensor(F32, 2, 3), y, one, one}, err: ErrDType, msg: "8-bit floats, got f32 and f8e5m2"},
		{op: "_scaled_mm", args: []any{x, y, one, one, tensor(F64, 4)}, err: ErrDType, msg: "bias"},
		{op: "_scaled_mm", args: []any{x, y, one, one, tensor(F32, 1, 4)}, err: ErrShape, msg: "vector of 4"},
		{op: "_scaled_mm", args: []any{x, y, one, one, nil, tensor(F32, 2)}, err: ErrShape, msg: "scale_result"},
		{op: "_scaled_mm", args: []any{x, y, one, one, A("out_dtype", F64)}, err: ErrDType, msg: "got f64"},

		{op: "_int_mm", args: []any{tensor(I8, 2, 3), tensor(I8, 3, 4)}, want: "i32[2,4]"},
		{op: "_int_mm", args: []any{tensor(U8, 2, 0), tensor(I8, 0, 4)}, want: "i32[2,4]"},
		{op: "_int_mm", args: []any{tensor(I8, 2, 3), tensor(U8, 3, 4)}, err: ErrDType, msg: "got i8 and u8"},
		{op: "_int_mm", args: []any{tensor(I8, 1, 2, 3), tensor(I8, 3, 4)}, err: ErrShape, msg: "2 dimensions"},
	})
}

// 8-bit floats are held, moved and cast; anything else says what to do.
func TestEightBitFloats(t *testing.T) {
	const hint = "so cast first"
	for _, d := range []DType{F8E4M3FN, F8E5M2} {
		x, f := tensor(d, 2, 3), tensor(F32, 2, 3)
		name := d.String()
		checkUses(t, []use{
			{op: "cast", args: []any{x, BF16}, want: "bf16[2,3]"},
			{op: "cast", args: []any{tensor(I16, 2), d}, want: name + "[2]"},
			{op: "full", args: []any{[]int{2, 3}, 1.5, d}, want: name + "[2,3]"},
			{op: "permute", args: []any{x, []int{1, 0}}, want: name + "[3,2]"},
			{op: "expand", args: []any{x, []int{4, 2, 3}}, want: name + "[4,2,3]"},
			{op: "slice", args: []any{x, 1, 0, 3, 2}, want: name + "[2,2]"},
			{op: "flip", args: []any{x, []int{0}}, want: name + "[2,3]"},
			{op: "cat", args: []any{[]Value{x, x}, 1}, want: name + "[2,6]"},
			{op: "constant_pad_nd", args: []any{x, []int{1, 1}, 0.5}, want: name + "[2,5]"},
			{op: "index_select", args: []any{x, 0, tensor(I64, 5)}, want: name + "[5,3]"},
			{op: "cat", args: []any{[]Value{x, f}, 1}, err: ErrDType, msg: hint},
			{op: "add", args: []any{x, x}, err: ErrDType, msg: hint},
			{op: "mul", args: []any{x, 2.0}, err: ErrDType, msg: hint},
			{op: "mul", args: []any{f, x}, err: ErrDType, msg: hint},
			{op: "exp", args: []any{x}, err: ErrDType, msg: hint},
			{op: "gelu", args: []any{x}, err: ErrDType, msg: hint},
			{op: "sum", args: []any{x}, err: ErrDType, msg: hint},
			{op: "matmul", args: []any{x, x}, err: ErrDType, msg: hint},
			{op: "sort", args: []any{x, 0}, err: ErrDType, msg: hint},
			{op: "softmax", args: []any{x, 0}, err: ErrDType, msg: hint},
			{op: "arange", args: []any{0, 4, 1, d}, err: ErrDType, msg: name},
		})
	}
}
