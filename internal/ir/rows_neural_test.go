package ir

import (
	"math"
	"testing"
)

func TestLinearAlgebraShapes(t *testing.T) {
	v, m, n := tensor(F32, 3), tensor(F32, 2, 3), tensor(F32, 3, 4)
	in := func(vs ...Value) []Value { return vs }
	checkUses(t, []use{
		{op: "matmul", args: []any{v, v}, want: "f32[]"},
		{op: "matmul", args: []any{m, v}, want: "f32[2]"},
		{op: "matmul", args: []any{v, n}, want: "f32[4]"},
		{op: "matmul", args: []any{m, n}, want: "f32[2,4]"},
		{op: "matmul", args: []any{tensor(I8, 5, 1, 2, 3), tensor(I8, 7, 3, 4)}, want: "i8[5,7,2,4]"},
		{op: "matmul", args: []any{v, tensor(F32, 5, 3, 4)}, want: "f32[5,4]"},
		{op: "matmul", args: []any{tensor(F32, 5, 2, 3), v}, want: "f32[5,2]"},
		{op: "matmul", args: []any{tensor(F16, 2, 0), tensor(F16, 0, 3)}, want: "f16[2,3]"},
		{op: "matmul", args: []any{m, m}, err: ErrShape, msg: "inner dimensions 3 and 2"},
		{op: "matmul", args: []any{m, tensor(F32)}, err: ErrShape, msg: "at least one dimension"},
		{op: "matmul", args: []any{tensor(F32, 2, 2, 3), tensor(F32, 3, 3, 4)}, err: ErrShape, msg: "batch"},
		{op: "matmul", args: []any{m, tensor(F64, 3, 4)}, err: ErrDType, msg: "f32 and f64"},
		{op: "matmul", args: []any{tensor(Bool, 3), tensor(Bool, 3)}, err: ErrDType, msg: "bool"},
		{op: "mm", args: []any{m, n}, want: "f32[2,4]"},
		{op: "mm", args: []any{m, v}, err: ErrShape, msg: "2 and 2 dimensions"},
		{op: "bmm", args: []any{tensor(F32, 5, 2, 3), tensor(F32, 5, 3, 4)}, want: "f32[5,2,4]"},
		{op: "bmm", args: []any{tensor(F32, 1, 2, 3), tensor(F32, 5, 3, 4)}, err: ErrShape, msg: "1 and 5"},
		{op: "mv", args: []any{m, v}, want: "f32[2]"},
		{op: "dot", args: []any{v, v}, want: "f32[]"},
		{op: "dot", args: []any{v, tensor(F32, 1)}, err: ErrShape, msg: "in matmul"},
		{op: "outer", args: []any{v, tensor(I64, 2)}, want: "f32[3,2]"},
		{op: "outer", args: []any{v, m}, err: ErrShape, msg: "vectors"},
		{op: "linear", args: []any{tensor(F32, 5, 2, 3), tensor(F32, 4, 3), tensor(F32, 4)}, want: "f32[5,2,4]"},
		{op: "linear", args: []any{m, v}, want: "f32[2]"},
		{op: "linear", args: []any{m, n}, err: ErrShape},
		{op: "linear", args: []any{m, tensor(F32, 4, 3), tensor(F32, 5, 2, 4)}, err: ErrShape, msg: "bias"},
		{op: "linear", args: []any{m, tensor(F32, 4, 3), tensor(F64, 4)}, err: ErrDType, msg: "bias"},
		{op: "linear", args: []any{m, tensor(F32, 4, 3, 1)}, err: ErrShape, msg: "weight"},
		{op: "addmm", args: []any{tensor(F32), m, n, A("alpha", 2)}, want: "f32[2,4]"},
		{op: "addmm", args: []any{tensor(I64, 4), tensor(I64, 2, 3), tensor(I64, 3, 4), A("beta", 0.5)}, want: "i64[2,4]"},
		{op: "addmm", args: []any{tensor(F32, 5, 2, 4), m, n}, err: ErrShape, msg: "broadcast"},
		{op: "addmm", args: []any{tensor(F64, 4), m, n}, err: ErrDType, msg: "self"},
		{op: "baddbmm", args: []any{tensor(F16, 1), tensor(F16, 5, 2, 3), tensor(F16, 5, 3, 4)}, want: "f16[5,2,4]"},
		{op: "addmv", args: []any{tensor(F32, 2), m, v}, want: "f32[2]"},
		{op: "einsum", args: []any{"ij,jk->ki", in(m, n)}, want: "f32[4,2]"},
		{op: "einsum", args: []any{"...ij,jk", in(tensor(F32, 5, 2, 3), n)}, want: "f32[5,2,4]"},
		{op: "einsum", args: []any{"ij->", in(tensor(I32, 2, 3))}, want: "i64[]"},
		{op: "einsum", args: []any{"ij,jk", in(m)}, err: ErrArg, msg: "names 2 operands"},
		{op: "einsum", args: []any{"i1", in(m)}, err: ErrArg, msg: "no letter"},
		{op: "einsum", args: []any{"ijk", in(m)}, err: ErrShape, msg: "name 3 dimensions"},
		{op: "einsum", args: []any{"i", in(m)}, err: ErrShape, msg: "name 1 dimensions"},
		{op: "einsum", args: []any{"i...j...", in(m)}, err: ErrArg, msg: "no letter"},
		{op: "einsum", args: []any{"ij,ij", in(m, n)}, err: ErrShape, msg: "subscript i has sizes 2 and 3"},
		{op: "einsum", args: []any{"...j,...j", in(m, n)}, err: ErrShape},
		{op: "einsum", args: []any{"ii", in(m)}, err: ErrShape, msg: "repeated for sizes 2 and 3"},
		{op: "einsum", args: []any{"ij->ik", in(m)}, err: ErrArg, msg: "in no operand"},
		{op: "einsum", args: []any{"ij->ii", in(m)}, err: ErrArg, msg: "twice"},
		{op: "einsum", args: []any{"ij,jk", in(m, tensor(F64, 3, 4))}, err: ErrDType, msg: "one dtype"},
		{op: "einsum", args: []any{"", []Value{}}, err: ErrArg},
	})
}

