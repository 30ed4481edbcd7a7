package ir_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

func TestGradientsOfReductions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := rnd(rng, 2, 3, 2)
	zeros := fs([]int{3, 3}, 1.5, 0, -2, 0, 3, 0, 0.5, 2, -1)
	checkGradients(t, rng, 2, []opCall{
		call("sum", x, []int{1}),
		call("sum", x, []int{0, -1}, true),
		call("sum", fs(nil, 3)),
		call("prod", x),
		call("prod", x, []int{0, 2}),
		call("prod", zeros, []int{0}),
		call("prod", zeros, []int{1}, true),
		call("prod", zeros),
		call("prod", fs(nil, 3)),
		call("prod", fs([]int{2, 1}, 3, 4), []int{1}),
		call("prod", fs([]int{2, 0}), []int{1}),
		call("amax", x, []int{1}),
		call("amin", x, nil, true),
		call("amax", fs(nil, 3)),
		call("mean", x, []int{0, 1}),
		call("logsumexp", x, []int{2, 0}, true),
		call("var", x, []int{1}),
		call("var", x, nil, ir.A("correction", 0.5), ir.A("keepdim", true)),
		call("std", x, []int{0, 2}),
		call("var_mean", x, []int{-1}, ir.A("correction", 0)),
		call("norm", x),
		call("norm", x, 1, []int{1}),
		call("norm", x, 3.5, []int{0, 1}, true),
		call("norm", x, 0.5),
		call("norm", x, -1.5, []int{2}),
		call("norm", x, math.Inf(1), []int{2}),
		call("norm", x, math.Inf(-1)),
		call("cumsum", x, 1),
		call("cumsum", fs(nil, 2), 0),
		call("cumprod", x, -2),
		call("cumprod", zeros, 0),
		call("cumprod", zeros, 1),
		call("cumprod", rnd(rng, 7), 0),
		call("cumprod", vec(1, 0, 0, 2, 0), 0),
		call("cumprod", fs(nil, 2), 0),
		call("cumprod", fs([]int{2, 1}, 2, 3), 1),
		call("logcumsumexp", x, 1),
		call("logcumsumexp", x, 0),
		call("logcumsumexp", rnd(rng, 7), 0),
		call("logcumsumexp", vec(2, 2, -3, 2), 0),
		call("logcumsumexp", vec(800, -700, 801), 0),
		call("logcumsumexp", fs(nil, 2), 0),
		call("logcumsumexp", fs([]int{2, 1}, 2, 3), 1),
		call("logcumsumexp", fs([]int{2, 0}), 1),
		call("_linear_scan", x, rnd(rng, 2, 3, 2), 1, false),
		call("_linear_scan", x, rnd(rng, 2, 3, 2), 1, true),
		call("_linear_scan", zeros, rnd(rng, 3, 3), 0, false),
		call("_linear_scan", zeros, rnd(rng, 3, 3), 1, true),
		call("_linear_scan", fs([]int{2, 1}, 2, 3), rnd(rng, 2, 1), 1, false),
		call("cummax", x, 1),
		call("cummax", fs(nil, 2), 0),
		call("sort", x, 1, true),
		call("sort", fs(nil, 2)),
		call("topk", x, 2, 1),
	})
}

func TestGradientsOfViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	x, y := rnd(rng, 2, 3, 4), rnd(rng, 2, 1, 4)
	checkGradients(t, rng, 2, []opCall{
		call("reshape", x, []int{4, -1}),
		call("permute", x, []int{2, 0, 1}),
		call("expand", y, []int{2, -1, 3, 4}),
		call("slice", x, 1, 1),
		call("slice", x, 2, nil, nil, 2),
		call("slice", x, 2, 1, nil, 2),
		call("slice", rnd(rng, 8), 0, 1, 7, 3),
		call("slice", rnd(rng, 8), 0, nil, nil, -3),
		call("slice", x, 2, nil, nil, -1),
		call("slice", x, 2, 2, 0, -1),
		call("slice", x, 2, 3, 1, 1),
		call("slice", x, 0, 1, 2, 5),
		call("slice", rnd(rng, 1, 1, 2, 1, 1, 1, 5, 1), 6, nil, nil, 2),
		call("flip", x, []int{0, 2}),
		call("cat", []data{x, y}, 1),
		call("constant_pad_nd", x, []int{1, 2, -1, 0}, fs(nil, 5)),
		call("select", x, 1, -1),
		call("select_scatter", rnd(rng, 3, 4), rnd(rng, 3), 1, 2),
		call("slice_scatter", rnd(rng, 3, 4), rnd(rng, 1, 4), 0, 1, 2),
		call("slice_scatter", rnd(rng, 9), rnd(rng, 3), 0, 1, nil, 3),
		call("slice_scatter", rnd(rng, 9), rnd(rng, 4), 0, -2, nil, -2),
		call("slice_scatter", rnd(rng, 9), rnd(rng, 0), 0, 3, 3),
		call("stack", []data{vec(1, 2), vec(3, 4)}, 1),
		call("split", x, 2, 1),
		call("roll", x, []int{1, -1}, []int{1, 2}),
		call("pad", y, []int{2, 3}, "reflect"),
		call("pad", x, []int{2, -1, 1, 0}, "replicate"),
		call("pad", x, []int{4, 3}, "circular"),
		call("repeat", y, []int{2, 2, 3, 1}),
		call("repeat_interleave", y, 3, 0),
		call("diagonal", x, 1, -1, 0),
		call("unfold", x, 2, 3, 1),
		call("tril", x, 1),
		call("triu", rnd(rng, 2, 7), 1),
		call("full_like", x, fs(nil, 2)),
	})
}

func TestGradientsOfIndexing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	x := rnd(rng, 3, 4)
	index := is([]int{2, 3}, 0, 2, 1, 0, 1, 1)
	distinct := is([]int{2, 3}, 0, 2, 1, 1, 0, 2)
	src := rnd(rng, 3, 3) // more than the index covers
	checkGradients(t, rng, 2, []opCall{
		call("gather", x, 0, index),
		call("gather", x, 1, index),
		call("gather", fs(nil, 2), 0, ivec(0)),
		call("scatter", x, 0, distinct, src),
		call("scatter", fs(nil, 2), 0, ivec(0), vec(3)),
		call("scatter", x, 0, is([]int{0, 9}), src),
		call("scatter_add", x, 1, index, src),
		call("scatter_reduce", x, 0, index, src, "sum", ir.A("include_self", false)),
		call("scatter_reduce", x, 0, index, src, "mean"),
		call("scatter_reduce", x, 1, index, src, "mean", ir.A("include_self", false)),
		call("scatter_reduce", x, 0, index, src, "prod"),
		call("scatter_reduce", x, 1, index, src, "prod", ir.A("include_self", false)),
		call("scatter_reduce", fs([]int{3}, 0, 2, 0), 0, ivec(0, 0, 1), vec(2, 3, 4), "prod"),
		call("scatter_reduce", x, 0, index, src, "amax"),
		call("scatter_reduce", x, 1, index, src, "amin", ir.A("include_self", false)),
		call("index_select", x, 1, ivec(3, 0, 3)),
		call("index_select", x, 0, is(nil, 1)),
		call("index_select", fs(nil, 2), 0, ivec(0)),
		call("index_add", x, 1, ivec(3, 0, 3), rnd(rng, 3, 3)),
		call("index_add", vec(1), 0, ivec(0), fs(nil, 2)),
		call("index_copy", x, 0, ivec(2, 0), rnd(rng, 2, 4)),
		call("take", x, is([]int{2, 2}, 0, -1, 5, 0)),
		call("take_along_dim", x, is([]int{1, 2}, 1, -2), 1),
		call("index", x, []data{is([]int{2, 1}, 0, -1), ivec(1, 1, 3)}),
		call("index_put", x, []data{ivec(0, -1)}, rnd(rng, 4)),
		call("index_put", x, []data{ivec(0, 0, 2), ivec(1, 1, 3)}, fs(nil, 2), true),
		call("index_put", x, []data{bools([]int{3}, 1, 0, 1)}, rnd(rng, 4), true),
		call("embedding", x, is([]int{2, 2}, 0, 2, 1, 2)),
	})
	// With one zero among several, the gradient of another element is 0 but its
	// derivative is not, which ATen does not follow either.
	checkGradients(t, rng, 1, []opCall{
		call("scatter_reduce", vec(2, 3), 0, ivec(0, 0, 0, 1, 1), vec(4, 0, 5, 0, 0), "prod"),
	})
}

