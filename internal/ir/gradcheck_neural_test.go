package ir_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

func TestGradientsOfLinearAlgebra(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	beta, alpha := ir.A("beta", fs(nil, 2)), ir.A("alpha", fs(nil, 3))
	checkGradients(t, rng, 2, []opCall{
		call("matmul", r(3), r(3)),
		call("matmul", r(3), r(3, 2)),
		call("matmul", r(2, 3), r(3)),
		call("matmul", r(2, 3), r(3, 2)),
		call("matmul", r(3), r(2, 3, 2)),
		call("matmul", r(2, 2, 3), r(3)),
		call("matmul", r(2, 2, 3), r(2, 3, 2)),
		call("matmul", r(2, 2, 2), r(2, 3)),
		call("matmul", r(3, 2), r(2, 2, 2, 2)),
		call("matmul", r(2, 1, 2, 3), r(3, 3, 1)),
		call("matmul", r(1, 2, 2), r(2, 2, 2)),
		call("mm", r(2, 3), r(3, 2)),
		call("bmm", r(2, 1, 3), r(2, 3, 2)),
		call("mv", r(2, 3), r(3)),
		call("dot", r(4), r(4)),
		call("outer", r(2), r(3)),
		call("linear", r(2, 2, 3), r(2, 3), r(2)),
		call("linear", r(2, 3), r(3), fs(nil, 1)),
		call("addmm", r(2), r(2, 3), r(3, 2), beta, alpha),
		call("baddbmm", r(1, 2), r(2, 1, 3), r(2, 3, 2), beta, alpha),
		call("addmv", r(1), r(2, 3), r(3), beta, alpha),
		call("einsum", "ij,jk,kl->il", []data{r(2, 3), r(3, 2), r(2, 2)}),
		call("einsum", "bij,bjk->bik", []data{r(2, 2, 3), r(2, 3, 1)}),
		call("einsum", "ii->i", []data{r(3, 3)}),
		call("einsum", "iji->j", []data{r(2, 3, 2)}),
		call("einsum", "iii", []data{r(2, 2, 2)}),
		call("einsum", "...ij,...jk->...ik", []data{r(2, 1, 2, 2), r(3, 2, 1)}),
		call("einsum", "i,i,i->", []data{r(3), r(3), r(3)}),
		call("einsum", "ab,cd,a->d", []data{r(2, 2), r(1, 3), r(2)}),
		call("einsum", "ij,ij->j", []data{r(1, 3), r(2, 3)}),
		call("einsum", "i...->...", []data{r(2, 3)}),
	})
}

