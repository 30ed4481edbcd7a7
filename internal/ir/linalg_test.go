package ir_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// run makes one use of an op found by name.
func run(b *ir.Builder, name string, args ...any) []ir.Value {
	var pos []any
	var named []ir.Named
	for _, a := range args {
		if n, ok := a.(ir.Named); ok {
			named = append(named, n)
		} else {
			pos = append(pos, a)
		}
	}
	return b.Call(mustOp(name), pos, named...)
}

// definite makes symmetric positive-definite matrices of any square ones.
func definite(b *ir.Builder, x ir.Value) ir.Value {
	n := x.Dim(-1)
	return b.Add(b.MatMul(x, b.Transpose(x, -1, -2)), run(b, "eye", n, ir.A("dtype", ir.F64))[0])
}

// identities are Programs whose results are 0.
var identities = []struct {
	name  string
	dims  []int
	build func(b *ir.Builder, x ir.Value) ir.Value
}{
	{"cholesky", []int{2, 4, 4}, func(b *ir.Builder, x ir.Value) ir.Value {
		a := definite(b, x)
		l := run(b, "linalg_cholesky", a)[0]
		return b.Sub(b.MatMul(l, b.Transpose(l, -1, -2)), a)
	}},
	{"lu", []int{2, 4, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		f := run(b, "linalg_lu", x)
		return b.Sub(b.MatMul(f[0], b.MatMul(f[1], f[2])), x)
	}},
	{"qr", []int{2, 4, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		f := run(b, "linalg_qr", x)
		return b.Sub(b.MatMul(f[0], f[1]), x)
	}},
	{"complete qr", []int{4, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		f := run(b, "linalg_qr", x, "complete")
		return b.Sub(b.MatMul(f[0], f[1]), x)
	}},
	{"ormqr", []int{4, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		f := run(b, "geqrf", x)
		r := run(b, "ormqr", f[0], f[1], x, true, true)[0]
		return b.Sub(r, run(b, "triu", f[0])[0])
	}},
	{"svd", []int{2, 3, 5}, func(b *ir.Builder, x ir.Value) ir.Value {
		f := run(b, "linalg_svd", x, false)
		return b.Sub(b.MatMul(b.Mul(f[0], b.Unsqueeze(f[1], -2)), f[2]), x)
	}},
	{"eigh", []int{2, 4, 4}, func(b *ir.Builder, x ir.Value) ir.Value {
		a := definite(b, x)
		f := run(b, "linalg_eigh", a)
		return b.Sub(b.MatMul(a, f[1]), b.Mul(f[1], b.Unsqueeze(f[0], -2)))
	}},
	{"eig", []int{4, 4}, func(b *ir.Builder, x ir.Value) ir.Value {
		f := run(b, "linalg_eig", x)
		a := b.Cast(x, ir.C128)
		return b.Unary(aten.ViewAsReal, b.Sub(b.MatMul(a, f[1]), b.Mul(f[1], b.Unsqueeze(f[0], 0))))
	}},
	{"inverse", []int{2, 3, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Sub(b.MatMul(x, run(b, "linalg_inv", x)[0]), run(b, "eye", 3, ir.A("dtype", ir.F64))[0])
	}},
	{"solve from the right", []int{2, 3, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		y := b.Slice(x, 1, 0, 2, 1)
		return b.Sub(b.MatMul(run(b, "linalg_solve", x, y, ir.A("left", false))[0], x), y)
	}},
	{"pinv", []int{4, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Sub(b.MatMul(x, b.MatMul(run(b, "linalg_pinv", x)[0], x)), x)
	}},
	{"cholesky_solve", []int{3, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		a := definite(b, x)
		l := run(b, "linalg_cholesky", a, ir.A("upper", true))[0]
		return b.Sub(b.MatMul(a, run(b, "cholesky_solve", x, l, true)[0]), x)
	}},
	{"determinants", []int{2, 3, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		f := run(b, "linalg_slogdet", x)
		return b.Sub(run(b, "linalg_det", x)[0], b.Mul(f[0], b.Exp(f[1])))
	}},
	{"matrix_exp", []int{3, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Sub(b.MatMul(b.Unary(aten.LinalgMatrixExp, x), b.Unary(aten.LinalgMatrixExp, b.Neg(x))), run(b, "eye", 3, ir.A("dtype", ir.F64))[0])
	}},
	{"matrix_power", []int{3, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Sub(b.MatMul(run(b, "linalg_matrix_power", x, 3)[0], run(b, "linalg_matrix_power", x, -2)[0]), x)
	}},
	{"fftn and back", []int{3, 4, 5}, func(b *ir.Builder, x ir.Value) ir.Value {
		y := run(b, "fft_ifftn", run(b, "fft_fftn", x)[0])[0]
		return b.Sub(run(b, "real", y)[0], x)
	}},
	{"rfft2 and back", []int{3, 4, 5}, func(b *ir.Builder, x ir.Value) ir.Value {
		y := run(b, "fft_rfft2", x, ir.A("norm", "ortho"))[0]
		return b.Sub(run(b, "fft_irfft2", y, []int{4, 5}, ir.A("norm", "ortho"))[0], x)
	}},
	{"stft and back", []int{2, 20}, func(b *ir.Builder, x ir.Value) ir.Value {
		window := run(b, "hann_window", 8, ir.A("dtype", ir.F64))[0]
		y := run(b, "stft", x, 8, 2, nil, window, true)[0]
		return b.Sub(run(b, "istft", y, 8, 2, nil, window, ir.A("length", 20))[0], x)
	}},
	{"two-sided stft and back", []int{20}, func(b *ir.Builder, x ir.Value) ir.Value {
		y := run(b, "stft", x, 8, ir.A("normalized", true), ir.A("onesided", false))[0]
		back := run(b, "istft", y, 8, ir.A("normalized", true), ir.A("onesided", false), ir.A("center", false), ir.A("return_complex", true))[0]
		return b.Sub(run(b, "real", back)[0], x)
	}},
	{"lstsq leaves what is orthogonal", []int{5, 3}, func(b *ir.Builder, x ir.Value) ir.Value {
		y := b.Slice(x, 1, 0, 1, 1)
		y = b.Add(b.Mul(y, y), b.Cast(b.Iota(5, ir.I64), ir.F64))
		y = b.Reshape(b.Sum(y, []int{1}, false), 5)
		solution := run(b, "linalg_lstsq", x, y)[0]
		return b.MatMul(b.Transpose(x, 0, 1), b.Sub(b.MatMul(x, solution), y))
	}},
	{"rfft is the half of fft", []int{3, 7}, func(b *ir.Builder, x ir.Value) ir.Value {
		y := run(b, "fft_fft", x, ir.A("n", 6))[0]
		return b.Unary(aten.ViewAsReal, b.Sub(run(b, "fft_rfft", x, ir.A("n", 6))[0], b.Slice(y, 1, 0, 4, 1)))
	}},
	{"hfft and back", []int{3, 8}, func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Sub(run(b, "fft_hfft", run(b, "fft_ihfft", x)[0], 8)[0], x)
	}},
	{"shift and back", []int{3, 5}, func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Sub(run(b, "fft_ifftshift", run(b, "fft_fftshift", x)[0])[0], x)
	}},
	{"a wave", []int{1}, func(b *ir.Builder, x ir.Value) ir.Value {
		wave := b.Unary(aten.Cos, b.Call1(aten.Mul, []any{b.Iota(8, ir.F64), b.Const(2*3.141592653589793/8, ir.F64)}))
		want := b.Cat([]ir.Value{b.Full([]int{1}, 0, ir.F64), b.Full([]int{1}, 4, ir.F64), b.Full([]int{5}, 0, ir.F64), b.Full([]int{1}, 4, ir.F64)}, 0)
		return b.Sub(run(b, "real", run(b, "fft_fft", wave)[0])[0], want)
	}},
}

