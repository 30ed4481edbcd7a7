package ir_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/opinfo"
)

// TestNeuralValues holds what PyTorch's vectors do not cover; the numbers are
// PyTorch's or follow from the definition.
func TestNeuralValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	a := fs([]int{2, 3}, 0, 1, 2, 3, 4, 5)
	b := fs([]int{3, 4}, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6)
	ab := []float64{5, 8, 11, 14, -4, 8, 20, 32}
	s := fs([]int{3, 3}, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	ones := func(n int) data { return fs([]int{1, 1, n}, slices.Repeat([]float64{1}, n)...) }
	none := ir.A("reduction", "none")
	checkValues(t, []valueCase{
		{call("einsum", "ij,jk", []data{a, b}), [][]float64{ab}},
		{call("einsum", "bA,A...->b...", []data{a, b}), [][]float64{ab}},
		{call("einsum", "ba", []data{a}), [][]float64{{0, 3, 1, 4, 2, 5}}},
		{call("einsum", " i j -> j i ", []data{a}), [][]float64{{0, 3, 1, 4, 2, 5}}},
		{call("einsum", "ii", []data{s}), [][]float64{{12}}},
		{call("einsum", "ii->i", []data{s}), [][]float64{{0, 4, 8}}},
		{call("einsum", "...", []data{a}), [][]float64{{0, 1, 2, 3, 4, 5}}},
		{call("einsum", "...a,...a->...", []data{a, a}), [][]float64{{5, 50}}},
		{call("einsum", "i...->i", []data{a}), [][]float64{{3, 12}}},
		{call("einsum", "ij,j", []data{a, vec(1, 2, 3)}), [][]float64{{8, 26}}},
		{call("einsum", "a,b,ab->ba", []data{vec(1, 2), vec(3, 4, 5), a}), [][]float64{{0, 18, 4, 32, 10, 50}}},
		{call("einsum", "ij,jk->ik", []data{fs([]int{2, 0}), fs([]int{0, 1})}), [][]float64{{0, 0}}},
		{call("addmm", vec(nan), fs([]int{1, 1}, 2), fs([]int{1, 1}, 3), ir.A("beta", fs(nil, 0)), ir.A("alpha", fs(nil, 10))), [][]float64{{60}}},

		{call("softmax", fs([]int{2, 2}, 1000, 1000, -inf, -inf), 1), [][]float64{{0.5, 0.5, nan, nan}}},
		{call("log_softmax", vec(0, -inf), 0), [][]float64{{0, -inf}}},
		// A row that sees nothing is 0, not NaN.
		{call("scaled_dot_product_attention", fs([]int{2, 1}, 1, 1), fs([]int{2, 1}, 1, 1), fs([]int{2, 1}, 3, 5),
			bools([]int{2, 2}, 1, 1, 0, 0)), [][]float64{{4, 0}}},
		{call("batch_norm", fs([]int{2, 1}, 1, 3), nil, nil, nil, nil, true, fs(nil, 0.1), 0.0), [][]float64{{-1, 1}, {2}, {2}}},
		{call("batch_norm", fs([]int{1, 2}, 4, 8), nil, vec(0, 1), vec(2, 0), vec(4, 16), false, fs(nil, 0.1), 0.0), [][]float64{{1, 3}, {2, 0}, {4, 16}}},
		{call("batch_norm", fs([]int{2, 1}, 1, 3), nil, nil, vec(0), vec(1), true, fs(nil, 0.5), 0.0), [][]float64{{-1, 1}, {1}, {1.5}}},

		{call("avg_pool1d", ones(5), 3, 2, 1, true), [][]float64{{2. / 3, 1, 2. / 3}}},
		{call("avg_pool1d", ones(6), 3, 3, 1, true), [][]float64{{2. / 3, 1, 0.5}}},
		{call("avg_pool1d", ones(6), 3, 3, 1, true, false), [][]float64{{1, 1, 1}}},
		{call("adaptive_avg_pool1d", fs([]int{1, 1, 4}, 1, inf, 3, 4), 3), [][]float64{{inf, inf, 3.5}}},
		{call("max_pool1d_with_indices", fs([]int{1, 1, 4}, 1, 5, 5, nan), 3, 1), [][]float64{{5, nan}, {1, 3}}},
		{call("conv1d", is([]int{1, 1, 3}, 1, 2, 3), is([]int{1, 1, 2}, 1, 10), ivec(100)), [][]float64{{121, 132}}},
		{call("avg_pool1d", is([]int{1, 1, 4}, 1, 2, -3, -4), 2), [][]float64{{1, -3}}},

		{call("interpolate", fs([]int{1, 1, 4}, 1, 2, 3, 4), nil, 0.5, "nearest"), [][]float64{{1, 3}}},
		{call("interpolate", fs([]int{1, 1, 4}, 1, 2, 3, 4), 2, nil, "nearest-exact"), [][]float64{{2, 4}}},
		{call("interpolate", fs([]int{1, 1, 2}, 1, 2), 4, nil, "linear"), [][]float64{{1, 1.25, 1.75, 2}}},
		{call("interpolate", fs([]int{1, 1, 2}, 1, 2), 3, nil, "linear", true), [][]float64{{1, 1.5, 2}}},
		// The factor, not the sizes, says where positions lie.
		{call("interpolate", fs([]int{1, 1, 3}, 0, 12, 24), nil, 1.2, "linear"), [][]float64{{0, 9, 19}}},
		{call("interpolate", fs([]int{1, 1, 4}, 1, 2, 3, 4), 2, nil, "area"), [][]float64{{1.5, 3.5}}},

		// An ignored target counts nothing, even where the score is infinite.
		{call("nll_loss", fs([]int{2, 2}, -inf, -inf, -1, -2), ivec(-100, 1)), [][]float64{{2}}},
		{call("cross_entropy", fs([]int{2, 2}, inf, nan, 0, 0), ivec(-100, 1), none), [][]float64{{0, math.Ln2}}},
		{call("cross_entropy", fs([]int{1, 2}, 0, 0), ivec(-100)), [][]float64{{nan}}},
		{call("cross_entropy", fs([]int{0, 2}), ivec(), none), [][]float64{{}}},
		{call("kl_div", fs([]int{2, 1}, -1, 5), fs([]int{2, 1}, 1, 0), "batchmean"), [][]float64{{0.5}}},
		{call("binary_cross_entropy", vec(0, 1), vec(1, 1), none), [][]float64{{100, 0}}},
		{call("binary_cross_entropy_with_logits", vec(-1000, 1000), vec(1, 1), none), [][]float64{{1000, 0}}},
		{call("cosine_similarity", fs([]int{2, 2}, 0, 0, 3, 4), fs([]int{2, 2}, 1, 0, 6, 8)), [][]float64{{0, 1}}},
		{call("huber_loss", vec(0, 0), vec(1, 4), "none", 2.0), [][]float64{{0.5, 6}}},
		{call("smooth_l1_loss", vec(0, 0), vec(1, 4), "none", 2.0), [][]float64{{0.25, 3}}},

		{call("dropout", vec(1, 2), is(nil, 0), fs(nil, 1), true, 0), [][]float64{{0, 0}}},
		{call("dropout", vec(1, 2), is(nil, 0), fs(nil, 0), true, 0), [][]float64{{1, 2}}},
		{call("dropout", vec(1, 2), is(nil, 0), fs(nil, 0.9), false, 0), [][]float64{{1, 2}}},
		{call("bernoulli", vec(0, 1), is(nil, 3), 0), [][]float64{{0, 1}}},
	})
}