func TestGradientsOfConvolutions(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	conv := func(x, w data, bias any, stride, padding, dilation []int, transposed bool, outPad []int, groups int) opCall {
		return call("convolution", x, w, bias, stride, padding, dilation, transposed, outPad, groups)
	}
	one, zero := []int{1}, []int{0}
	checkGradients(t, rng, 2, []opCall{
		conv(r(2, 2, 5), r(3, 2, 3), r(3), one, zero, one, false, zero, 1),
		// Positions that the stride leaves out, on either side of a dilation.
		conv(r(1, 2, 8), r(2, 2, 2), nil, []int{3}, one, []int{2}, false, zero, 1),
		conv(r(1, 1, 7), r(1, 1, 3), nil, []int{2}, []int{2}, []int{3}, false, zero, 1),
		conv(r(2, 4, 5), r(6, 2, 2), r(6), []int{2}, one, one, false, zero, 2),
		conv(r(2, 3, 4), r(3, 1, 3), nil, one, one, one, false, zero, 3),
		conv(r(1, 2, 4, 3), r(2, 2, 2, 3), r(2), []int{2, 1}, []int{1, 1}, []int{1, 2}, false, []int{0, 0}, 1),
		conv(r(1, 2, 2, 3, 3), r(2, 1, 1, 2, 3), nil, []int{1, 2, 1}, []int{0, 1, 1}, []int{1, 1, 1}, false, []int{0, 0, 0}, 2),
		conv(r(2, 3, 3), r(3, 2, 3), r(2), []int{2}, one, one, true, one, 1),
		conv(r(1, 4, 3), r(4, 1, 2), r(2), []int{2}, zero, []int{2}, true, one, 2),
		// An output padding above the stride, which the dilation allows.
		conv(r(1, 1, 3), r(1, 1, 2), nil, one, zero, []int{4}, true, []int{3}, 1),
		conv(r(1, 2, 2, 3), r(2, 1, 2, 2), nil, []int{3, 2}, []int{1, 0}, []int{1, 1}, true, []int{2, 1}, 1),
		call("conv1d", r(2, 5), r(3, 2, 2), r(3), 2, 1),
		call("conv1d", r(1, 2, 5), r(1, 2, 4), ir.A("padding_str", "same")),
		call("conv2d", r(1, 1, 3, 4), r(1, 1, 2, 3), ir.A("padding_str", "same"), ir.A("dilation", []int{1, 2})),
		call("conv3d", r(1, 1, 2, 2, 2), r(1, 1, 2, 1, 2), nil, 1, 1),
		call("conv_transpose1d", r(2, 3), r(2, 1, 2), nil, 2, 0, 1),
		call("conv_transpose2d", r(1, 2, 2, 2), r(2, 1, 2, 2), r(1), 2),
		call("conv_transpose3d", r(1, 1, 2, 1, 2), r(1, 1, 1, 2, 2)),
	})
}

func TestGradientsOfPools(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	checkGradients(t, rng, 2, []opCall{
		call("max_pool_with_indices", r(6), []int{3}, []int{2}, []int{1}, []int{1}, false),
		call("max_pool_with_indices", r(2, 2, 4, 5), []int{2, 3}, []int{1, 2}, []int{1, 1}, []int{2, 1}, true),
		call("max_pool_with_indices", r(2, 3, 3, 2), []int{2, 2, 2}, []int{1, 1, 2}, []int{0, 0, 0}, []int{1, 1, 1}, false),
		call("max_pool1d", r(2, 5), 2),
		call("max_pool2d", r(1, 4, 4), 3, 1, 1),
		call("max_pool2d_with_indices", r(1, 1, 4, 4), 2),
		call("avg_pool1d", r(2, 6), 2),
		call("avg_pool1d", r(1, 1, 6), 3, 2, 1, true),
		call("avg_pool2d", r(1, 5, 4), []int{3, 2}, []int{2, 3}, []int{1, 0}, true, false),
		call("avg_pool2d", r(1, 1, 4, 4), 2, []int{}, 0, false, true, 3),
		call("avg_pool3d", r(1, 3, 2, 2), 2, 1, 1),
		call("adaptive_avg_pool1d", r(2, 6), 3),
		call("adaptive_avg_pool1d", r(2, 5), 3),
		call("adaptive_avg_pool2d", r(1, 1, 3, 5), []int{5, 2}),
		call("adaptive_avg_pool3d", r(1, 2, 3, 2), []int{1, 2, 2}),
		call("interpolate", r(1, 2, 3), 5),
		call("interpolate", r(1, 1, 2, 3), []int{4, 6}),
		call("interpolate", r(1, 1, 5), nil, 0.7, "nearest-exact"),
		call("interpolate", r(1, 1, 4), 3, nil, "area"),
		call("interpolate", r(1, 1, 3), nil, 1.9, "linear"),
		call("interpolate", r(1, 1, 3), 5, nil, "linear", true),
		call("interpolate", r(1, 1, 3, 2), []int{2, 5}, nil, "bilinear"),
		call("interpolate", r(1, 1, 2, 2, 1), []int{3, 1, 2}, nil, "trilinear", true),
	})
}