func TestLinearAlgebraAndTransforms(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, c := range identities {
		x := rnd(rng, c.dims...)
		vals := graph.NewParams(params([]data{x}))
		var b ir.Builder
		p := lowered(graph.FromValues(c.name, vals, []ir.Value{c.build(&b, vals[0])}))
		for i, v := range eval(t, p, []data{x})[0] {
			if !(v*v < 1e-22) {
				t.Errorf("%s: element %d is off by %v", c.name, i, v)
			}
		}
	}
}

func TestGradientsOfFactorisations(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	square, tall, wide := rnd(rng, 2, 3, 3), rnd(rng, 2, 4, 3), rnd(rng, 3, 4)
	spread := fs([]int{3, 3}, 3, 0.2, -0.1, 0.3, 1.7, 0.4, 0.1, -0.2, 0.6)
	on := func(name string, x data, build func(b *ir.Builder, x ir.Value) []ir.Value) opCall {
		return opCall{op: name, args: []any{x}, build: func(b *ir.Builder, v []ir.Value) []ir.Value { return build(b, v[0]) }}
	}
	symmetric := func(b *ir.Builder, x ir.Value) ir.Value { return b.Add(x, b.Transpose(x, -1, -2)) }
	abs := func(b *ir.Builder, xs []ir.Value) []ir.Value { // vectors have arbitrary signs
		for i := range xs {
			xs[i] = b.Mul(xs[i], xs[i])
		}
		return xs
	}
	checkGradients(t, rng, 1, []opCall{
		on("cholesky", square, func(b *ir.Builder, x ir.Value) []ir.Value { return run(b, "linalg_cholesky", definite(b, x)) }),
		on("upper cholesky", square, func(b *ir.Builder, x ir.Value) []ir.Value {
			return run(b, "linalg_cholesky", definite(b, x), ir.A("upper", true))
		}),
		on("lu", spread, func(b *ir.Builder, x ir.Value) []ir.Value { return run(b, "linalg_lu", x)[1:] }),
		on("qr", tall, func(b *ir.Builder, x ir.Value) []ir.Value { return run(b, "linalg_qr", x) }),
		on("wide qr", wide, func(b *ir.Builder, x ir.Value) []ir.Value { return run(b, "linalg_qr", x) }),
		call("linalg_inv", spread), call("linalg_det", square), call("linalg_slogdet", spread),
		call("linalg_solve", spread, rnd(rng, 3, 2)), call("linalg_solve", spread, rnd(rng, 3)),
		call("linalg_solve", spread, rnd(rng, 2, 3), ir.A("left", false)),
		call("linalg_solve_triangular", spread, rnd(rng, 2, 3, 2), ir.A("upper", true)),
		call("linalg_solve_triangular", spread, rnd(rng, 2, 3), ir.A("upper", false), ir.A("left", false)),
		call("linalg_solve_triangular", spread, rnd(rng, 3, 2), ir.A("upper", true), ir.A("unitriangular", true)),
		on("eigh", spread, func(b *ir.Builder, x ir.Value) []ir.Value { return abs(b, run(b, "linalg_eigh", symmetric(b, x))) }),
		on("svd", spread, func(b *ir.Builder, x ir.Value) []ir.Value { return abs(b, run(b, "linalg_svd", x)) }),
		on("tall svd", rnd(rng, 4, 2), func(b *ir.Builder, x ir.Value) []ir.Value { return abs(b, run(b, "linalg_svd", x, false)) }),
		on("wide svd", rnd(rng, 2, 4), func(b *ir.Builder, x ir.Value) []ir.Value { return abs(b, run(b, "linalg_svd", x, false)) }),
		call("linalg_svdvals", spread), call("linalg_matrix_exp", square),
		call("linalg_pinv", rnd(rng, 3, 2)), call("linalg_pinv", rnd(rng, 2, 3)),
		call("linalg_matrix_power", spread, -2),
		call("linalg_matrix_norm", spread, "nuc"), call("linalg_matrix_norm", spread, "1", []int{1, 0}, true), call("linalg_matrix_norm", spread, "2"),
		on("fft", rnd(rng, 5), func(b *ir.Builder, x ir.Value) []ir.Value {
			return []ir.Value{b.Unary(aten.ViewAsReal, run(b, "fft_fft", x, ir.A("n", 6), ir.A("norm", "ortho"))[0])}
		}),
		on("rfft", rnd(rng, 2, 6), func(b *ir.Builder, x ir.Value) []ir.Value {
			return []ir.Value{b.Unary(aten.ViewAsReal, run(b, "fft_rfft2", x)[0])}
		}),
		on("irfft", rnd(rng, 4, 2), func(b *ir.Builder, x ir.Value) []ir.Value {
			return run(b, "fft_irfft", b.Unary(aten.ViewAsComplex, x))
		}),
	})
}
