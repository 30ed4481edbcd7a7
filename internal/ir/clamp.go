package ir

// Ops that limit elements to a range.

func init() {
	const doc = " self and the bounds promote together and broadcast; NaN stays. A number that the integers of the result cannot hold " +
		"bounds nothing if all of them keep to it, and is an error otherwise. The gradient at a scalar bound is 0; a tensor bound " +
		"shares it with self where they are equal."
	register("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", Spec{
		Numbers:  map[string]NumberUse{"min": NumberLower, "max": NumberUpper},
		Category: Pointwise, Promote: PromoteDefault,
		Doc: "min(max(x, min), max), elementwise; max wins where it is below min. At least one bound must be given." + doc + " ATen's clamp.",
		Decompose: func(b *Builder, a Args) []Value {
			lo, hi := a.Tensor("min"), a.Tensor("max")
			if lo.IsNil() && hi.IsNil() {
				a.Fail(ErrArg, "at least one of min and max must be given")
			}
			return []Value{b.clamped(a.In[0], lo, hi)}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return vjpClamp(b, a, a.Tensor("min"), a.Tensor("max"), grad[0])
		},
		Domain: [][2]float64{{-1, 1}, {-3, -2}, {0.2, 0.4}},
	})
	register("clamp_min(Tensor self, Scalar min) -> Tensor", Spec{
		Numbers:  map[string]NumberUse{"min": NumberLower},
		Category: Pointwise, Promote: PromoteDefault, Doc: "max(x, min), elementwise." + doc + " ATen's clamp_min.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{b.maximum(a.In[0], a.In[1])} },
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return vjpClamp(b, a, a.In[1], Value{}, grad[0])
		},
		Domain: [][2]float64{{0.1, 1}, {-3, -2}},
	})
	register("clamp_max(Tensor self, Scalar max) -> Tensor", Spec{
		Numbers:  map[string]NumberUse{"max": NumberUpper},
		Category: Pointwise, Promote: PromoteDefault, Doc: "min(x, max), elementwise." + doc + " ATen's clamp_max.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{b.minimum(a.In[0], a.In[1])} },
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return vjpClamp(b, a, Value{}, a.In[1], grad[0])
		},
		Domain: [][2]float64{{0.1, 1}, {-3, -2}},
	})
}

// clamped limits x from below and above, where the bounds are given.
func (b *Builder) clamped(x, lo, hi Value) Value {
	if !lo.IsNil() {
		x = b.maximum(x, lo)
	}
	if !hi.IsNil() {
		x = b.minimum(x, hi)
	}
	return x
}

// vjpClamp treats rank-0 bounds as ATen's scalar overload does: at a bound self
// has no gradient. Bounds with dimensions share it on ties.
func vjpClamp(b *Builder, a Args, lo, hi, g Value) []Value {
	x := a.In[0]
	var gx, glo, ghi Value
	if (lo.IsNil() || lo.Rank() == 0) && (hi.IsNil() || hi.Rank() == 0) {
		inside, below, above := b.clampParts(x, lo, hi)
		zero := b.zeroOf(g)
		gx = b.Where(inside, g, zero)
		if !lo.IsNil() {
			glo = b.Where(below, g, zero)
		}
		if !hi.IsNil() {
			ghi = b.Where(above, g, zero)
		}
	} else {
		gx, glo, ghi = b.clampTensorParts(x, lo, hi, g)
	}
	gs := []Value{b.sumTo(gx, x.Shape())}
	if !lo.IsNil() {
		gs = append(gs, b.sumTo(glo, lo.Shape()))
	}
	if !hi.IsNil() {
		gs = append(gs, b.sumTo(ghi, hi.Shape()))
	}
	return gs
}

// clampParts tells where x is strictly inside its bounds, and where each bound
// is the result instead. NaN is in no part. The part of an absent bound is
// absent, and one bound at least is given.
func (b *Builder) clampParts(x, lo, hi Value) (inside, below, above Value) {
	switch {
	case hi.IsNil():
		return b.gt(x, lo), b.le(x, lo), Value{}
	case lo.IsNil():
		return b.lt(x, hi), Value{}, b.ge(x, hi)
	}
	above = b.ge(b.maximum(x, lo), hi)
	inside = b.logicalAnd(b.gt(x, lo), b.lt(x, hi))
	return inside, b.logicalAnd(b.le(x, lo), b.logicalNot(above)), above
}

// clampTensorParts shares the cotangent on ties: between self and the bound, or
// all to self where both bounds are equal to it.
func (b *Builder) clampTensorParts(x, lo, hi, g Value) (gx, glo, ghi Value) {
	switch {
	case hi.IsNil():
		gx, glo = vjpMaximum(b, x, lo, Value{}, g)
		return gx, glo, Value{}
	case lo.IsNil():
		gx, ghi = vjpMinimum(b, x, hi, Value{}, g)
		return gx, Value{}, ghi
	}
	zero, half := b.zeroOf(g), b.scale(g, 0.5)
	apart := b.lt(lo, hi)
	tieLo, tieHi := b.logicalAnd(apart, b.eq(x, lo)), b.logicalAnd(apart, b.eq(x, hi))
	below, above := b.lt(x, lo), b.gt(x, hi)
	ordered := b.le(lo, hi)
	gx = b.Where(b.logicalOr(below, above), zero, b.Where(b.logicalOr(tieLo, tieHi), half, g))
	glo = b.Where(tieLo, half, b.Where(b.logicalAnd(below, ordered), g, zero))
	hiWins := b.logicalOr(b.gt(lo, hi), b.logicalAnd(above, ordered))
	ghi = b.Where(tieHi, half, b.Where(hiWins, g, zero))
	return gx, glo, ghi
}
