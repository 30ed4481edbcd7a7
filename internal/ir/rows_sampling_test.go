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

func TestSamplingShapes(t *testing.T) {
	x, places := tensor(F32, 2, 3, 6, 5), tensor(F32, 2, 4, 7, 2)
	one := []int{1, 1}
	checkUses(t, []use{
		{op: "grid_sample", args: []any{x, places}, want: "f32[2,3,4,7]"},
		{op: "grid_sample", args: []any{tensor(BF16, 1, 2, 3, 3, 3), tensor(BF16, 1, 1, 2, 4, 3), "nearest"}, want: "bf16[1,2,1,2,4]"},
		{op: "grid_sample", args: []any{x, places, "cubic"}, err: ErrArg, msg: "cubic"},
		{op: "grid_sample", args: []any{tensor(F32, 1, 2, 3, 3, 3), tensor(F32, 1, 1, 2, 4, 3), "bicubic"}, err: ErrArg, msg: "2 spatial"},
		{op: "grid_sample", args: []any{x, tensor(F64, 2, 4, 7, 2)}, err: ErrDType, msg: "f64"},
		{op: "grid_sample", args: []any{x, tensor(F32, 1, 4, 7, 2)}, err: ErrShape, msg: "grid"},
		{op: "grid_sampler_2d", args: []any{x, places, 3, 0, false}, err: ErrArg, msg: "from 0 to 2"},
		{op: "affine_grid", args: []any{tensor(F32, 2, 2, 3), []int{2, 9, 4, 5}}, want: "f32[2,4,5,2]"},
		{op: "affine_grid", args: []any{tensor(F32, 1, 2, 3), []int{2, 9, 4, 5}}, err: ErrShape, msg: "theta"},
		{op: "upsample_bicubic2d", args: []any{x, []int{3, 10}, true}, want: "f32[2,3,3,10]"},
		{op: "upsample_linear1d_backward", args: []any{tensor(F32, 1, 2, 5), []int{4}, []int{1, 2, 3}, true}, err: ErrShape, msg: "gradient of the result"},
		{op: "im2col", args: []any{x, []int{2, 3}, one, []int{0}, one}, want: "f32[2,18,15]"},
		{op: "im2col", args: []any{tensor(I64, 3, 6, 5), []int{2}, one, one, []int{2}}, want: "i64[12,12]"},
		{op: "im2col", args: []any{x, []int{7}, one, []int{0}, one}, err: ErrShape, msg: "spans 7"},
		{op: "col2im", args: []any{tensor(F32, 2, 18, 15), []int{6, 5}, []int{2, 3}, one, []int{0}, one}, want: "f32[2,3,6,5]"},
		{op: "col2im", args: []any{tensor(F32, 2, 18, 14), []int{6, 5}, []int{2, 3}, one, []int{0}, one}, err: ErrShape, msg: "columns"},
		{op: "convolution_backward", args: []any{tensor(F32, 2, 4, 5, 4), x, tensor(F32, 4, 3, 2, 2), nil, one, []int{0, 0}, one, false, []int{0, 0}, 1, []int{1, 0, 1}},
			want: "f32[2,3,6,5] f32[0] f32[4]"},
		{op: "convolution_backward", args: []any{x, x, tensor(F32, 4, 3, 2, 2), nil, one, []int{0, 0}, one, false, []int{0, 0}, 1, one}, err: ErrArg, msg: "output_mask"},
	})
}