func TestConvolutionShapes(t *testing.T) {
	conv := func(x, w Value, bias any, stride, padding, dilation []int, transposed bool, out []int, groups int) []any {
		return []any{x, w, bias, stride, padding, dilation, transposed, out, groups}
	}
	one, zero := []int{1}, []int{0}
	x, w := tensor(F32, 2, 4, 9), tensor(F32, 6, 4, 3)
	checkUses(t, []use{
		{op: "convolution", args: conv(x, w, tensor(F32, 6), []int{2}, one, []int{2}, false, zero, 1), want: "f32[2,6,4]"},
		{op: "convolution", args: conv(x, tensor(F32, 6, 2, 3), nil, one, zero, one, false, zero, 2), want: "f32[2,6,7]"},
		{op: "convolution", args: conv(x, tensor(F32, 4, 3, 3), nil, []int{2}, one, one, true, one, 2), want: "f32[2,6,18]"},
		{op: "convolution", args: conv(tensor(F16, 0, 4, 9), tensor(F16, 6, 4, 3), nil, one, zero, one, false, zero, 1), want: "f16[0,6,7]"},
		{op: "convolution", args: conv(tensor(F32, 1, 1, 3, 4, 5), tensor(F32, 1, 1, 1, 2, 3), nil, []int{1, 1, 1}, []int{0, 0, 0}, []int{1, 1, 1}, false, []int{0, 0, 0}, 1), want: "f32[1,1,3,3,3]"},
		{op: "convolution", args: conv(tensor(F32, 2, 4), w, nil, one, zero, one, false, zero, 1), err: ErrShape, msg: "3 to 5 dimensions"},
		{op: "convolution", args: conv(x, tensor(F32, 6, 4), nil, one, zero, one, false, zero, 1), err: ErrShape, msg: "weight must have 3"},
		{op: "convolution", args: conv(x, w, nil, one, zero, one, false, zero, 2), err: ErrShape, msg: "wants 8 input channels"},
		{op: "convolution", args: conv(x, tensor(F32, 5, 2, 3), nil, one, zero, one, false, zero, 2), err: ErrShape, msg: "not divisible by 2"},
		{op: "convolution", args: conv(x, w, nil, one, zero, one, false, zero, 0), err: ErrArg, msg: "groups"},
		{op: "convolution", args: conv(x, w, tensor(F32, 4), one, zero, one, false, zero, 1), err: ErrShape, msg: "bias must be f32[6]"},
		{op: "convolution", args: conv(x, w, nil, []int{1, 1}, zero, one, false, zero, 1), err: ErrArg, msg: "stride must have 1 entries"},
		{op: "convolution", args: conv(x, w, nil, zero, zero, one, false, zero, 1), err: ErrArg, msg: "stride must be at least 1"},
		{op: "convolution", args: conv(x, w, nil, one, []int{-1}, one, false, zero, 1), err: ErrArg, msg: "padding must be at least 0"},
		{op: "convolution", args: conv(x, w, nil, one, zero, []int{5}, false, zero, 1), err: ErrShape, msg: "spans 11"},
		{op: "convolution", args: conv(x, tensor(F32, 4, 6, 3), nil, []int{2}, zero, one, true, []int{2}, 1), err: ErrArg, msg: "output_padding 2"},
		{op: "convolution", args: conv(tensor(F32, 1, 4, 1), tensor(F32, 4, 6, 1), nil, one, one, one, true, zero, 1), err: ErrShape, msg: "size -1"},
		{op: "convolution", args: conv(tensor(I64, 2, 4, 9), tensor(I64, 6, 4, 3), nil, one, zero, one, false, zero, 1), err: ErrDType, msg: "floating"},
		{op: "convolution", args: conv(x, tensor(F64, 6, 4, 3), nil, one, zero, one, false, zero, 1), err: ErrDType, msg: "f64"},
		{op: "conv1d", args: []any{tensor(F32, 4, 9), w, nil, 2}, want: "f32[6,4]"},
		{op: "conv1d", args: []any{x, tensor(F32, 6, 4, 4), A("padding_str", "same"), A("dilation", 3)}, want: "f32[2,6,9]"},
		{op: "conv1d", args: []any{x, w, A("padding_str", "valid")}, want: "f32[2,6,7]"},
		{op: "conv1d", args: []any{x, w, A("padding_str", "full")}, err: ErrArg, msg: `"full"`},
		{op: "conv1d", args: []any{x, w, A("padding_str", "same"), A("stride", 2)}, err: ErrArg, msg: "stride 1"},
		{op: "conv1d", args: []any{x, w, A("padding_str", "same"), A("padding", 1)}, err: ErrArg, msg: "exclude"},
		{op: "conv1d", args: []any{x, w, A("stride", []int{1, 2})}, err: ErrArg, msg: "1 or 1 entries"},
		{op: "conv2d", args: []any{x, w}, err: ErrShape},
		{op: "conv2d", args: []any{tensor(F32, 1, 2, 8, 8), tensor(F32, 3, 2, 3, 3), nil, 1, []int{1, 0}}, want: "f32[1,3,8,6]"},
		{op: "conv_transpose2d", args: []any{tensor(F32, 2, 4, 4), tensor(F32, 2, 3, 3, 3), nil, 2, 1, 1}, want: "f32[3,8,8]"},
		{op: "conv_transpose1d", args: []any{tensor(I64, 1, 1, 3), tensor(I64, 1, 2, 2)}, want: "i64[1,2,4]"},
	})
}

