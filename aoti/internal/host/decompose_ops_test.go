//go:build linux && cgo

package host

import (
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// cooked computes an op for CUDA by its decomposition on the CPU.
func cooked(t *testing.T, name string, results int, args ...any) []*tensor {
	t.Helper()
	outs := make([]*tensor, results)
	for i := range outs {
		args = append(args, &outs[i])
	}
	if err := invokeBy(t, byProgram(name), name, args...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = discard(outs) })
	return outs
}

func TestDecompositionOfLSTMCell(t *testing.T) {
	x, h, c, bias := waves(t, 1, 2, 12), waves(t, 2, 2, 12), waves(t, 3, 2, 3), waves(t, 4, 12)
	outs := cooked(t, "cuda__thnn_fused_lstm_cell", 3, x, h, c, bias, nil)
	xs, hs, cs, bs := numbers(t, x), numbers(t, h), numbers(t, c), numbers(t, bias)
	var hy, cy []float64
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for i := range 6 {
		gate := func(g int) float64 { at := i/3*12 + g*3 + i%3; return xs[at] + hs[at] + bs[g*3+i%3] }
		s := sigmoid(gate(1))*cs[i] + sigmoid(gate(0))*math.Tanh(gate(2))
		cy = append(cy, s)
		hy = append(hy, sigmoid(gate(3))*math.Tanh(s))
	}
	closeTo(t, "the hidden state", numbers(t, outs[0]), hy)
	closeTo(t, "the cell", numbers(t, outs[1]), cy)
	if got := intsOf(sizesOf(outs[2])); !slices.Equal(got, []int{2, 12}) {
		t.Errorf("the gates are %v", got)
	}
}

// A group's rows, columns or what is added up are its alone, and scales of rows and
// columns are those of the operands.
func TestDecompositionOfGroups(t *testing.T) {
	x, y, ends := waves(t, 1, 5, 4), waves(t, 2, 3, 4, 2), tensorOf(t, ir.I32, []float64{2, 2, 5}, 3)
	rows, cols := waves(t, 3, 5), waves(t, 4, 3, 2)
	plain := numbers(t, cooked(t, "cuda__grouped_mm", 1, x, y, ends, nil, nil)[0])
	scaled := numbers(t, cooked(t, "cuda__scaled_grouped_mm", 1, x, y, rows, cols, ends, nil, nil, nil, false)[0])
	r, c := numbers(t, rows), numbers(t, cols)
	var want []float64
	for i, v := range plain {
		group := 0
		if i/2 >= 2 {
			group = 2
		}
		want = append(want, v*r[i/2]*c[group*2+i%2])
	}
	closeTo(t, "scaled", scaled, want)
}

func TestDecompositionsThatDraw(t *testing.T) {
	SetSeed(1)
	defer SetSeed(DefaultSeed)
	const n = 4000
	like := turned(t, waves(t, 1, 40, 100), 0, 1)
	for _, c := range []struct {
		name      string
		args      []any
		mean, dev float64
	}{
		{"cuda_rand", []any{[]int64{n}, nil, nil, nil, 0, nil}, 0.5, math.Sqrt(1.0 / 12)},
		{"cuda_randn", []any{[]int64{n}, nil, nil, nil, 0, nil}, 0, 1},
		{"cuda_rand_like", []any{like, nil, nil, nil, 0, nil, nil}, 0.5, math.Sqrt(1.0 / 12)},
		{"cuda_randint_low", []any{2, 6, []int64{n}, nil, nil, nil, 0, nil}, 3.5, math.Sqrt(1.25)},
		{"cuda_uniform", []any{like, 1.0, 3.0, nil}, 2, math.Sqrt(4.0 / 12)},
		{"cuda_normal_functional", []any{like, 2.0, 0.5, nil}, 2, 0.5},
		{"cuda_exponential", []any{like, 4.0, nil}, 0.25, 0.25},
	} {
		first := cooked(t, c.name, 1, c.args...)[0]
		x, again := numbers(t, first), numbers(t, cooked(t, c.name, 1, c.args...)[0])
		var mean, square float64
		for _, v := range x {
			mean += v / n
			square += v * v / n
		}
		if dev := math.Sqrt(square - mean*mean); len(x) != n || math.Abs(mean-c.mean) > 0.1*max(1, c.mean) || math.Abs(dev-c.dev) > 0.1 {
			t.Errorf("%s: %d numbers of mean %v and deviation %v", c.name, len(x), mean, dev)
		}
		if slices.Equal(x, again) {
			t.Errorf("%s draws the same numbers twice", c.name)
		}
		if first.ndim == 2 && !slices.Equal(stridesOf(first), stridesOf(like)) {
			t.Errorf("%s: strides %v", c.name, stridesOf(first))
		}
	}
	perm := numbers(t, cooked(t, "cuda_randperm", 1, 50, nil, nil, nil, 0, nil)[0])
	slices.Sort(perm)
	for i, x := range perm {
		if x != float64(i) {
			t.Fatalf("randperm: %v", perm)
		}
	}
	x := waves(t, 2, n)
	train := int32(1)
	outs := cooked(t, "cuda_native_dropout", 2, x, 0.25, &train)
	kept := 0.0
	in, out := numbers(t, x), numbers(t, outs[0])
	for i, k := range numbers(t, outs[1]) {
		kept += k
		if want := in[i] * k / 0.75; math.Abs(out[i]-want) > 1e-5 {
			t.Fatalf("dropout of %v is %v, kept: %v", in[i], out[i], k)
		}
	}
	if math.Abs(kept/n-0.75) > 0.05 {
		t.Errorf("dropout keeps %v of %d", kept, n)
	}
}

// A view of other sizes is one where and only where PyTorch's rules allow it.
func TestReshapedStrides(t *testing.T) {
	x := waves(t, 1, 2, 3, 4)
	for _, c := range []struct {
		t     *tensor
		sizes []int64
		want  []int64 // nil for none
	}{
		{x, []int64{6, 4}, []int64{4, 1}},
		{x, []int64{24}, []int64{1}},
		{x, []int64{2, 1, 3, 2, 2}, []int64{12, 12, 4, 2, 1}},
		{turned(t, x, 0, 1), []int64{6, 4}, nil},
		{turned(t, x, 0, 1), []int64{3, 2, 2, 2}, []int64{4, 12, 2, 1}},
		{turned(t, x, 1, 2), []int64{2, 12}, nil},
		{turned(t, x, 1, 2), []int64{2, 2, 2, 3}, []int64{12, 2, 1, 4}},
	} {
		got, ok := reshapedStrides(c.t, c.sizes)
		for i, n := range c.sizes {
			if n == 1 && ok && c.want != nil {
				got[i] = c.want[i] // says nothing
			}
		}
		if ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%v with strides %v as %v: %v, %v", sizesOf(c.t), stridesOf(c.t), c.sizes, got, ok)
		}
	}
}