func TestGradientsOfNorms(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	checkGradients(t, rng, 2, []opCall{
		call("softmax", r(2, 3), 1),
		call("softmax", r(2, 3), 0),
		call("softmax", fs(nil, 2), 0),
		call("log_softmax", r(2, 3), -1),
		call("log_softmax", r(2, 2, 2), 1),
		call("layer_norm", r(2, 3), []int{3}),
		call("layer_norm", r(2, 2, 3), []int{2, 3}, r(2, 3), r(2, 3), 0.1),
		call("layer_norm", r(2, 3), []int{3}, ir.A("bias", r(3))),
		call("rms_norm", r(2, 3), []int{3}),
		call("rms_norm", r(2, 3), []int{3}, r(3), 0.1),
		call("group_norm", r(2, 4, 3), 2, r(4), r(4)),
		call("group_norm", r(2, 2), 1),
		call("scaled_dot_product_attention", r(2, 3, 2), r(2, 4, 2), r(2, 4, 3)),
		call("scaled_dot_product_attention", r(3, 2), r(3, 2), r(3, 2), ir.A("is_causal", true)),
		call("scaled_dot_product_attention", r(1, 4, 2, 2), r(1, 2, 3, 2), r(1, 2, 3, 1), ir.A("enable_gqa", true), ir.A("scale", 0.3)),
		call("scaled_dot_product_attention", r(2, 2), r(3, 2), r(3, 2), r(2, 3)),
		call("scaled_dot_product_attention", r(2, 2), r(3, 2), r(3, 2), bools([]int{2, 3}, 1, 0, 1, 0, 0, 0)),
		call("dropout", r(2, 3), is(nil, 5), fs(nil, 0.4), true, 1),
		call("dropout", r(3), is(nil, 5), fs(nil, 1), false, 0),
	})
}

func TestGradientsOfLosses(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	probs := fs([]int{2, 3}, 0.2, 0.3, 0.5, 0.6, 0.1, 0.3)
	red := func(s string) ir.Named { return ir.A("reduction", s) }
	classes := is([]int{2, 2}, 0, 2, -100, 1)
	checkGradients(t, rng, 2, []opCall{
		call("cross_entropy", r(3), is(nil, 2)),
		call("cross_entropy", r(2, 3), ivec(2, 0)),
		call("cross_entropy", r(2, 3, 2), classes),
		call("cross_entropy", r(2, 3, 2), classes, red("none"), ir.A("label_smoothing", 0.3)),
		call("cross_entropy", r(2, 3), ivec(2, 1), red("sum"), ir.A("ignore_index", 1)),
		call("cross_entropy", r(2, 3), probs),
		call("cross_entropy", r(2, 3), probs, vec(0.5, 2, 1), "sum", 3, 0.2),
		call("cross_entropy", r(2, 3), probs, vec(0.5, 2, 1), red("none")),
		call("nll_loss", r(2, 3, 2), classes),
		call("nll_loss", r(2, 3), ivec(0, 0), vec(0.5, 2, 1), red("none")),
		call("mse_loss", r(2, 3), r(3)),
		call("mse_loss", r(3), r(3), red("none")),
		call("l1_loss", r(2, 3), r(2, 3), red("sum")),
		call("smooth_l1_loss", r(2, 3), r(2, 3), "sum", 0.7),
		call("smooth_l1_loss", r(3), r(3), ir.A("beta", 0.0)),
		call("huber_loss", r(2, 3), r(2, 3), "none", 0.7),
		call("binary_cross_entropy", probs, fs([]int{2, 3}, 1, 0, 0.3, 0.5, 0.25, 1)),
		call("binary_cross_entropy", probs, fs([]int{2, 3}, 1, 0, 0.3, 0.5, 0.25, 1), red("none")),
		call("binary_cross_entropy_with_logits", r(2, 3), probs),
		call("binary_cross_entropy_with_logits", r(2, 3), probs, r(3), r(1, 3), red("sum")),
		call("kl_div", r(2, 3), probs, red("batchmean")),
		call("kl_div", r(2, 3), r(2, 3), red("sum"), ir.A("log_target", true)),
		call("cosine_similarity", r(2, 3), r(2, 3)),
		call("cosine_similarity", r(2, 1, 3), r(4, 3), -1),
	})
}