func TestPoolShapes(t *testing.T) {
	x := tensor(F32, 2, 3, 9, 9)
	two := func(n int) []int { return []int{n, n} }
	checkUses(t, []use{
		{op: "max_pool_with_indices", args: []any{x, two(3), two(2), two(1), two(1), false}, want: "f32[2,3,5,5] i64[2,3,5,5]"},
		{op: "max_pool_with_indices", args: []any{x, two(2), two(2), two(0), two(1), true}, want: "f32[2,3,5,5] i64[2,3,5,5]"},
		// In ceil mode no window starts in the padding behind the input.
		{op: "max_pool_with_indices", args: []any{tensor(F32, 3), []int{2}, []int{2}, []int{1}, []int{1}, true}, want: "f32[2] i64[2]"},
		{op: "max_pool_with_indices", args: []any{tensor(U8, 5), []int{2}, []int{1}, []int{0}, []int{3}, false}, want: "u8[2] i64[2]"},
		{op: "max_pool_with_indices", args: []any{x, two(2), two(2), two(2), two(1), false}, err: ErrArg, msg: "more than half"},
		{op: "max_pool_with_indices", args: []any{x, []int{}, []int{}, []int{}, []int{}, false}, err: ErrArg, msg: "1 to 3 entries"},
		{op: "max_pool_with_indices", args: []any{x, two(2), []int{2}, two(0), two(1), false}, err: ErrArg, msg: "stride must have 2"},
		{op: "max_pool_with_indices", args: []any{x, two(10), two(1), two(0), two(1), false}, err: ErrShape, msg: "spans 10"},
		{op: "max_pool_with_indices", args: []any{tensor(F32, 3), two(1), two(1), two(0), two(1), false}, err: ErrShape, msg: "at least 2 dimensions"},
		{op: "max_pool_with_indices", args: []any{tensor(F32, 2, 0), []int{1}, []int{1}, []int{0}, []int{1}, false}, err: ErrShape, msg: "empty"},
		{op: "max_pool_with_indices", args: []any{tensor(Bool, 3), []int{1}, []int{1}, []int{0}, []int{1}, false}, err: ErrDType, msg: "bool"},
		{op: "max_pool2d", args: []any{x, 3}, want: "f32[2,3,3,3]"},
		{op: "max_pool2d", args: []any{tensor(F32, 9, 9), 3}, err: ErrShape, msg: "3 or 4 dimensions"},
		{op: "max_pool3d_with_indices", args: []any{tensor(F32, 2, 4, 4, 4), 2}, want: "f32[2,2,2,2] i64[2,2,2,2]"},
		{op: "avg_pool2d", args: []any{x, []int{3, 2}, 2, 1}, want: "f32[2,3,5,5]"},
		{op: "avg_pool1d", args: []any{tensor(I32, 1, 4), 2}, err: ErrDType, msg: "i32"},
		{op: "avg_pool2d", args: []any{x, 3, 0}, err: ErrArg, msg: "stride must be at least 1"},
		{op: "avg_pool2d", args: []any{x, 3, A("divisor_override", 0)}, err: ErrArg, msg: "must not be 0"},
		{op: "adaptive_avg_pool2d", args: []any{x, []int{4, 20}}, want: "f32[2,3,4,20]"},
		{op: "adaptive_avg_pool2d", args: []any{x, []int{0, 3}}, want: "f32[2,3,0,3]"},
		{op: "adaptive_avg_pool2d", args: []any{x, -1}, err: ErrShape, msg: "-1"},
		{op: "interpolate", args: []any{x, []int{4, 20}}, want: "f32[2,3,4,20]"},
		{op: "interpolate", args: []any{tensor(U8, 1, 1, 5), nil, 1.7}, want: "u8[1,1,8]"},
		{op: "interpolate", args: []any{tensor(BF16, 1, 1, 5), 7, nil, "linear"}, want: "bf16[1,1,7]"},
		{op: "interpolate", args: []any{x, 4, nil, "linear"}, err: ErrArg, msg: "2 spatial dimensions"},
		{op: "interpolate", args: []any{x, 4, nil, "nearest", true}, err: ErrArg, msg: "align_corners"},
		{op: "interpolate", args: []any{x}, err: ErrArg, msg: "either"},
		{op: "interpolate", args: []any{x, 4, 2.0}, err: ErrArg, msg: "either"},
		{op: "interpolate", args: []any{x, nil, -2.0}, err: ErrArg, msg: "positive"},
		{op: "interpolate", args: []any{x, nil, 0.01}, err: ErrShape, msg: "to 0"},
		{op: "interpolate", args: []any{tensor(F32, 3, 9), 4}, err: ErrShape, msg: "3 to 5 dimensions"},
		{op: "interpolate", args: []any{tensor(I64, 1, 1, 4), 4, nil, "area"}, err: ErrDType, msg: "i64"},
	})
}

