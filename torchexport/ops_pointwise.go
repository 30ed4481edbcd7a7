package torchexport

import (
	"math"

	"github.com/loris-ml/loris"
)

// pointwiseOps are arithmetic ops with arguments that the rows of their names have not.
var pointwiseOps = map[string]func(c *call) []any{
	"aten.add": func(c *call) []any { return one(c.do("add", c.operand("self"), c.scaled("other"))) },
	"aten.sub": func(c *call) []any { return one(c.do("sub", c.operand("self"), c.scaled("other"))) },
	"aten.rsub": func(c *call) []any {
		self := c.operand("self")
		if alpha, ok := c.alpha(); ok {
			self = c.do("mul", self, alpha)
		}
		return one(c.do("sub", c.operand("other"), self))
	},
	"aten.div": func(c *call) []any {
		return one(c.do(divisions[c.stringOr("rounding_mode", "")], c.operand("self"), c.operand("other")))
	},
	"aten.floor_divide": func(c *call) []any { return one(c.do("floor_divide", c.operand("self"), c.operand("other"))) },
	"aten.where.default": func(c *call) []any {
		places := c.nonzero(c.value("condition"))
		return []any{many(places.Unbind(loris.Dim(1))...)}
	},
	"aten.clamp.Tensor":   clamp,
	"aten.clamp":          clamp,
	"aten.lerp.Tensor":    func(c *call) []any { return one(lerp(c)) },
	"aten.lerp":           func(c *call) []any { return one(lerp(c)) },
	"aten._prelu_kernel":  prelu,
	"aten.round.decimals": roundDecimals,
	"aten.mvlgamma": func(c *call) []any {
		x, p := c.value("self"), c.int("p")
		if p < 1 || p > 1<<10 {
			panic(misuse(c.n.target, "p is at least 1 and at most 1024, not %d", p))
		}
		sum := x.Lgamma().Add(float64(p*(p-1)) / 4 * math.Log(math.Pi))
		for j := 1; j < p; j++ {
			sum = sum.Add(x.Sub(float64(j) / 2).Lgamma())
		}
		return one(sum)
	},
	"aten.logical_not": func(c *call) []any { return one(c.value("self").LogicalNot()) },
	"aten.sgn":         func(c *call) []any { return one(c.value("self").Sign()) },
	"aten.signbit":     func(c *call) []any { return one(c.value("self").Signbit()) },
	"aten.heaviside": func(c *call) []any {
		x := c.value("self")
		return one(c.do("where", x.Eq(0), c.operand("values"), x.Gt(0).Cast(x.DType())))
	},
}

// divisions are ops by the rounding of a quotient.
var divisions = map[string]string{"": "div", "floor": "floor_divide", "trunc": "trunc_divide"}

// alpha returns the factor of the second operand, where it is not 1.
func (c *call) alpha() (any, bool) {
	v, ok := c.arg("alpha")
	if !ok || v == int64(1) || v == float64(1) {
		return nil, false
	}
	return plainValue(v), true
}

// scaled returns an operand times alpha.
func (c *call) scaled(name string) any {
	v := c.operand(name)
	alpha, ok := c.alpha()
	if !ok {
		return v
	}
	if t, ok := v.(*loris.Tensor); ok {
		return c.do("mul", t, alpha)
	}
	x, ok1 := number(v)
	y, ok2 := number(alpha)
	if !ok1 || !ok2 {
		panic(c.wrong(name, "a number", v))
	}
	if a, isInt := v.(int); isInt {
		if b, isInt := alpha.(int); isInt {
			return a * b
		}
	}
	return x * y
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func clamp(c *call) []any {
	return one(c.do("clamp", c.value("self"), c.operandOr("min", nil), c.operandOr("max", nil)))
}

func lerp(c *call) *loris.Tensor {
	self, end := c.value("self"), c.value("end")
	return self.Add(c.do("mul", end.Sub(self), c.operand("weight")))
}

func prelu(c *call) []any {
	x, w := c.value("self"), c.value("weight")
	if w.Rank() == 1 && x.Rank() > 1 {
		dims := make([]int, x.Rank())
		for i := range dims {
			dims[i] = 1
		}
		dims[1] = w.Numel()
		w = w.Reshape(dims...)
	}
	return one(loris.Where(x.Ge(0), x, x.Mul(w)))
}

func roundDecimals(c *call) []any {
	scale := 1.0
	n := c.intOr("decimals", 0)
	if n < -300 || n > 300 {
		panic(misuse(c.n.target, "%d decimals", n))
	}
	for range max(n, -n) {
		scale *= 10
	}
	x := c.value("self")
	if n < 0 {
		return one(x.Div(scale).Round().Mul(scale))
	}
	return one(x.Mul(scale).Round().Div(scale))
}