// TestNearestRounds holds the positions of nearest interpolation, where the
// rounding of f32 and f64 decides, to PyTorch's: how often each source element
// is read.
func TestNearestRounds(t *testing.T) {
	for _, c := range []struct {
		dtype   ir.DType
		mode    string
		in, out int
		want    []int
	}{
		{ir.F32, "nearest-exact", 2, 41, []int{20, 21}},
		{ir.F32, "nearest", 6, 74, []int{13, 12, 13, 12, 12, 12}},
		{ir.F32, "nearest-exact", 4, 61, []int{15, 16, 15, 15}},
		{ir.F64, "nearest-exact", 2, 41, []int{20, 21}},
		{ir.F64, "nearest", 6, 74, []int{13, 12, 12, 13, 12, 12}},
		{ir.F64, "nearest-exact", 4, 61, []int{15, 15, 16, 15}},
	} {
		vals := make([]float64, c.in)
		for i := range vals {
			vals[i] = float64(i)
		}
		op, _ := ir.Lookup("interpolate")
		out, err := compute([]opinfo.Tensor{floats(c.dtype, []int{1, 1, c.in}, vals...)}, func(b *ir.Builder, w *graph.Walker, in []ir.Value) []ir.Value {
			return b.Call(op, []any{in[0], c.out}, ir.A("mode", c.mode))
		})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int, c.in)
		for _, v := range out[0].Float64s() {
			got[int(v)]++
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v %s from %d to %d: reads %v, want %v", c.dtype, c.mode, c.in, c.out, got, c.want)
		}
	}
}