func TestDetectionShapes(t *testing.T) {
	x, rois := tensor(F32, 2, 4, 6, 5), tensor(F32, 3, 5)
	boxes, scores := tensor(F32, 7, 4), tensor(F32, 7)
	weight, offset := tensor(F32, 6, 2, 3, 3), tensor(F32, 2, 36, 4, 3)
	checkUses(t, []use{
		{op: "nms_static", args: []any{boxes, scores, 0.5, 3}, want: "i64[3]"},
		{op: "nms_static", args: []any{tensor(F64, 0, 4), tensor(F64, 0), 0.5, 2}, want: "i64[2]"},
		{op: "nms_static", args: []any{boxes, tensor(F32, 6), 0.5, 3}, err: ErrShape, msg: "scores [n]"},
		{op: "nms_static", args: []any{tensor(I64, 7, 4), tensor(I64, 7), 0.5, 3}, err: ErrDType, msg: "i64"},
		{op: "nms_static", args: []any{boxes, scores, 0.5, -1}, err: ErrArg, msg: "size"},
		{op: "roi_align", args: []any{x, rois, 0.25, 7, 5, 2, true}, want: "f32[3,4,7,5]"},
		{op: "roi_align", args: []any{tensor(BF16, 1, 2, 9, 9), tensor(BF16, 0, 5), 1.0, 2, 2}, want: "bf16[0,2,2,2]"},
		{op: "roi_align", args: []any{x, tensor(F32, 3, 4), 1.0, 2, 2}, err: ErrShape, msg: "[K, 5]"},
		{op: "roi_align", args: []any{x, rois, 1.0, 0, 2}, err: ErrArg, msg: "pooled_height"},
		{op: "_roi_align", args: []any{x, rois, 1.0, 2, 2, 0, false, 3, "min"}, err: ErrArg, msg: "min"},
		{op: "deform_conv2d", args: []any{x, offset, weight}, want: "f32[2,6,4,3]"},
		{op: "deform_conv2d", args: []any{x, tensor(F32, 2, 18, 3, 3), weight, tensor(F32, 6), []int{2, 2}, []int{1, 1}, []int{1, 1}, tensor(F32, 2, 9, 3, 3)}, want: "f32[2,6,3,3]"},
		{op: "deform_conv2d", args: []any{x, tensor(F32, 2, 18, 4, 4), weight}, err: ErrShape, msg: "offset"},
		{op: "deform_conv2d", args: []any{x, offset, tensor(F32, 6, 3, 3, 3)}, err: ErrShape, msg: "weight"},
		{op: "deform_conv2d", args: []any{x, offset, weight, nil, []int{1, 1}, []int{0, 0}, []int{1, 1}, tensor(F32, 2, 9, 4, 3)}, err: ErrShape, msg: "mask"},
		{op: "local_response_norm", args: []any{x, 3}, want: "f32[2,4,6,5]"},
		{op: "local_response_norm", args: []any{tensor(F32, 2, 4), 3}, err: ErrShape, msg: "3 dimensions"},
		{op: "local_response_norm", args: []any{x, 0}, err: ErrArg, msg: "size"},
		{op: "histogram", args: []any{x, tensor(F32, 5)}, want: "f32[4] f32[5]"},
		{op: "histogram", args: []any{x, tensor(F64, 5)}, err: ErrDType, msg: "bins"},
		{op: "histogram", args: []any{x, tensor(F32, 1)}, err: ErrShape, msg: "two edges"},
	})
}

func TestBagAndDistanceShapes(t *testing.T) {
	table, at, off := tensor(F16, 5, 4), tensor(I32, 6), tensor(I32, 3)
	x, y := tensor(F32, 2, 1, 3, 4), tensor(F32, 6, 5, 4)
	checkUses(t, []use{
		{op: "embedding_bag", args: []any{at, table, off}, want: "f16[3,4]"},
		{op: "embedding_bag", args: []any{tensor(I64, 2, 3), table, A("mode", "max")}, want: "f16[2,4]"},
		{op: "embedding_bag", args: []any{at, table}, err: ErrShape, msg: "offsets"},
		{op: "embedding_bag", args: []any{at, table, off, "median"}, err: ErrArg, msg: "median"},
		{op: "embedding_bag", args: []any{at, table, off, "mean", tensor(F16, 6)}, err: ErrArg, msg: "per_sample_weights"},
		{op: "_embedding_bag", args: []any{table, at, off, A("include_last_offset", true)}, want: "f16[2,4] i32[6] i32[2] i32[2]"},
		{op: "_embedding_bag", args: []any{table, at, off, A("mode", 2)}, want: "f16[3,4] i32[6] i32[3] i32[3,4]"},
		{op: "cdist", args: []any{x, y}, want: "f32[2,6,3,5]"},
		{op: "cdist", args: []any{x, tensor(F32, 5, 3)}, err: ErrShape, msg: "rows of one size"},
		{op: "cdist", args: []any{x, y, -1.0}, err: ErrArg, msg: "negative"},
		{op: "pdist", args: []any{tensor(F64, 1, 3)}, want: "f64[0]"},
		{op: "pdist", args: []any{x}, err: ErrShape, msg: "matrix"},
		{op: "addbmm", args: []any{tensor(F32, 3), tensor(F32, 7, 2, 4), tensor(F32, 7, 4, 3)}, want: "f32[2,3]"},
		{op: "_fused_rms_norm", args: []any{x, []int{3, 4}, nil, nil}, want: "f32[2,1,3,4] f32[2,1,1,1]"},
		{op: "_grouped_mm", args: []any{tensor(BF16, 8, 4), tensor(BF16, 2, 4, 3), tensor(I32, 2)}, want: "bf16[8,3]"},
		{op: "_grouped_mm", args: []any{tensor(BF16, 8, 4), tensor(BF16, 2, 4, 3), nil}, err: ErrShape, msg: "offs"},
		{op: "masked_scatter_backward", args: []any{x, tensor(Bool, 3, 1), []int{2, 5}}, want: "f32[2,5]"},
	})
}
