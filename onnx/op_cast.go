package onnx

import (
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// castRows are the ops that change types.
var castRows = map[string]*row{
	"Cast": one(1, 1, func(c *call, in []*value) *value { return c.cast(in[0], c.elemAttr("to", 0)) }).folding(func(c *call, in []*value) *value {
		return foldCast(in[0], c.elemAttr("to", 0))
	}),
	"CastLike": one(2, 2, func(c *call, in []*value) *value { return c.cast(in[0], in[1].elem) }).folding(func(c *call, in []*value) *value {
		return foldCast(in[0], in[1].elem)
	}),
	"BitCast": one(1, 1, func(c *call, in []*value) *value {
		to := c.elemAttr("to", 0)
		if to.info().bits != in[0].elem.info().bits {
			c.unsupported("from %v to %v, of another width", in[0].elem, to)
		}
		if to.dtype() != in[0].elem.dtype() {
			return c.bitCast(in[0], to)
		}
		return out(to, c.tensor(in[0]))
	}),
	"QuantizeLinear":        one(2, 3, quantizeLinear),
	"DequantizeLinear":      one(2, 3, dequantizeLinear),
	"DynamicQuantizeLinear": many(1, 1, dynamicQuantizeLinear),
}

// bitCast reads the bits of a value as another type, which needs the elements.
func (c *call) bitCast(v *value, to elemType) *value {
	if v.elem.info().narrow || to.info().narrow || v.elem.dtype().Size()*8 != v.elem.info().bits || to.dtype().Size()*8 != to.info().bits {
		c.unsupported("between %v and %v", v.elem, to)
	}
	return &value{elem: to, dims: v.dims, data: c.contents(v)}
}

// foldCast converts known integers, bools and plain floats.
func foldCast(v *value, to elemType) *value {
	from := v.elem
	plain := func(e elemType) bool {
		d := e.dtype()
		return e != tUint64 && (d.IsIntegral() || d.IsFloat() && d.Size()*8 == e.info().bits)
	}
	if !plain(from) || !plain(to) || !small(v.dims) {
		return nil
	}
	n, ok := numbersOf(v)
	if !ok {
		return nil
	}
	count := v.numel()
	if to.dtype().IsFloat() {
		f := n.floats
		if f == nil {
			f = make([]float64, count)
			for i := range f {
				f[i] = float64(n.ints[i])
			}
		}
		return foldedFloats(to, v.dims, f)
	}
	res := make([]int64, count)
	for i := range res {
		switch {
		case to == tBool:
			if n.float(i) != 0 {
				res[i] = 1
			}
		case n.floats != nil:
			res[i] = ir.FloatToInt(to.dtype(), n.floats[i])
		default:
			res[i] = n.ints[i]
		}
	}
	return foldedInts(to, v.dims, res)
}

// cast converts a value to a type, rounding to those that Loris has no dtype for. Floats beyond the
// range of an 8-bit float become its largest number where the attribute saturate is set.
func (c *call) cast(v *value, to elemType) *value {
	if !to.held() {
		c.unsupported("%v elements", to)
	}
	if v.elem == to {
		return v
	}
	t := c.tensor(v)
	saturate := c.bool("saturate", true)
	d := to.dtype()
	switch to {
	case tE4M3FN, tE5M2, tE4M3FNUZ, tE5M2FNUZ:
		return out(to, to8(to, t, saturate))
	case tE2M1:
		return out(to, toE2M1(toF32(t)))
	case tE8M0:
		return out(to, c.toE8M0(toF32(t)))
	}
	if v.elem == tUint64 && d.IsFloat() {
		return out(to, unsigned(t, d))
	}
	if to.integer() && !v.elem.integer() && v.elem != tBool {
		if t.DType().IsF8() {
			t = t.Cast(loris.F32)
		}
		if to == tUint8 || to.info().narrow { // a negative number wraps, by way of a signed one
			t = t.Cast(loris.I64)
		}
	}
	if d == ir.Bool && t.DType().IsF8() {
		t = t.Cast(loris.F32)
	}
	return out(to, c.wrap(to, t.Cast(d)))
}

// unsigned converts an i64 that holds the bits of an unsigned number.
func unsigned(t *loris.Tensor, d ir.DType) *loris.Tensor {
	high := t.BitwiseRightShift(32).BitwiseAnd(0xffffffff).Cast(loris.F64)
	return high.Mul(float64(1 << 32)).Add(t.BitwiseAnd(0xffffffff).Cast(loris.F64)).Cast(d)
}

func toF32(t *loris.Tensor) *loris.Tensor { return t.Cast(loris.F32) }

// largest8 is the largest number of each 8-bit float.
var largest8 = map[elemType]float64{tE4M3FN: 448, tE5M2: 57344, tE4M3FNUZ: 240, tE5M2FNUZ: 57344}

// to8 rounds to an 8-bit float. What is too large becomes the largest number, or without saturate
// NaN, of E5M2 ∞.
func to8(e elemType, t *loris.Tensor, saturate bool) *loris.Tensor {
	t = toF32(t)
	limit := largest8[e]
	bounded := t.Clamp(-limit, limit)
	var rounded *loris.Tensor
	switch e {
	case tE4M3FN:
		rounded = bounded.Cast(loris.F8E4M3FN)
	case tE5M2:
		if !saturate {
			return t.Cast(loris.F8E5M2)
		}
		return bounded.Cast(loris.F8E5M2)
	case tE4M3FNUZ: // the numbers of E4M3FN by two, and 232 … 240, which that rounds to 448
		half := bounded.Mul(2).Cast(loris.F8E4M3FN).Cast(loris.F32).Div(2)
		rounded = loris.Where(bounded.Abs().Gt(232), bounded.Sign().Mul(limit), half)
	default: // the numbers of E5M2 by two, and those of its last exponent, which that takes for ∞
		a := bounded.Abs()
		step := loris.Where(a.Ge(32768), a.FullLike(8192), a.FullLike(4096))
		large := bounded.Div(step).Round().Mul(step)
		half := bounded.Clamp(-28672, 28672).Mul(2).Cast(loris.F8E5M2).Cast(loris.F32).Div(2)
		rounded = loris.Where(a.Gt(28672), large, half)
	}
	if saturate {
		return rounded
	}
	// Half a step beyond the largest number still rounds to it.
	edge := map[elemType]float64{tE4M3FN: 464, tE4M3FNUZ: 248, tE5M2FNUZ: 61440}[e]
	over := t.Abs().Ge(edge)
	if e == tE4M3FN {
		over = t.Abs().Gt(edge)
	}
	nan := t.Mul(0).Div(t.Mul(0))
	if rounded.DType().IsF8() {
		return loris.Where(over, nan, rounded.Cast(loris.F32)).Cast(rounded.DType())
	}
	return loris.Where(over, nan, rounded)
}

// toE2M1 rounds to the numbers 0, ½, 1, 1½, 2, 3, 4, 6 and their negatives.
func toE2M1(t *loris.Tensor) *loris.Tensor {
	a := t.Abs()
	step := loris.Where(a.Lt(2), a.FullLike(0.5), loris.Where(a.Lt(4), a.FullLike(1), a.FullLike(2)))
	return loris.Where(t.IsNaN(), t.FullLike(0), t.Div(step).Round().Mul(step).Clamp(-6, 6))
}

// toE8M0 rounds to powers of two: up, down or to the nearer one.
func (c *call) toE8M0(t *loris.Tensor) *loris.Tensor {
	a := t.Abs()
	power := a.Log2().Floor().Exp2()
	power = loris.Where(power.Gt(a), power.Mul(0.5), power) // the logarithm is rounded
	power = loris.Where(power.Mul(2).Le(a), power.Mul(2), power)
	up := a.Gt(power)
	switch c.text("round_mode", "up") {
	case "down":
		up = a.Lt(0)
	case "nearest":
		up = a.Ge(power.Mul(1.5))
	}
	least := math.Ldexp(1, -127)
	power = loris.Where(up, power.Mul(2), power).Maximum(least)
	power = loris.Where(a.Eq(0), a.FullLike(least), power)
	if c.bool("saturate", true) {
		power = power.Minimum(math.Ldexp(1, 127))
	}
	return loris.Where(a.IsFinite().LogicalAnd(power.IsFinite()), power, a.FullLike(math.NaN()))
}

// along returns a scale or zero point as it lies along x: one number, one for each index of an axis,
// or one for each block of it.
func (c *call) along(x *value, p *value, axis, block int) *loris.Tensor {
	t := c.tensor(p)
	switch {
	case block > 0:
		t = t.RepeatInterleave(block, loris.Dim(axis))
		if t.Dim(axis) > x.dims[axis] {
			t = t.Narrow(axis, 0, x.dims[axis])
		}
		return t
	case p.rank() == 1 && (x.rank() > 1 || p.dims[0] > 1):
		dims := make([]int, x.rank())
		for i := range dims {
			dims[i] = 1
		}
		if p.dims[0] != 1 {
			dims[axis] = p.dims[0]
		}
		return t.Reshape(dims...)
	}
	return t
}

func (c *call) quantAxis(x, scale *value) int {
	axis := c.int("axis", 1)
	if scale.rank() == 0 || scale.numel() == 1 && x.rank() < 2 {
		return 0
	}
	return c.axis(axis, x.rank())
}

// limits are the least and largest numbers of an integer type.
func (e elemType) limits() (lo, hi int) {
	info := e.info()
	if info.signed {
		return -1 << (info.bits - 1), 1<<(info.bits-1) - 1
	}
	return 0, 1<<info.bits - 1
}

func quantizeLinear(c *call, in []*value) *value {
	x, scale, zero := in[0], in[1], opt(in, 2)
	to := tUint8
	if zero != nil {
		to = zero.elem
	} else if e := c.int("output_dtype", 0); e != 0 {
		to = c.elemAttr("output_dtype", 0)
	}
	axis := c.quantAxis(x, scale)
	block := c.int("block_size", 0)
	compute := loris.F32
	if p := elemType(c.int("precision", 0)); p.held() && p.float() {
		compute = p.dtype()
	}
	t := c.tensor(x).Cast(compute).Div(c.along(x, scale, axis, block).Cast(compute)).Cast(loris.F32)
	if !to.integer() {
		if zero != nil {
			t = t.Add(toF32(c.along(x, zero, axis, block)))
		}
		return c.cast(out(tFloat, t), to)
	}
	t = t.Round()
	if zero != nil {
		t = t.Add(toF32(c.along(x, zero, axis, block)))
	}
	lo, hi := to.limits()
	return out(to, t.Clamp(lo, hi).Cast(loris.I32).Cast(to.dtype()))
}

func dequantizeLinear(c *call, in []*value) *value {
	x, scale, zero := in[0], in[1], opt(in, 2)
	to := scale.elem
	if c.has("output_dtype") && c.int("output_dtype", 0) != 0 {
		to = c.elemAttr("output_dtype", 0)
	}
	axis := c.quantAxis(x, scale)
	block := c.int("block_size", 0)
	t := toF32(c.tensor(x))
	if zero != nil {
		t = t.Sub(toF32(c.along(x, zero, axis, block)))
	}
	return out(to, t.Mul(toF32(c.along(x, scale, axis, block))).Cast(to.dtype()))
}

func dynamicQuantizeLinear(c *call, in []*value) []*value {
	x := c.tensor(in[0])
	lo, hi := x.Amin().Clamp(nil, 0), x.Amax().Clamp(0, nil)
	scale := hi.Sub(lo).Div(255)
	scale = loris.Where(scale.Eq(0), scale.OnesLike(), scale) // of zeros only
	zero := lo.Neg().Div(scale).Clamp(0, 255).Round()
	y := x.Div(scale).Round().Add(zero).Clamp(0, 255)
	u8 := func(t *loris.Tensor) *value { return out(tUint8, t.Cast(loris.I32).Cast(loris.U8)) }
	return []*value{u8(y), out(tFloat, scale), u8(zero)}
}