func TestNormShapes(t *testing.T) {
	x, w := tensor(F16, 2, 4, 6), tensor(F16, 6)
	checkUses(t, []use{
		{op: "softmax", args: []any{x, -1}, want: "f16[2,4,6]"},
		{op: "softmax", args: []any{tensor(I32, 3), 0, F64}, want: "f64[3]"},
		{op: "softmax", args: []any{tensor(F32, 0, 3), 0}, want: "f32[0,3]"},
		{op: "softmax", args: []any{tensor(I32, 3), 0}, err: ErrDType, msg: "i32"},
		{op: "log_softmax", args: []any{x, 3}, err: ErrIndex},
		{op: "layer_norm", args: []any{x, 6, tensor(F32, 6), w}, want: "f16[2,4,6]"},
		{op: "layer_norm", args: []any{x, []int{4, 6}}, want: "f16[2,4,6]"},
		{op: "layer_norm", args: []any{x, []int{4}}, err: ErrShape, msg: "not normalized_shape [4]"},
		{op: "layer_norm", args: []any{x, []int{}}, err: ErrShape, msg: "1 to 3"},
		{op: "layer_norm", args: []any{x, 6, tensor(F16, 4)}, err: ErrShape, msg: "weight and bias"},
		{op: "layer_norm", args: []any{tensor(I64, 6), 6}, err: ErrDType, msg: "i64"},
		{op: "rms_norm", args: []any{x, 6, w}, want: "f16[2,4,6]"},
		{op: "group_norm", args: []any{x, 2, tensor(F32, 4)}, want: "f16[2,4,6]"},
		{op: "group_norm", args: []any{x, 3}, err: ErrShape, msg: "4 channels do not make 3 groups"},
		{op: "group_norm", args: []any{x, 2, w}, err: ErrShape, msg: "weight"},
		{op: "group_norm", args: []any{w, 2}, err: ErrShape, msg: "at least 2 dimensions"},
		{op: "batch_norm", args: []any{x, nil, nil, tensor(F32, 4), tensor(F32, 4), true, 0.1, 1e-5}, want: "f16[2,4,6] f32[4] f32[4]"},
		{op: "batch_norm", args: []any{x, nil, nil, nil, nil, true, 0.1, 1e-5}, want: "f16[2,4,6] f32[4] f32[4]"},
		{op: "batch_norm", args: []any{x, nil, nil, nil, nil, false, 0.1, 1e-5}, err: ErrArg, msg: "not training"},
		{op: "batch_norm", args: []any{x, nil, nil, tensor(F32, 4), nil, true, 0.1, 1e-5}, err: ErrArg, msg: "together"},
		{op: "batch_norm", args: []any{x, w, nil, nil, nil, true, 0.1, 1e-5}, err: ErrShape, msg: "weight"},
		{op: "scaled_dot_product_attention", args: []any{tensor(BF16, 2, 3, 5, 8), tensor(BF16, 3, 7, 8), tensor(BF16, 1, 3, 7, 4)}, want: "bf16[2,3,5,4]"},
		{op: "scaled_dot_product_attention", args: []any{x, x, x, tensor(Bool, 4, 4), true}, err: ErrArg, msg: "exclude"},
		{op: "scaled_dot_product_attention", args: []any{x, x, x, tensor(Bool, 4, 3)}, err: ErrShape},
		{op: "scaled_dot_product_attention", args: []any{x, x, x, tensor(Bool, 5, 2, 4, 4)}, err: ErrShape, msg: "attn_mask"},
		{op: "scaled_dot_product_attention", args: []any{x, x, x, tensor(I64, 4, 4)}, err: ErrDType, msg: "attn_mask"},
		{op: "scaled_dot_product_attention", args: []any{x, x, tensor(F32, 2, 4, 6)}, err: ErrDType, msg: "one floating dtype"},
		{op: "scaled_dot_product_attention", args: []any{x, tensor(F16, 3, 4, 6), tensor(F16, 3, 4, 6), A("enable_gqa", true)}, err: ErrShape, msg: "no multiple"},
		{op: "dropout", args: []any{x, tensor(I64), 0.5, true, 3}, want: "f16[2,4,6]"},
		{op: "dropout", args: []any{tensor(I64, 2), tensor(I64), 0.5, true, 3}, err: ErrDType, msg: "i64"},
	})
}