func TestClassOutside(t *testing.T) {
	x := fs([]int{1, 3}, 1, 2, 3)
	for _, c := range []opCall{
		call("cross_entropy", x, ivec(3)),
		call("cross_entropy", x, ivec(-1), ir.A("label_smoothing", 0.5)),
		call("nll_loss", x, ivec(3), vec(1, 1, 1)),
		call("nll_loss", x, ivec(-2)),
	} {
		ds := c.operands()
		vals := graph.NewParams(params(ds))
		p := lowered(graph.FromValues(c.op, vals, c.record(&ir.Builder{}, vals)))
		if err := evalError(p, ds); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("%v: error %v, want one wrapping ErrIndex", c, err)
		}
	}
}

// first computes the first output of a call.
func first(t *testing.T, c opCall) []float64 {
	t.Helper()
	ds := c.operands()
	vals := graph.NewParams(params(ds))
	return eval(t, lowered(graph.FromValues(c.op, vals, c.record(&ir.Builder{}, vals))), ds)[0]
}

func TestRandomComposites(t *testing.T) {
	const n = 4000
	seed := is(nil, 42)
	p := fs([]int{n}, slices.Repeat([]float64{0.3}, n)...)
	count := func(v []float64, x float64) (c int) {
		for _, e := range v {
			if e == x {
				c++
			}
		}
		return c
	}
	// The bounds are five standard deviations; the seed is fixed.
	hits := first(t, call("bernoulli", p, seed, 0))
	if k := count(hits, 1); k < 1055 || k > 1345 || k+count(hits, 0) != n {
		t.Errorf("bernoulli(0.3): %d of %d", k, n)
	}
	if slices.Equal(hits, first(t, call("bernoulli", p, seed, 1))) {
		t.Error("bernoulli does not depend on the offset")
	}
	kept := first(t, call("dropout", p, seed, fs(nil, 0.25), true, 7))
	if k := n - count(kept, 0); k < 2863 || k > 3137 || k != count(kept, slices.Max(kept)) || math.Abs(slices.Max(kept)-0.4) > 1e-12 {
		t.Errorf("dropout(0.25) keeps %d of %d and scales 0.3 to %v", k, n, slices.Max(kept))
	}
	perm := first(t, call("randperm", seed, 100, 0))
	if slices.IsSorted(perm) {
		t.Error("randperm leaves the order")
	}
	slices.Sort(perm)
	for i, v := range perm {
		if v != float64(i) {
			t.Fatalf("randperm lacks %d", i)
		}
	}
}
