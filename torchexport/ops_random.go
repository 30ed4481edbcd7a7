package torchexport

import (
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// randomOps draw numbers. Loris's generator draws others than PyTorch's, of the same distribution.
var randomOps = map[string]func(c *call) []any{
	"aten.native_dropout":        nativeDropout,
	"aten.dropout":               dropout,
	"aten.feature_dropout":       func(c *call) []any { return c.dropped(true, false) },
	"aten.alpha_dropout":         func(c *call) []any { return c.dropped(false, true) },
	"aten.feature_alpha_dropout": func(c *call) []any { return c.dropped(true, true) },
	"aten.rrelu":                 randomizedRelu,
	"aten.multinomial": func(c *call) []any {
		return one(loris.Multinomial(c.value("self"), c.int("num_samples"), c.boolOr("replacement", false)))
	},
	"aten.normal.Tensor_Tensor": normalAround,
	"aten.normal.Tensor_float":  normalAround,
	"aten.normal.float_Tensor":  normalAround,
	"aten.normal.float_float": random(func(c *call, m loris.Maker) *loris.Tensor {
		return m.Normal(c.floatOr("mean", 0), c.floatOr("std", 1), c.ints("size")...)
	}),
	"aten.randint_like": random(func(c *call, m loris.Maker) *loris.Tensor {
		return m.With(loris.As(ir.I64)).RandInt(c.intOr("low", 0), c.int("high"), c.value("self").Dims()...)
	}),
}

// dropout drops elements where the program was exported in training.
func dropout(c *call) []any {
	p := c.floatOr("p", 0.5)
	if !c.boolOr("train", false) || p == 0 {
		return aliasOf(c)
	}
	return one(c.value("input").Dropout(p))
}

func nativeDropout(c *call) []any {
	x := c.value("input")
	p := c.floatOr("p", 0.5)
	if !c.boolOr("train", true) || p == 0 {
		return many(x, c.do("full", x.Dims(), 1, ir.Bool))
	}
	kept := c.do("full", x.Dims(), 1.0, ir.F32).Dropout(p)
	return many(x.Mul(castTo(kept, x.DType())), kept.Ne(0))
}

// alphaDropped is what dropped elements are before the result is scaled: the limit of selu at -∞.
const alphaDropped = -1.7580993408473766

// dropped drops elements, or whole channels, where the program was exported in training. The alpha
// forms keep mean and variance of inputs that have mean 0 and variance 1.
func (c *call) dropped(channels, alpha bool) []any {
	p := c.floatOr("p", 0.5)
	if !c.boolOr("train", false) || p == 0 {
		return aliasOf(c)
	}
	x := c.value("input")
	if !x.DType().IsFloat() {
		panic(misuse(c.n.target, "dropout of %v", x.Shape()))
	}
	dims := x.Dims()
	if channels {
		if len(dims) < 2 {
			panic(misuse(c.n.target, "channels of %v", x.Shape()))
		}
		dims = append(dims[:2], ones(len(dims)-2)...)
	}
	keep := c.maker().With(loris.As(ir.F32)).Bernoulli(1-p, dims...)
	switch {
	case p == 1:
		return one(x.Mul(0))
	case !alpha:
		return one(x.Mul(castTo(keep.Div(1-p), x.DType())))
	}
	scale := 1 / math.Sqrt((1-p)*(1+p*alphaDropped*alphaDropped))
	filled := loris.Where(keep.Ne(0).Expand(x.Dims()...), x, c.do("full_like", x, alphaDropped))
	return one(filled.Mul(scale).Sub(scale * alphaDropped * p))
}

// randomizedRelu takes the middle of the slopes outside of training.
func randomizedRelu(c *call) []any {
	x, low, high := c.value("self"), c.floatOr("lower", 0.125), c.floatOr("upper", 1.0/3)
	if !c.boolOr("training", false) {
		return one(c.do("leaky_relu", x, (low+high)/2))
	}
	slopes := c.maker().With(loris.As(x.DType())).Uniform(low, high, x.Dims()...)
	return one(loris.Where(x.Gt(0), x, x.Mul(slopes)))
}

// normalAround draws numbers whose mean or deviation is a tensor.
func normalAround(c *call) []any {
	mean, std := c.operandOr("mean", 0.0), c.operandOr("std", 1.0)
	var dims []int
	d := ir.F32
	for _, v := range []any{mean, std} {
		if t, ok := v.(*loris.Tensor); ok {
			dims, d = commonDims(dims, t.Dims()), t.DType()
		}
	}
	z := c.maker().With(loris.As(d)).Randn(dims...)
	return one(c.do("add", c.do("mul", z, std), mean))
}

// drawnInPlace fills a tensor by a function of uniform numbers of [0, 1).
func drawnInPlace(of func(c *call, u *loris.Tensor) *loris.Tensor) func(c *call) []any {
	return randomInPlace(func(c *call, m loris.Maker, dims []int) *loris.Tensor {
		return of(c, m.With(loris.As(ir.F32)).Rand(dims...))
	})
}

var (
	exponentialInPlace = drawnInPlace(func(c *call, u *loris.Tensor) *loris.Tensor {
		return u.Neg().Log1p().Neg().Div(c.floatOr("lambd", 1))
	})
	geometricInPlace = drawnInPlace(func(c *call, u *loris.Tensor) *loris.Tensor {
		return c.do("clamp_min", u.Neg().Log1p().Div(math.Log1p(-c.floatOr("p", 0.5))).Ceil(), 1)
	})
	cauchyInPlace = drawnInPlace(func(c *call, u *loris.Tensor) *loris.Tensor {
		return u.Sub(0.5).Mul(math.Pi).Tan().Mul(c.floatOr("sigma", 1)).Add(c.floatOr("median", 0))
	})
	logNormalInPlace = randomInPlace(func(c *call, m loris.Maker, dims []int) *loris.Tensor {
		return m.Normal(c.floatOr("mean", 1), c.floatOr("std", 2), dims...).Exp()
	})
)
