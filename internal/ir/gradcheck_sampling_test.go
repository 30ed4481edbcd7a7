package ir_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

func TestGradientsOfWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	at := is([]int{1, 2, 1, 2}, 0, 3, 2, 5)
	samples := fs([]int{1, 2, 2}, 0.1, 0.7, 0.4, 0.9)
	checkGradients(t, rng, 2, []opCall{
		call("adaptive_max_pool1d", r(2, 5), 3),
		call("adaptive_max_pool2d", r(1, 2, 4, 3), []int{3, 2}),
		call("adaptive_max_pool3d", r(1, 2, 3, 2), []int{1, 2, 2}),
		call("fractional_max_pool2d", r(1, 2, 4, 5), []int{2, 2}, []int{2, 3}, samples),
		call("fractional_max_pool3d", r(1, 3, 3, 4), []int{2, 1, 2}, []int{2, 3, 1}, fs([]int{1, 1, 3}, 0.2, 0.5, 0.8)),
		call("max_unpool2d", r(1, 2, 1, 2), at, []int{2, 3}),
		call("max_unpool3d", r(1, 1, 1, 2), is([]int{1, 1, 1, 2}, 7, 0), []int{2, 2, 2}, []int{2, 2, 2}, []int{0, 0, 0}),
		call("avg_pool2d_backward", r(1, 2, 3), r(1, 4, 5), []int{2, 3}, []int{2, 2}, []int{0, 1}, false, true, nil),
		call("avg_pool3d_backward", r(1, 1, 1, 2), r(1, 2, 2, 4), []int{2}, []int{}, []int{0}, false, true, 3),
		call("_adaptive_avg_pool2d_backward", r(1, 2, 2), r(1, 3, 4)),
		call("_adaptive_avg_pool3d_backward", r(1, 1, 2, 1), r(1, 2, 3, 2)),
		call("adaptive_max_pool2d_backward", r(1, 2, 1, 2), r(1, 2, 2, 3), at),
		call("max_pool2d_with_indices_backward", r(1, 2, 1, 2), r(1, 2, 2, 3), []int{2}, []int{}, []int{0}, []int{1}, false, at),
	})
}

func TestGradientsOfDetection(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 28))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	offset := fs([]int{1, 8, 2, 3}, 0.31, -0.42, 0.13, 0.77, -1.36, 0.24, -0.28, 0.41, 1.17, -0.63, 0.36, 0.09, 0.57, -0.22, 0.44, -0.71, 0.19, 0.83,
		-0.14, 0.62, -0.37, 0.28, 0.91, -0.55, 0.33, 0.46, -0.83, 0.72, -0.18, 0.59, 0.11, -0.47, 0.64, 0.22, -0.31, 0.87,
		0.42, -0.26, 0.53, 0.17, -0.68, 0.39, 0.74, 0.12, -0.44, 0.58, 0.29, -0.81)
	checkGradients(t, rng, 1, []opCall{
		call("deform_conv2d", r(1, 2, 3, 4), offset, r(2, 2, 2, 2), r(2)),
		call("deform_conv2d", r(1, 2, 3, 4), offset, r(2, 1, 2, 2), nil, []int{1, 1}, []int{0, 0}, []int{1, 1}, r(1, 4, 2, 3)),
	})
	checkGradients(t, rng, 2, []opCall{
		call("local_response_norm", r(2, 5, 2), 3, 0.2, 0.7, 1.5),
		call("local_response_norm", r(1, 4, 2, 1), 4, 0.2),
	})
}

