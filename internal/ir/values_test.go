package ir_test

import (
	"errors"
	"math"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// TestCompositeValues computes composites by their decompositions.
func TestCompositeValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	m := fs([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	checkValues(t, []valueCase{
		{call("mean", m, []int{0}), [][]float64{{2.5, 3.5, 4.5}}},
		{call("mean", fs([]int{2, 0}), []int{1}), [][]float64{{nan, nan}}},
		{call("mean", ivec(1, 2), ir.A("dtype", ir.F64)), [][]float64{{1.5}}},
		{call("logsumexp", fs([]int{2, 2}, 1000, 1000, -inf, -inf), []int{1}), [][]float64{{1000 + math.Ln2, -inf}}},
		{call("logsumexp", vec(inf, 1), []int{0}), [][]float64{{inf}}},
		{call("logsumexp", fs([]int{0, 2}), []int{0}), [][]float64{{-inf, -inf}}},
		{call("logcumsumexp", vec(0, math.Ln2, math.Log(3)), 0), [][]float64{{0, math.Log(3), math.Log(6)}}},
		{call("logcumsumexp", fs([]int{2, 3}, -inf, -inf, 1, 1, -inf, 1), 1), [][]float64{{-inf, -inf, 1, 1, 1, 1 + math.Ln2}}},
		{call("logcumsumexp", fs([]int{2, 2}, 1, inf, inf, 2), 0), [][]float64{{1, inf, inf, inf}}},
		{call("logcumsumexp", vec(-inf, inf, -inf, inf, 1), 0), [][]float64{{-inf, inf, inf, inf, inf}}},
		{call("logcumsumexp", vec(1, 1, nan, inf, 2), 0), [][]float64{{1, 1 + math.Ln2, nan, nan, nan}}},
		{call("logcumsumexp", vec(nan, 1), 0), [][]float64{{nan, nan}}},
		{call("logcumsumexp", vec(-1e4, 0, 1e4, 1e4, -1e4), 0), [][]float64{{-1e4, 0, 1e4, 1e4 + math.Ln2, 1e4 + math.Ln2}}},
		{call("logcumsumexp", vec(0, -40), 0), [][]float64{{0, math.Exp(-40)}}},
		{call("logcumsumexp", fs([]int{2, 1}, 3, -inf), 1), [][]float64{{3, -inf}}},
		{call("logcumsumexp", fs([]int{2, 0}), 1), [][]float64{{}}},
		{call("logcumsumexp", fs([]int{0, 2}), 1), [][]float64{{}}},
		{call("logcumsumexp", fs(nil, 3), 0), [][]float64{{3}}},
		{call("_linear_scan", fs([]int{2, 3}, nan, 2, 3, nan, 0, -1), m, 1, false), [][]float64{{1, 4, 15, 4, 5, 1}}},
		{call("_linear_scan", fs([]int{2, 3}, 2, 3, nan, 0, -1, nan), m, 1, true), [][]float64{{23, 11, 3, 4, -1, 6}}},
		{call("_linear_scan", fs([]int{2, 3}, nan, nan, nan, 1, 2, 3), m, 0, false), [][]float64{{1, 2, 3, 5, 9, 15}}},
		{call("var", m, []int{1}), [][]float64{{1, 1}}},
		{call("var", vec(1, 2), ir.A("correction", 5)), [][]float64{{inf}}},
		{call("std", fs(nil, 3)), [][]float64{{nan}}},
		{call("var_mean", m, nil, ir.A("correction", 0)), [][]float64{{35. / 12}, {3.5}}},
		{call("norm", vec(3, -4)), [][]float64{{5}}},
		{call("norm", vec(3, -4), 1), [][]float64{{7}}},
		{call("norm", vec(3, 0, -4), 0), [][]float64{{2}}},
		{call("norm", vec(3, -4), inf), [][]float64{{4}}},
		{call("norm", m, -inf, []int{0}), [][]float64{{1, 2, 3}}},
		{call("norm", vec(1, 8), 1./3), [][]float64{{27}}},
		{call("linalg_vector_norm", ivec(3, -4), ir.A("dtype", ir.F64)), [][]float64{{5}}},
		{call("count_nonzero", fs([]int{2, 2}, 0, 1, nan, 0), []int{0}), [][]float64{{1, 1}}},

		{call("transpose", m, 0, 1), [][]float64{{1, 4, 2, 5, 3, 6}}},
		{call("movedim", fs([]int{1, 2, 3}, 1, 2, 3, 4, 5, 6), []int{2, 0}, []int{0, 1}), [][]float64{{1, 4, 2, 5, 3, 6}}},
		{call("diagonal", m, 1), [][]float64{{2, 6}}},
		{call("diagonal", m, -1), [][]float64{{4}}},
		{call("unfold", vec(1, 2, 3, 4, 5), 0, 3, 2), [][]float64{{1, 2, 3, 3, 4, 5}}},
		{call("unfold", m, 0, 1, 1), [][]float64{{1, 2, 3, 4, 5, 6}}},
		{call("repeat", vec(1, 2), []int{2, 2}), [][]float64{{1, 2, 1, 2, 1, 2, 1, 2}}},
		{call("repeat_interleave", m, 2, 1), [][]float64{{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}}},
		{call("repeat_interleave", vec(1, 2), 2), [][]float64{{1, 1, 2, 2}}},
		{call("select", m, 1, -1), [][]float64{{3, 6}}},
		{call("narrow", m, 1, -2, 2), [][]float64{{2, 3, 5, 6}}},
		{call("unbind", m), [][]float64{{1, 2, 3}, {4, 5, 6}}},
		{call("split", m, []int{1, 2}, 1), [][]float64{{1, 4}, {2, 3, 5, 6}}},
		{call("split", vec(1, 2, 3), 2), [][]float64{{1, 2}, {3}}},
		{call("chunk", vec(1, 2, 3), 2), [][]float64{{1, 2}, {3}}},
		{call("stack", []data{vec(1, 2), vec(3, 4)}, 1), [][]float64{{1, 3, 2, 4}}},
		{call("roll", m, -1), [][]float64{{2, 3, 4, 5, 6, 1}}},
		{call("roll", m, []int{3, 4}, []int{0, -1}), [][]float64{{6, 4, 5, 3, 1, 2}}},
		{call("pad", m, []int{1, 0}), [][]float64{{0, 1, 2, 3, 0, 4, 5, 6}}},
		{call("pad", m, []int{2, 1}, "reflect"), [][]float64{{3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5}}},
		{call("pad", m, []int{1, 2}, "replicate"), [][]float64{{1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 6, 6}}},
		{call("pad", m, []int{1, 2}, "circular"), [][]float64{{3, 1, 2, 3, 1, 2, 6, 4, 5, 6, 4, 5}}},
		{call("pad", m, []int{-1, 1}, "reflect"), [][]float64{{2, 3, 2, 5, 6, 5}}},

		{call("linalg_norm", fs([]int{2, 2}, 2, 1, 1, 3), "1"), [][]float64{{4}}},
		{call("linalg_norm", fs([]int{2, 2}, 2, 1, 1, 3), "nuc"), [][]float64{{5}}},
		{call("linalg_norm", vec(2, 1, 1, 3), "3.5"), [][]float64{{3.222601836349366}}},
		{call("linalg_cond", fs([]int{2, 2}, 2, 1, 1, 3), "1"), [][]float64{{3.2}}},
		{call("linalg_cond", fs([]int{2, 2}, 2, 1, 1, 3), "fro"), [][]float64{{3}}},
		{call("linalg_cond", fs([]int{2, 2}, 2, 1, 1, 3), "-2"), [][]float64{{0.3819660112501051}}},
		{call("detach", m), [][]float64{m.vals}},
		{call("as_strided_scatter", m, vec(7, 8), []int{2}, []int{4}, 1), [][]float64{{1, 7, 3, 4, 5, 8}}},
		{call("quantize_per_tensor", vec(-1, 0.24, 0.26, 0.75, 9), fs(nil, 0.5), is(nil, 1), 0, 5, ir.I64), [][]float64{{0, 1, 2, 3, 5}}},
		{call("quantize_per_channel", m, vec(1, 2, 4), ivec(0, 0, 1), 1, -8, 7, ir.I64), [][]float64{{1, 1, 2, 4, 2, 3}}},
		{call("dequantize_per_tensor", ivec(0, 3), fs(nil, 0.5), is(nil, 1), 0, 5, ir.I64, ir.A("out_dtype", ir.F64)), [][]float64{{-0.5, 1}}},
		{call("dequantize_per_channel", is([]int{2, 2}, 1, 2, 3, 4), vec(0.5, 2), nil, 0, 0, 5, ir.I64, ir.A("out_dtype", ir.F64)), [][]float64{{0.5, 1, 6, 8}}},
		{call("native_dropout", vec(1, 2), is(nil, 0), fs(nil, 0), true, 0), [][]float64{{1, 2}, {1, 1}}},
		{call("native_dropout", vec(1, 2), is(nil, 0), fs(nil, 1), true, 0), [][]float64{{0, 0}, {0, 0}}},
		{call("upsample_nearest1d", fs([]int{1, 1, 4}, 1, 2, 3, 4), []int{2}), [][]float64{{1, 3}}},
		{call("_upsample_nearest_exact1d", fs([]int{1, 1, 4}, 1, 2, 3, 4), []int{2}), [][]float64{{2, 4}}},
		{call("_native_batch_norm_legit_no_training", fs([]int{2, 1}, 1, 3), nil, nil, vec(1), vec(4), 0.1, 0.0), [][]float64{{0, 1}, {}, {}}},

		{call("scatter_add", vec(1, 2), 0, ivec(1, 1), vec(5, 6)), [][]float64{{1, 13}}},
		{call("index_copy", m, 1, ivec(2, 0), fs([]int{2, 2}, 7, 8, 9, 10)), [][]float64{{8, 2, 7, 10, 5, 9}}},
		{call("take", m, is([]int{1, 2}, -1, 3)), [][]float64{{6, 4}}},
		{call("take_along_dim", m, is([]int{1, 2}, -1, 0), 1), [][]float64{{3, 1, 6, 4}}},
		{call("take_along_dim", m, is([]int{1, 2}, 5, 0)), [][]float64{{6, 1}}},
		{call("index", m, []data{is([]int{2, 1}, 0, -1), ivec(2, 0)}), [][]float64{{3, 1, 6, 4}}},
		{call("index", m, []data{ivec(-1)}), [][]float64{{4, 5, 6}}},
		{call("index_put", m, []data{ivec(1, 1), ivec(0, 0)}, vec(7, 8)), [][]float64{{1, 2, 3, 8, 5, 6}}},
		{call("index_put", m, []data{ivec(1, 1), ivec(0, -3)}, vec(7, 8), true), [][]float64{{1, 2, 3, 19, 5, 6}}},
		{call("index_put", m, []data{bools([]int{2}, 0, 1)}, fs(nil, 9)), [][]float64{{1, 2, 3, 9, 9, 9}}},
		{call("index_put", m, []data{bools([]int{2, 3}, 1, 0, 0, 0, 0, 1)}, fs(nil, 9), true), [][]float64{{10, 2, 3, 4, 5, 15}}},
		{call("embedding", m, is([]int{1, 2}, 1, 0)), [][]float64{{4, 5, 6, 1, 2, 3}}},
		{call("one_hot", ivec(1, 0, 5), 2), [][]float64{{0, 1, 1, 0, 0, 0}}},
		{call("topk", vec(3, nan, 5, 5), 3), [][]float64{{nan, 5, 5}, {1, 2, 3}}},
		{call("topk", m, 1, 0, false), [][]float64{{1, 2, 3}, {0, 0, 0}}},
		{call("argsort", vec(3, 1, 2), 0, true), [][]float64{{0, 2, 1}}},
		{call("tril", m, 1), [][]float64{{1, 2, 0, 4, 5, 6}}},
		{call("triu", m, 1), [][]float64{{0, 2, 3, 0, 0, 6}}},
		{call("eye", 2, 3, ir.F64), [][]float64{{1, 0, 0, 0, 1, 0}}},
		{call("zeros_like", vec(1, 2)), [][]float64{{0, 0}}},
		{call("ones_like", vec(1, 2), ir.A("dtype", ir.I64)), [][]float64{{1, 1}}},
		{call("full_like", vec(1, 2), fs(nil, 7)), [][]float64{{7, 7}}},
	})
}

// valueCase is a call and the elements of its outputs.
type valueCase struct {
	opCall
	want [][]float64
}

func checkValues(t *testing.T, cases []valueCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			ds := c.operands()
			vals := graph.NewParams(params(ds))
			p := graph.FromValues(c.op, vals, c.record(&ir.Builder{}, vals))
			got := eval(t, lowered(p), ds)
			if len(got) != len(c.want) {
				t.Fatalf("%v: %d outputs, want %d", c.opCall, len(got), len(c.want))
			}
			for i := range got {
				if !sameFloats(got[i], c.want[i]) {
					t.Errorf("%v: output %d is %v, want %v", c.opCall, i, got[i], c.want[i])
				}
			}
		})
	}
}

// TestIndexOutside checks that a place outside one dimension is an error even
// where its flat position exists.
func TestIndexOutside(t *testing.T) {
	m := fs([]int{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, c := range []opCall{
		call("index", m, []data{ivec(0), ivec(4)}),
		call("index", m, []data{ivec(1), ivec(-4)}),
		call("index", m, []data{ivec(-3)}),
		call("index_put", m, []data{ivec(2), ivec(-3)}, fs(nil, 1)),
		call("take", m, ivec(6)),
		call("gather", m, 1, is([]int{1, 1}, -1)),
	} {
		ds := c.operands()
		vals := graph.NewParams(params(ds))
		p := lowered(graph.FromValues(c.op, vals, c.record(&ir.Builder{}, vals)))
		if err := evalError(p, ds); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("%v: error %v, want one wrapping ErrIndex", c, err)
		}
	}
}