func checkGradients(t *testing.T, rng *rand.Rand, order int, calls []opCall) {
	for _, c := range calls {
		t.Run(c.op, func(t *testing.T) {
			newGradients(c, rng).check(t, order)
			if t.Failed() {
				t.Logf("%v", c)
			}
		})
	}
}

// TestChosenGradients pins the gradient, of the sum of the outputs, where
// differences do not tell: at ties and at points without derivative.
func TestChosenGradients(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		opCall
		want []float64
	}{
		{call("amax", vec(1, 3, 3, 2)), []float64{0, 0.5, 0.5, 0}},
		{call("amin", fs([]int{2, 2}, 1, 1, 2, 5), []int{1}), []float64{0.5, 0.5, 1, 0}},
		{call("amax", vec(1, nan)), []float64{nan, nan}},
		{call("cummax", vec(1, 1, 0, 2), 0), []float64{1, 2, 0, 1}},
		{call("sort", vec(2, 1, 2), 0, true), []float64{1, 1, 1}},
		{call("norm", vec(0, 0)), []float64{0, 0}},
		{call("norm", vec(0, 3), 3), []float64{0, 1}},
		{call("norm", vec(0, 0), 1.5), []float64{0, 0}},
		{call("norm", vec(1, 0), 0.5), []float64{1, 0}},
		{call("norm", vec(-2, 2, 1), math.Inf(1)), []float64{-0.5, 0.5, 0}},
		{call("norm", vec(1, 2), 0), []float64{0, 0}},
		{call("std", vec(2, 2, 2)), []float64{0, 0, 0}},
		{call("scatter_reduce", vec(3, 0), 0, is([]int{2}, 0, 0), vec(3, 3), "amax"), []float64{1. / 3, 1}},
		{call("embedding", fs([]int{2, 1}, 7, 8), ivec(0, 1, 1, 0, 1), 1), []float64{2, 0}},
		{call("detach", vec(1, 2)), []float64{0, 0}},
		{call("max_dim", vec(3, 1, 3), 0), []float64{1, 0, 0}},
		{call("fake_quantize_per_tensor_affine", vec(-9, 0.3, 9), fs(nil, 0.1), is(nil, 0), -50, 50), []float64{0, 1, 0}},
		{call("prod", vec(0, 0, 2)), []float64{0, 0, 0}},
		{call("prod", vec(0, 3, 2)), []float64{6, 0, 0}},
		{call("cumprod", vec(2, 0, math.Inf(1)), 0), []float64{nan, math.Inf(1), 0}},
		// Those of infinities are PyTorch's.
		{call("logcumsumexp", vec(math.Inf(-1), 0, 0, math.Inf(-1)), 0), []float64{nan, 2, 1, 0}},
		{call("logcumsumexp", vec(0, math.Inf(1), 1, math.Inf(1)), 0), []float64{1, nan, 0, nan}},
		{call("logcumsumexp", vec(0, nan, 1), 0), []float64{nan, nan, nan}},
		{call("logcumsumexp", vec(1e4, -1e4, 0), 0), []float64{3, 0, 0}},
	} {
		var b ir.Builder
		var w graph.Walker
		w.Walk(nil)
		ds := c.operands()
		vals := graph.NewParams(params(ds))
		outs := c.record(&b, vals)
		g := graph.Grad(&b, &w, outs[:1], nil, vals[:1])
		got := eval(t, lowered(graph.FromValues(c.op, vals, g)), ds)[0]
		if !sameFloats(got, c.want) {
			t.Errorf("%v: gradient %v, want %v", c.opCall, got, c.want)
		}
	}
}

func sameFloats(got, want []float64) bool {
	if len(got) != len(want) {
		return false
	}
	for i, g := range got {
		w := want[i]
		near := !math.IsInf(w, 0) && math.Abs(g-w) <= 1e-12*max(1, math.Abs(w))
		if g != w && !near && !(math.IsNaN(g) && math.IsNaN(w)) {
			return false
		}
	}
	return true
}