func TestLossShapes(t *testing.T) {
	x, i := tensor(F32, 2, 3, 5), tensor(I64, 2, 5)
	checkUses(t, []use{
		{op: "cross_entropy", args: []any{x, i}, want: "f32[]"},
		{op: "cross_entropy", args: []any{tensor(F16, 2, 3, 5), i, tensor(F16, 3), "none"}, want: "f16[2,5]"},
		{op: "cross_entropy", args: []any{x, tensor(F32, 2, 3, 5), A("reduction", "none")}, want: "f32[2,5]"},
		{op: "cross_entropy", args: []any{tensor(F32, 3), tensor(I32)}, want: "f32[]"},
		{op: "cross_entropy", args: []any{x, tensor(I64, 2, 3)}, err: ErrShape, msg: "[2 5]"},
		{op: "cross_entropy", args: []any{x, tensor(F32, 2, 5)}, err: ErrShape, msg: "probabilities"},
		{op: "cross_entropy", args: []any{x, tensor(Bool, 2, 5)}, err: ErrDType, msg: "bool"},
		{op: "cross_entropy", args: []any{x, i, tensor(F32, 5)}, err: ErrShape, msg: "f32[3]"},
		{op: "cross_entropy", args: []any{x, i, A("reduction", "avg")}, err: ErrArg, msg: `"avg"`},
		{op: "cross_entropy", args: []any{x, i, A("label_smoothing", 1.5)}, err: ErrArg, msg: "between 0 and 1"},
		{op: "cross_entropy", args: []any{i, i}, err: ErrDType, msg: "floating"},
		{op: "cross_entropy", args: []any{tensor(F32), tensor(I64)}, err: ErrShape, msg: "classes"},
		{op: "nll_loss", args: []any{x, i, A("reduction", "none")}, want: "f32[2,5]"},
		{op: "nll_loss", args: []any{x, x}, err: ErrDType, msg: "integer"},
		{op: "mse_loss", args: []any{tensor(F32, 2, 1), tensor(F64, 3), "none"}, want: "f64[2,3]"},
		{op: "mse_loss", args: []any{tensor(BF16, 3), tensor(BF16, 3)}, want: "bf16[]"},
		{op: "mse_loss", args: []any{i, i}, err: ErrDType, msg: "floating"},
		{op: "l1_loss", args: []any{x, tensor(F32, 2)}, err: ErrShape, msg: "broadcast"},
		{op: "smooth_l1_loss", args: []any{x, x, "sum", -1.0}, err: ErrArg, msg: "beta"},
		{op: "huber_loss", args: []any{x, x, "sum", 0.0}, err: ErrArg, msg: "delta"},
		{op: "mse_loss", args: []any{x, x, "batchmean"}, err: ErrArg, msg: "batchmean"},
		{op: "kl_div", args: []any{x, x, "batchmean"}, want: "f32[]"},
		{op: "binary_cross_entropy", args: []any{x, tensor(F32, 5)}, err: ErrShape, msg: "target"},
		{op: "binary_cross_entropy_with_logits", args: []any{x, x, nil, tensor(F32, 5), "none"}, want: "f32[2,3,5]"},
		{op: "binary_cross_entropy_with_logits", args: []any{x, x, tensor(F32, 4, 2, 3, 5)}, err: ErrShape, msg: "weight"},
		{op: "cosine_similarity", args: []any{tensor(F32, 2, 1, 4), tensor(F32, 3, 4), -1}, want: "f32[2,3]"},
		{op: "cosine_similarity", args: []any{tensor(F32, 2), tensor(F32, 3)}, err: ErrShape, msg: "broadcast"},
		{op: "cosine_similarity", args: []any{x, x, 3}, err: ErrIndex},
	})
}

