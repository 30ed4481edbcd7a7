package torchexport

import (
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// statisticOps are reductions and numeric functions that ATen makes of others.
var statisticOps = map[string]func(c *call) []any{
	"aten.nanmean":              func(c *call) []any { return one(nanMean(c)) },
	"aten.quantile":             func(c *call) []any { return one(quantile(c, false)) },
	"aten.nanquantile":          func(c *call) []any { return one(quantile(c, true)) },
	"aten.msort":                func(c *call) []any { return many(c.all("sort", []any{c.value("self"), 0, false})[:1]...) },
	"aten.bincount":             bincount,
	"aten.trapezoid":            func(c *call) []any { return one(trapezoid(c)) },
	"aten.cumulative_trapezoid": func(c *call) []any { return one(c.do("cumsum", areas(c), -1).Transpose(c.intOr("dim", -1), -1)) },
	"aten.float_power": func(c *call) []any {
		d := ir.F64
		base, exponent := c.operand("self"), c.operand("exponent")
		if isComplex(base) || isComplex(exponent) {
			d = ir.C128
		}
		return one(c.do("pow", c.wide(base, d), c.wide(exponent, d)))
	},
	"aten.ldexp": func(c *call) []any {
		x := c.value("self")
		if !x.DType().IsFloat() {
			x = x.Cast(ir.F32)
		}
		return one(x.Mul(c.do("exp2", castTo(c.value("other"), ir.F64)).Cast(x.DType())))
	},
	"aten.frexp": frexp,
	"aten.isreal": func(c *call) []any {
		x := c.value("self")
		if x.DType().IsComplex() {
			return one(c.do("imag", x).Eq(0))
		}
		return one(c.do("full", x.Dims(), 1, ir.Bool))
	},
	"aten.pairwise_distance": func(c *call) []any {
		return one(c.distance(c.value("x1"), c.value("x2"), c.floatOr("p", 2), c.floatOr("eps", 1e-6), c.boolOr("keepdim", false)))
	},
	"aten.renorm": func(c *call) []any {
		return one(c.renormed(c.value("self"), c.floatOr("p", 2), c.int("dim"), c.floatOr("maxnorm", 1), nil))
	},
	"aten.gradient": gradient,
}

func isComplex(v any) bool {
	t, ok := v.(*loris.Tensor)
	return ok && t.DType().IsComplex()
}

// wide returns an operand as a tensor of a dtype.
func (c *call) wide(v any, d ir.DType) *loris.Tensor {
	if t, ok := v.(*loris.Tensor); ok {
		return castTo(t, d)
	}
	return c.do("full", []int{}, numberFor(v, d), d)
}

func nanMean(c *call) *loris.Tensor {
	x := c.value("self")
	if d := c.dtypeOr(x.DType()); d != x.DType() {
		x = x.Cast(d)
	}
	dims, keep := c.dims("dim"), c.boolOr("keepdim", false)
	number := x.IsNaN().LogicalNot()
	sum := c.do("sum", loris.Where(number, x, x.ZerosLike()), dims, keep)
	return sum.Div(c.do("sum", number, dims, keep).Cast(x.DType()))
}

// quantile interpolates between sorted elements. A NaN makes the quantiles of its row NaN, or is left
// out. The quantiles come first where q has a dimension.
func quantile(c *call, skipNaN bool) *loris.Tensor {
	x, dim, keep := c.value("self"), 0, c.boolOr("keepdim", false)
	q := c.wide(c.operand("q"), x.DType())
	kept := ones(x.Rank())
	if _, ok := c.arg("dim"); !ok {
		x = x.Reshape(-1)
	} else if dim = c.dim(c.int("dim"), x.Rank()); x.Rank() > 0 {
		kept = x.Dims()
		kept[dim] = 1
	} else {
		x = x.Reshape(1)
	}
	sorted := c.all("sort", []any{x.Transpose(dim, -1), -1, false})[0]
	nans := sorted.IsNaN()
	n := c.do("sum", nans.LogicalNot(), []int{-1}, true).Cast(x.DType())
	rank := c.do("clamp_min", q.Reshape(-1).Mul(n.Sub(1)), 0)
	below := rank.Floor()
	at := func(place *loris.Tensor) *loris.Tensor { return c.do("gather", sorted, -1, place.Cast(ir.I64)) }
	var out *loris.Tensor
	switch mode := c.stringOr("interpolation", "linear"); mode {
	case "lower":
		out = at(below)
	case "higher":
		out = at(rank.Ceil())
	case "nearest":
		out = at(rank.Round())
	case "midpoint":
		out = at(below).Add(at(rank.Ceil())).Mul(0.5)
	case "linear":
		low := at(below)
		out = low.Add(at(rank.Ceil()).Sub(low).Mul(rank.Sub(below)))
	default:
		panic(misuse(c.n.target, "the interpolation %q is not known", mode))
	}
	bad := n.Eq(0)
	if !skipNaN {
		bad = c.do("any", nans, []int{-1}, true)
	}
	out = c.do("masked_fill", out, bad, math.NaN()).Transpose(dim, -1)
	if q.Rank() > 0 { // the quantiles go first
		out, dim = out.Unsqueeze(0).Transpose(0, dim+1), dim+1
		kept = append([]int{q.Numel()}, kept...)
	}
	if keep {
		return out.Reshape(kept...)
	}
	return out.Squeeze(loris.Dim(dim))
}

// bincount has as many results as the largest element says, which it waits for.
func bincount(c *call) []any {
	x := c.value("self")
	size := c.intOr("minlength", 0)
	if x.Numel() > 0 {
		if most := c.item(x.Amax()); most < 1<<31 {
			size = max(size, int(most)+1)
		} else {
			panic(misuse(c.n.target, "a number of %g", most))
		}
	}
	var weights any
	if w := c.optional("weights"); w != nil {
		weights = w
	}
	return one(c.do("bincount", x, weights, size))
}

// areas are those of the trapezoids between neighbours along dim, which is the last of the result.
func areas(c *call) *loris.Tensor {
	dim := c.intOr("dim", -1)
	y := c.value("y").Transpose(dim, -1)
	n := y.Dim(-1)
	if n == 0 {
		return y
	}
	pairs := c.do("slice", y, -1, 1, n, 1).Add(c.do("slice", y, -1, 0, n-1, 1))
	x := c.optional("x")
	if x == nil {
		if _, ok := c.arg("dx"); ok {
			return c.do("mul", pairs, c.operand("dx")).Mul(0.5)
		}
		return pairs.Mul(0.5)
	}
	if x.Rank() > 1 {
		x = x.Transpose(dim, -1)
	}
	width := c.do("slice", x, -1, 1, n, 1).Sub(c.do("slice", x, -1, 0, n-1, 1))
	return pairs.Mul(width).Mul(0.5)
}

func trapezoid(c *call) *loris.Tensor {
	dim := c.intOr("dim", -1)
	return c.do("sum", areas(c), []int{-1}, true).Transpose(dim, -1).Squeeze(loris.Dim(dim))
}

// frexp splits numbers into one between a half and one and a power of two.
func frexp(c *call) []any {
	x := c.value("self")
	wide := x.Cast(ir.F64)
	whole := wide.IsFinite().LogicalAnd(wide.Ne(0))
	size := loris.Where(whole, wide.Abs(), wide.OnesLike())
	e := size.Log2().Floor().Add(1)
	scaled := func(e *loris.Tensor) *loris.Tensor { // in two steps, so that neither power leaves the range
		half := e.Mul(0.5).Floor()
		return size.Mul(half.Neg().Exp2()).Mul(half.Sub(e).Exp2())
	}
	m := scaled(e)
	e = e.Add(m.Ge(1).Cast(ir.F64)).Sub(m.Lt(0.5).Cast(ir.F64))
	m = loris.Where(whole, scaled(e).Copysign(wide), wide)
	return many(m.Cast(x.DType()), loris.Where(whole, e, e.ZerosLike()).Cast(ir.I32))
}

// distance is the norm of the difference of rows.
func (c *call) distance(a, b *loris.Tensor, p, eps float64, keep bool) *loris.Tensor {
	d := a.Sub(b)
	if eps != 0 {
		d = d.Add(eps)
	}
	return c.do("norm", d, p, []int{-1}, keep)
}

// renormed scales what lies at each place of dim to a norm of at most most; of rows that are not in
// used, where it is given, nothing changes.
func (c *call) renormed(x *loris.Tensor, p float64, dim int, most float64, used *loris.Tensor) *loris.Tensor {
	dim = c.dim(dim, x.Rank())
	var over []int
	for i := range x.Rank() {
		if i != dim {
			over = append(over, i)
		}
	}
	norm := c.do("norm", x, p, over, true)
	long := norm.Gt(most)
	if used != nil {
		long = long.LogicalAnd(used)
	}
	return loris.Where(long, x.Mul(norm.Add(1e-7).Reciprocal().Mul(most)), x)
}

// gradient estimates derivatives by central differences, and at the ends by those of edge_order.
func gradient(c *call) []any {
	x := c.value("self")
	var dims []int
	if _, ok := c.arg("dim"); ok {
		dims = c.ints("dim")
	} else {
		for i := range x.Rank() {
			dims = append(dims, i)
		}
	}
	order := c.intOr("edge_order", 1)
	if order != 1 && order != 2 {
		panic(misuse(c.n.target, "edge_order is 1 or 2, not %d", order))
	}
	out := make([]*loris.Tensor, len(dims))
	for i, d := range dims {
		d = c.dim(d, x.Rank())
		if x.Dim(d) <= order {
			panic(misuse(c.n.target, "dimension %d of %v is too small", d, x.Shape()))
		}
		y := x.Transpose(d, -1)
		if !y.DType().IsFloat() && !y.DType().IsComplex() {
			y = y.Cast(ir.F32)
		}
		out[i] = c.derivative(y, c.places(i, y.Dim(-1)), order).Transpose(d, -1)
	}
	return []any{many(out...)}
}

// places are the coordinates along the dimension of number i in the list: those given, or multiples of
// the spacing.
func (c *call) places(i, n int) *loris.Tensor {
	count := c.do("arange", 0, n, 1, ir.F64)
	v, ok := c.arg("spacing")
	if !ok {
		return count
	}
	if list, several := v.([]any); several {
		if i >= len(list) {
			panic(misuse(c.n.target, "spacing has %d elements", len(list)))
		}
		v = list[i]
	}
	if t, ok := v.(*tensor); ok {
		if t.value().Numel() != n {
			panic(misuse(c.n.target, "spacing of %v for a dimension of size %d", t.value().Shape(), n))
		}
		return t.value().Cast(ir.F64)
	}
	return c.do("mul", count, plainValue(v))
}

// derivative of y along its last dimension by the coordinates x.
func (c *call) derivative(y, x *loris.Tensor, order int) *loris.Tensor {
	n := y.Dim(-1)
	part := func(t *loris.Tensor, from, to int) *loris.Tensor { return c.do("slice", t, -1, from, to, 1) }
	steps := part(x, 1, n).Sub(part(x, 0, n-1))
	slopes := part(y, 1, n).Sub(part(y, 0, n-1)).Div(castTo(steps, y.DType()))
	first, last := part(slopes, 0, 1), part(slopes, n-2, n-1)
	if n == 2 {
		return loris.Cat([]*loris.Tensor{first, last}, loris.Dim(-1))
	}
	left, right := castTo(part(steps, 0, n-2), y.DType()), castTo(part(steps, 1, n-1), y.DType())
	low, high := part(slopes, 0, n-2), part(slopes, 1, n-1)
	middle := low.Mul(right).Add(high.Mul(left)).Div(left.Add(right))
	if order == 2 {
		// The parabola through three points has its mean slope at the middle of each step.
		first = part(low, 0, 1).Mul(2).Sub(part(middle, 0, 1))
		last = part(high, n-3, n-2).Mul(2).Sub(part(middle, n-3, n-2))
	}
	return loris.Cat([]*loris.Tensor{first, middle, last}, loris.Dim(-1))
}
