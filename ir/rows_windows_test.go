package ir

import "testing"

func TestWindowShapes(t *testing.T) {
	x, i := tensor(F32, 2, 3, 6, 5), func(dims ...int) Value { return tensor(I64, dims...) }
	two := []int{2, 2}
	checkUses(t, []use{
		{op: "adaptive_max_pool2d", args: []any{x, []int{4, 3}}, want: "f32[2,3,4,3] i64[2,3,4,3]"},
		{op: "adaptive_max_pool1d", args: []any{tensor(I32, 1, 7), 2}, want: "i32[1,2] i64[1,2]"},
		{op: "adaptive_max_pool2d", args: []any{tensor(F32, 0, 1, 4, 4), 2}, want: "f32[0,1,2,2] i64[0,1,2,2]"},
		{op: "adaptive_max_pool2d", args: []any{x, 0}, err: ErrShape, msg: "pooled to 0"},
		{op: "adaptive_max_pool2d", args: []any{tensor(Bool, 1, 4, 4), 2}, err: ErrDType, msg: "bool"},
		{op: "adaptive_max_pool3d", args: []any{tensor(F32, 4, 4), 2}, err: ErrShape, msg: "4 or 5 dimensions"},
		{op: "fractional_max_pool2d", args: []any{x, two, []int{3, 2}, tensor(F32, 2, 3, 2)}, want: "f32[2,3,3,2] i64[2,3,3,2]"},
		{op: "fractional_max_pool2d", args: []any{x, two, []int{6, 2}, tensor(F32, 2, 3, 2)}, err: ErrArg, msg: "do not fit"},
		{op: "fractional_max_pool2d", args: []any{x, two, two, tensor(F32, 1, 3, 2)}, err: ErrShape, msg: "6 planes"},
		{op: "max_unpool2d", args: []any{x, i(2, 3, 6, 5), []int{12, 10}}, want: "f32[2,3,12,10]"},
		{op: "max_unpool2d", args: []any{x, i(2, 3, 6), []int{12, 10}}, err: ErrShape, msg: "unpooling"},
		{op: "max_unpool2d", args: []any{x, i(2, 3, 6, 5), []int{12}}, err: ErrShape, msg: "unpooling"},
		{op: "avg_pool2d_backward", args: []any{tensor(F32, 2, 3, 3, 2), x, two, two, []int{0, 0}, false, true, nil}, want: "f32[2,3,6,5]"},
		{op: "avg_pool2d_backward", args: []any{x, x, two, two, []int{0, 0}, false, true, nil}, err: ErrShape, msg: "gradient of the result must be f32[2,3,3,2]"},
		{op: "max_pool2d_with_indices_backward", args: []any{tensor(F32, 2, 3, 3, 2), x, two, two, []int{0, 0}, two, false, i(2, 3, 3)}, err: ErrShape, msg: "indices"},
	})
}
