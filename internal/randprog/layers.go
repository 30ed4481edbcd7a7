package randprog

import "github.com/loris-ml/loris/internal/ir"

// shaped returns a register of the given dimensions and dtype, made of the
// elements of another one.
func (g *gen) shaped(r Reg, d ir.DType, dims ...int) (Reg, bool) {
	n := 1
	for _, k := range dims {
		n *= k
	}
	have := g.p.Shapes[r].Numel()
	if have == 0 || n == 0 {
		return 0, false
	}
	r, ok := g.call1("reshape", r, []int{-1})
	if ok && have < n {
		r, ok = g.call1("repeat", r, []int{(n + have - 1) / have})
	}
	if ok {
		r, ok = g.call1("slice", r, 0, nil, n, 1)
	}
	if ok {
		r, ok = g.call1("reshape", r, dims)
	}
	if ok && g.p.Shapes[r].DType() != d {
		r, ok = g.call1("cast", r, d)
	}
	return r, ok
}

// layer is an op of linear algebra or neural nets on operands of shapes that fit
// together.
func (g *gen) layer() {
	d := choose(g, []ir.DType{ir.F32, ir.F32, ir.F64, ir.BF16, ir.F16}, 0)
	l := layers[g.rng.IntN(len(layers))]
	args := append([]any(nil), l.args...)
	for i, a := range args {
		switch a := a.(type) {
		case []dim:
			src, ok := g.pick(floatReg)
			if !ok {
				return
			}
			r, ok := g.shaped(src, d, sizes(a)...)
			if !ok {
				return
			}
			args[i] = r
		case coin:
			args[i] = g.one(2)
		case small:
			args[i] = []int{int(a) + g.rng.IntN(2)}
		}
	}
	g.call1(l.op, args...)
}

type (
	dim   int // of an operand
	coin  struct{}
	small int // a list of one int, this or one more
)

func sizes(dims []dim) []int {
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = int(d)
	}
	return out
}

var layers = []struct {
	op   string
	args []any
}{
	{"matmul", []any{[]dim{3, 4}, []dim{4, 2}}},
	{"matmul", []any{[]dim{2, 1, 3, 4}, []dim{2, 4, 3}}},
	{"mm", []any{[]dim{5, 3}, []dim{3, 5}}},
	{"mv", []any{[]dim{5, 3}, []dim{3}}},
	{"bmm", []any{[]dim{2, 3, 4}, []dim{2, 4, 3}}},
	{"addmm", []any{[]dim{1, 2}, []dim{3, 4}, []dim{4, 2}, Num{Base: 0.5, Slope: 0.25}, Num{Base: 2}}},
	{"addmv", []any{[]dim{3}, []dim{3, 4}, []dim{4}, Num{Base: 1}, Num{Base: 0.5, Slope: 0.5}}},
	{"baddbmm", []any{[]dim{2, 3, 3}, []dim{2, 3, 4}, []dim{2, 4, 3}, Num{Base: 1}, Num{Base: 1}}},
	{"linear", []any{[]dim{2, 2, 4}, []dim{3, 4}, []dim{3}}},
	{"conv1d", []any{[]dim{2, 2, 6}, []dim{4, 1, 3}, []dim{4}, small(1), small(0), small(1), 2, ""}},
	{"conv2d", []any{[]dim{1, 2, 5, 4}, []dim{3, 2, 2, 2}, nil, small(1), small(0), small(1), 1, ""}},
	{"conv2d", []any{[]dim{2, 2, 3, 3}, []dim{2, 2, 3, 3}, []dim{2}, []int{1}, []int{0}, []int{1}, 1, "same"}},
	{"conv3d", []any{[]dim{1, 1, 3, 3, 3}, []dim{2, 1, 2, 2, 2}, []dim{2}, small(1), small(0), []int{1}, 1, ""}},
	{"conv_transpose2d", []any{[]dim{1, 2, 3, 2}, []dim{2, 2, 2, 2}, []dim{2}, small(1), []int{0}, []int{0}, 1, []int{1}}},
	{"conv_transpose1d", []any{[]dim{2, 2, 4}, []dim{2, 1, 3}, nil, []int{2}, small(0), small(0), 2, []int{1}}},
	{"max_pool2d", []any{[]dim{1, 2, 5, 4}, []int{2}, small(1), small(0), []int{1}, coin{}}},
	{"avg_pool2d", []any{[]dim{2, 1, 4, 5}, []int{2}, small(1), small(0), coin{}, coin{}, nil}},
	{"interpolate", []any{[]dim{1, 2, 3, 3}, []int{4, 5}, nil, "bilinear", coin{}}},
	{"batch_norm", []any{[]dim{4, 3, 2}, []dim{3}, []dim{3}, nil, nil, true, Num{Base: 0.1}, 0.01}},
	{"layer_norm", []any{[]dim{3, 5}, []int{5}, []dim{5}, []dim{5}, 0.01}},
	{"group_norm", []any{[]dim{2, 4, 3}, 2, []dim{4}, []dim{4}, 0.01}},
	{"rms_norm", []any{[]dim{3, 5}, []int{5}, []dim{5}, 0.01}},
	{"softmax", []any{[]dim{3, 5}, -1, nil}},
	{"log_softmax", []any{[]dim{3, 5}, 0, nil}},
	{"scaled_dot_product_attention", []any{[]dim{2, 4, 3}, []dim{2, 4, 3}, []dim{2, 4, 3}, nil, coin{}, nil, false}},
	{"mse_loss", []any{[]dim{3, 4}, []dim{3, 4}, "mean"}},
}