func TestGradientsOfSampling(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	places := fs([]int{1, 2, 2, 2}, -0.63, 0.31, 0.47, -0.12, 0.81, 1.37, -1.43, 0.05)
	deep := fs([]int{1, 1, 1, 2, 3}, -0.63, 0.31, 0.47, -0.12, 0.81, 1.17)
	image := r(1, 2, 3, 4)
	both := []int{1, 1}
	checkGradients(t, rng, 1, []opCall{
		call("grid_sample", image, places),
		call("grid_sample", image, places, "bilinear", "border", true),
		call("grid_sample", image, places, "bilinear", "reflection"),
		call("grid_sample", image, places, "bilinear", "reflection", true),
		call("grid_sample", image, places, "nearest", "border"),
		call("grid_sample", image, places, "bicubic", "zeros", true),
		call("grid_sample", image, places, "bicubic", "reflection"),
		call("grid_sample", r(1, 2, 2, 3, 2), deep),
		call("grid_sampler_2d", image, places, 0, 0, false),
		call("grid_sampler_3d", r(1, 1, 2, 2, 3), deep, 0, 1, true),
		call("grid_sampler_2d_backward", r(1, 2, 2, 2), image, places, 0, 0, false, both),
		call("grid_sampler_3d_backward", r(1, 2, 1, 1, 2), r(1, 2, 2, 3, 2), deep, 0, 0, true, []int{1, 0}),
		call("affine_grid", r(2, 2, 3), []int{2, 1, 2, 3}),
		call("affine_grid", r(1, 3, 4), []int{1, 2, 2, 1, 3}, true),
		call("upsample_bicubic2d", r(1, 1, 3, 2), []int{4, 5}, false),
		call("upsample_bicubic2d", r(1, 1, 3, 3), []int{5, 2}, true),
		call("upsample_bilinear2d", r(1, 1, 3, 2), []int{4, 5}, false, nil, 2.5),
		call("upsample_bicubic2d_backward", r(1, 1, 4, 5), []int{4, 5}, []int{1, 1, 3, 2}, false),
		call("upsample_linear1d_backward", r(1, 2, 5), []int{5}, []int{1, 2, 3}, true),
		call("upsample_trilinear3d_backward", r(1, 1, 2, 3, 2), []int{2, 3, 2}, []int{1, 1, 1, 2, 3}, false),
		call("replication_pad2d", r(1, 2, 3), []int{1, 2, 0, 1}),
		call("replication_pad1d_backward", r(1, 2, 6), r(1, 2, 3), []int{1, 2}),
		call("im2col", r(1, 2, 4, 3), []int{2}, []int{1}, []int{1}, []int{2}),
		call("im2col", r(2, 4, 5), []int{2, 3}, []int{2, 1}, []int{0}, []int{1}),
		call("im2col", r(1, 7, 6), []int{6}, []int{1}, []int{0}, []int{1}),
		call("col2im", r(1, 8, 6), []int{4, 3}, []int{2}, []int{1}, []int{1}, []int{2}),
		call("convolution_backward", r(2, 3, 4), r(2, 2, 5), r(3, 2, 2), []int{3}, []int{1}, []int{0}, []int{1}, false, []int{0}, 1, []int{1, 1, 1}),
	})
}

func TestGradientsOfBags(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	indices, offsets := ivec(1, 4, 1, 0, 3, 2), ivec(0, 2, 2, 5)
	matrix := is([]int{2, 3}, 0, 1, 1, 4, 2, 0)
	bag, sizes := ivec(0, 0, 2, 2, 2, 3), ivec(2, 0, 3, 1)
	checkGradients(t, rng, 2, []opCall{
		call("embedding_bag", indices, r(5, 2), offsets, "sum", r(6)),
		call("embedding_bag", indices, r(5, 2), offsets, ir.A("padding_idx", 1)),
		call("embedding_bag", indices, r(5, 2), ivec(0, 2, 6), ir.A("include_last_offset", true)),
		call("embedding_bag", matrix, r(5, 2), ir.A("mode", "max")),
		call("_embedding_bag_dense_backward", r(4, 2), indices, bag, sizes, sizes, 5, true, 1, nil, 4),
		call("_embedding_bag_dense_backward", r(4, 2), indices, bag, sizes, is([]int{4, 2}, 1, 4, 0, 0, 3, 0, 2, 2), 5, false, 2, nil, -1),
		call("_embedding_bag_per_sample_weights_backward", r(4, 2), r(5, 2), indices, offsets, ivec(), 0, 3),
	})
}

func TestGradientsOfDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 28))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	var calls []opCall
	for _, p := range []float64{0, 1, 1.5, 2, 3, math.Inf(1)} {
		calls = append(calls, call("cdist", r(2, 3), r(4, 3), p), call("pdist", r(4, 3), p))
	}
	calls = append(calls,
		call("cdist", r(2, 1, 2, 3), r(3, 2, 3)),
		call("_cdist_backward", r(2, 4), r(2, 3), r(4, 3), 2.0, r(2, 4)),
		call("_pdist_backward", r(6), r(4, 3), 3.0, r(6)),
		call("soft_margin_loss", r(2, 3), r(2, 3)),
		call("addbmm", r(2), r(3, 2, 2), r(3, 2, 2), ir.A("beta", fs(nil, 2)), ir.A("alpha", fs(nil, 3))),
		call("_addmm_activation", r(2), r(3, 2), r(2, 2), ir.A("beta", fs(nil, 2)), ir.A("alpha", fs(nil, 3)), ir.A("use_gelu", true)),
		call("_trilinear", r(3, 2), r(3, 2), r(2, 2, 2), []int{1, 3}, []int{1, 2}, []int{0}, []int{2, 3}),
		call("_fused_rms_norm", r(2, 3), []int{3}, r(3), nil),
		call("_grouped_mm", r(5, 2), r(2, 2, 3), ivec(2, 5)),
		call("_grouped_mm", r(2, 5), r(5, 3), ivec(2, 5)),
		call("_grouped_mm", r(2, 3, 2), r(2, 5), ivec(1, 5)),
	)
	checkGradients(t, rng, 1, calls)
}
