package torchexport

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/ir"
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
	"aten.cumsum":         cumulative("cumsum"),
	"aten.cumprod":        cumulative("cumprod"),
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