func TestRandomShapes(t *testing.T) {
	seed := tensor(I64)
	checkUses(t, []use{
		{op: "uniform", args: []any{seed, []int{2, 3}, 0, F16}, want: "f16[2,3]"},
		{op: "uniform", args: []any{seed, []int{2}, 0, I32}, err: ErrDType, msg: "floating"},
		{op: "uniform", args: []any{tensor(I32), []int{2}, 0, F32}, err: ErrDType, msg: "i64 scalar"},
		{op: "uniform", args: []any{tensor(I64, 1), []int{2}, 0, F32}, err: ErrDType, msg: "i64 scalar"},
		{op: "uniform", args: []any{seed, []int{-2}, 0, F32}, err: ErrShape, msg: "-2"},
		{op: "normal", args: []any{seed, []int{}, 5, F64}, want: "f64[]"},
		{op: "randint", args: []any{seed, 0, 256, []int{4}, 0, U8}, want: "u8[4]"},
		{op: "randint", args: []any{seed, -1, 3, []int{4}, 0, U8}, err: ErrArg, msg: "u8 holds 0 to 255"},
		{op: "randint", args: []any{seed, -128, 129, []int{4}, 0, I8}, err: ErrArg, msg: "i8 holds -128 to 127"},
		{op: "randint", args: []any{seed, math.MinInt, math.MaxInt, []int{4}, 0, I64}, want: "i64[4]"},
		{op: "randint", args: []any{seed, 0, 10, []int{4}, 0, F32}, want: "f32[4]"},
		{op: "randint", args: []any{seed, 3, 3, []int{4}, 0, I64}, err: ErrArg, msg: "less than"},
		{op: "randint", args: []any{seed, 0.5, 3, []int{4}, 0, I64}, err: ErrArg, msg: "integers"},
		{op: "randint", args: []any{seed, 0, 2, []int{4}, 0, Bool}, err: ErrDType, msg: "bool"},
		{op: "bernoulli", args: []any{tensor(BF16, 3), seed, 0}, want: "bf16[3]"},
		{op: "bernoulli", args: []any{tensor(I64, 3), seed, 0}, err: ErrDType},
		{op: "randperm", args: []any{seed, 5, 0}, want: "i64[5]"},
		{op: "randperm", args: []any{seed, 5, 0, F32}, want: "f32[5]"},
		{op: "randperm", args: []any{seed, -1, 0}, err: ErrArg, msg: "negative"},
		{op: "randperm", args: []any{seed, 5, 0, Bool}, err: ErrDType},
	})
}
