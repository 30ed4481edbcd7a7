package torchexport

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// reductionOps are reductions whose overloads the row of the name does not have.
var reductionOps = map[string]func(c *call) []any{
	"aten.max.dim":     maxDim("max_dim"),
	"aten.min.dim":     maxDim("min_dim"),
	"aten.max.other":   func(c *call) []any { return one(c.do("maximum", c.value("self"), c.value("other"))) },
	"aten.min.other":   func(c *call) []any { return one(c.do("minimum", c.value("self"), c.value("other"))) },
	"aten.max.default": func(c *call) []any { return one(c.value("self").Amax()) },
	"aten.min.default": func(c *call) []any { return one(c.value("self").Amin()) },
	"aten.aminmax": func(c *call) []any {
		x := c.value("self")
		if _, ok := c.arg("dim"); !ok {
			return many(x.Amin(), x.Amax())
		}
		dim, keep := []int{c.int("dim")}, c.boolOr("keepdim", false)
		return many(c.do("amin", x, dim, keep), c.do("amax", x, dim, keep))
	},
	"aten.var":      func(c *call) []any { return many(c.variance("var")...) },
	"aten.std":      func(c *call) []any { return many(c.variance("std")...) },
	"aten.var_mean": func(c *call) []any { return many(c.variance("var_mean")...) },
	"aten.std_mean": func(c *call) []any { return many(c.variance("std_mean")...) },
	"aten.norm":     norm,
	"aten.linalg_norm": func(c *call) []any {
		return one(c.all("linalg_vector_norm", []any{c.value("self"), c.floatOr("ord", 2), c.dims("dim"), c.boolOr("keepdim", false)})[0])
	},
	"aten.logsumexp": func(c *call) []any {
		return one(c.do("logsumexp", c.value("self"), c.ints("dim"), c.boolOr("keepdim", false)))
	},
	"aten.median.default": func(c *call) []any { return many(c.all("median", []any{c.value("self")})[:1]...) },
	"aten.histogram.bin_ct": func(c *call) []any {
		x := c.value("self")
		return many(c.all("histogram", []any{x, c.binEdges(x)}, ir.A("weight", c.optional("weight")), ir.A("density", c.boolOr("density", false)))...)
	},
	"aten.cumsum":  cumulative("cumsum"),
	"aten.cumprod": cumulative("cumprod"),
	"aten.nansum": func(c *call) []any {
		x := c.value("self")
		return one(c.do("sum", loris.Where(x.IsNaN(), x.ZerosLike(), x), c.dims("dim"), c.boolOr("keepdim", false)))
	},
}

// dims returns a list of dimensions, nil for all.
func (c *call) dims(name string) any {
	if _, ok := c.arg(name); !ok {
		return nil
	}
	if d := c.ints(name); len(d) > 0 {
		return d
	}
	return nil
}

// binEdges returns the edges of equal bins over a range, that of the elements unless it is given.
func (c *call) binEdges(x *loris.Tensor) *loris.Tensor {
	n := c.intOr("bins", 100)
	at := c.do("arange", 0, n+1, 1, x.DType())
	var lo, hi *loris.Tensor
	if v, ok := c.arg("range"); ok {
		list, _ := v.([]any)
		var ends [2]float64
		ok := len(list) == 2
		for i := 0; ok && i < 2; i++ {
			ends[i], ok = toFloat(list[i])
		}
		if !ok {
			panic(c.wrong("range", "two numbers", v))
		}
		m := c.maker().With(loris.As(x.DType()))
		lo, hi = m.Scalar(ends[0]), m.Scalar(ends[1])
	} else {
		lo, hi = x.Amin(), x.Amax()
	}
	same := lo.Eq(hi)
	lo, hi = loris.Where(same, lo.Sub(0.5), lo), loris.Where(same, hi.Add(0.5), hi)
	step := hi.Sub(lo).Div(n)
	return loris.Where(at.Lt(float64(n+1)/2), lo.Add(at.Mul(step)), hi.Sub(at.Neg().Add(n).Mul(step))) // as linspace, from both ends
}

func maxDim(op string) func(c *call) []any {
	return func(c *call) []any {
		return many(c.all(op, []any{c.value("self"), c.int("dim"), c.boolOr("keepdim", false)})...)
	}
}

// variance records var, std or one with the mean: the divisor is the count less a correction.
func (c *call) variance(op string) []*loris.Tensor {
	correction := 1.0
	if !c.boolOr("unbiased", true) {
		correction = 0
	}
	correction = c.floatOr("correction", correction)
	return c.all(op, []any{c.value("self"), c.dims("dim")}, ir.A("correction", correction), ir.A("keepdim", c.boolOr("keepdim", false)))
}

func norm(c *call) []any {
	x := c.value("self")
	if d := c.dtypeOr(x.DType()); d != x.DType() {
		x = x.Cast(d)
	}
	return one(c.do("norm", x, c.floatOr("p", 2), c.dims("dim"), c.boolOr("keepdim", false)))
}

func cumulative(op string) func(c *call) []any {
	return func(c *call) []any {
		x := c.value("self")
		if d := c.dtypeOr(x.DType()); d != x.DType() {
			x = x.Cast(d)
		}
		return one(c.do(op, x, c.int("dim")))
	}
}
