//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// randomDecompositions draw numbers on the device, each from a seed of its own that comes
// from the host's generator: as random as PyTorch's, and not the same.
var randomDecompositions = map[string]decomposeFunc{
	"rand":  func(v values) (*decomposition, error) { return decomposeDrawn(v, nil, "rand", unit) },
	"randn": func(v values) (*decomposition, error) { return decomposeDrawn(v, nil, "randn", bell(0, 1)) },
	"rand_like": func(v values) (*decomposition, error) {
		return decomposeDrawnLike(v, "rand", unit)
	},
	"randn_like": func(v values) (*decomposition, error) { return decomposeDrawnLike(v, "randn", bell(0, 1)) },
	"randint": func(v values) (*decomposition, error) {
		if out, ok := v["out"].(*tensor); ok {
			v["dtype"] = dtypeOf(out)
		}
		if !v.has("dtype") {
			v["dtype"] = ir.I64
		}
		low, high, err := bounds(v)
		if err != nil {
			return nil, err
		}
		return decomposeDrawn(v, nil, fmt.Sprint("randint ", low, " ", high), whole(low, high))
	},
	"randint_like": func(v values) (*decomposition, error) {
		low, high, err := bounds(v)
		if err != nil {
			return nil, err
		}
		return decomposeDrawnLike(v, fmt.Sprint("randint ", low, " ", high), whole(low, high))
	},
	"randperm": func(v values) (*decomposition, error) {
		n, d := v.int("n", 0), v.dtype(ir.I64)
		if n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("%w: randperm of %d", ir.ErrArg, n)
		}
		return &decomposition{what: fmt.Append(nil, "randperm ", n, d), draws: true, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{do(b, "randperm", in[0], n, 0, d)}
		}}, nil
	},
	"uniform_": func(v values) (*decomposition, error) {
		from, to := v.float("from", 0), v.float("to", 1)
		return decomposeDrawnLike(v, fmt.Sprint("uniform ", from, " ", to), func(b *ir.Builder, seed ir.Value, size []int, d ir.DType) ir.Value {
			x := unit(b, seed, size, d)
			return b.Add(b.Mul(x, num(b, to-from, x)), num(b, from, x))
		})
	},
	"normal_": func(v values) (*decomposition, error) {
		mean, std := v.float("mean", 0), v.float("std", 1)
		return decomposeDrawnLike(v, fmt.Sprint("normal ", mean, " ", std), bell(mean, std))
	},
	"exponential": func(v values) (*decomposition, error) {
		rate := v.float("lambd", 1)
		return decomposeDrawnLike(v, fmt.Sprint("exponential ", rate), func(b *ir.Builder, seed ir.Value, size []int, d ir.DType) ir.Value {
			x := unit(b, seed, size, d)
			return b.Div(do(b, "log1p", b.Neg(x)), num(b, -rate, x))
		})
	},
	"bernoulli_":     decomposeBernoulli,
	"native_dropout": decomposeDropout,
}

// source draws numbers of a size. What is no float is drawn as f32, or as it is.
type source func(b *ir.Builder, seed ir.Value, size []int, d ir.DType) ir.Value

func unit(b *ir.Builder, seed ir.Value, size []int, d ir.DType) ir.Value {
	return b.Call1(aten.Uniform, []any{seed, size, 0, wide(d)})
}

func bell(mean, std float64) source {
	return func(b *ir.Builder, seed ir.Value, size []int, d ir.DType) ir.Value {
		x := b.Call1(aten.Normal, []any{seed, size, 0, wide(d)})
		if mean == 0 && std == 1 {
			return x
		}
		return b.Add(b.Mul(x, num(b, std, x)), num(b, mean, x))
	}
}

func whole(low, high int) source {
	return func(b *ir.Builder, seed ir.Value, size []int, _ ir.DType) ir.Value {
		return b.Call1(aten.Randint, []any{seed, low, high, size, 0, ir.I64})
	}
}

func bounds(v values) (low, high int, err error) {
	if low, high = v.int("low", 0), v.int("high", 0); low >= high {
		err = fmt.Errorf("%w: integers from %d to below %d", ir.ErrArg, low, high)
	}
	return low, high, err
}

// decomposeDrawn makes a tensor of v's size.
func decomposeDrawn(v values, like *tensor, what string, from source) (*decomposition, error) {
	size, d := intsOf(v.ints("size")), v.dtype(ir.F32)
	if _, err := ir.NewShape(d, size); err != nil {
		return nil, err
	}
	r := &decomposition{what: fmt.Append(nil, what, size, d), draws: true, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{b.Cast(from(b, in[0], size, d), d)}
	}}
	if like != nil {
		r.what = fmt.Append(r.what, denseLike(like))
		r.strides = likeStrides(like)
	}
	return r, nil
}

// decomposeDrawnLike makes a tensor of the size and strides of self.
func decomposeDrawnLike(v values, what string, from source) (*decomposition, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	return decomposeDrawn(values{"size": sizesOf(t), "dtype": v.dtype(dtypeOf(t))}, t, what, from)
}

// decomposeBernoulli is ones with the probability p, a number or a tensor.
func decomposeBernoulli(v values) (*decomposition, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	size, d := intsOf(sizesOf(t)), dtypeOf(t)
	p := v.float("p", 0.5)
	r := &decomposition{what: fmt.Append(nil, "bernoulli ", size, d, " ", p), draws: true}
	if x, ok := v["p"].(*tensor); ok {
		r.what, r.in = fmt.Append(nil, "bernoulli ", size, d), []*tensor{x}
	}
	r.build = func(b *ir.Builder, in []ir.Value) []ir.Value {
		x := unit(b, in[len(in)-1], size, ir.F64)
		limit := num(b, p, x)
		if len(in) > 1 {
			limit = b.Cast(in[0], x.DType())
		}
		return []ir.Value{b.Cast(b.Binary(aten.Lt, x, limit), d)}
	}
	return r, nil
}

// decomposeDropout returns the input with a part of it zero and the rest scaled up,
// and which part was kept.
func decomposeDropout(v values) (*decomposition, error) {
	t, err := v.tensor("input")
	if err != nil {
		return nil, err
	}
	p := v.float("p", 0.5)
	if !v.bool("train", true) {
		p = 0
	}
	r := &decomposition{what: fmt.Append(nil, "native_dropout ", p), in: []*tensor{t}, strides: likeStrides(t), draws: true}
	r.build = func(b *ir.Builder, in []ir.Value) []ir.Value {
		x, dims := in[0], in[0].Shape().Dims()
		if p == 0 {
			return []ir.Value{x, b.Full(dims, 1, ir.Bool)}
		}
		u := unit(b, in[1], dims, x.DType())
		keep := b.Binary(aten.Lt, u, num(b, 1-p, u))
		scale := 0.0
		if p < 1 {
			scale = 1 / (1 - p)
		}
		y := b.Mul(b.Cast(x, u.DType()), num(b, scale, u))
		return []ir.Value{b.Cast(b.Mul(y, b.Cast(keep, u.DType())), x.DType()), keep}
	}
	return r, nil
}
