package ir

// The gradients of op_binary.go, by ATen's derivatives.yaml.

// binaryVJP returns the cotangents of x and y from that of z = op(x, y), with
// z's dimensions.
type binaryVJP func(b *Builder, x, y, z, g Value) (gx, gy Value)

// rule sums the cotangents over the dimensions that each operand was broadcast
// along.
func (f binaryVJP) rule() func(b *Builder, a Args, out, grad []Value) []Value {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		x, y := a.In[0], a.In[1]
		gx, gy := f(b, x, y, out[0], grad[0])
		return []Value{b.SumTo(gx, x.Shape()), b.SumTo(gy, y.Shape())}
	}
}

func vjpAdd(b *Builder, x, y, z, g Value) (gx, gy Value) { return g, g }
func vjpSub(b *Builder, x, y, z, g Value) (gx, gy Value) { return g, b.Neg(g) }
func vjpMul(b *Builder, x, y, z, g Value) (gx, gy Value) { return b.Mul(g, y), b.Mul(g, x) }

func vjpDiv(b *Builder, x, y, z, g Value) (gx, gy Value) {
	return b.Div(g, y), b.Mul(b.Neg(g), b.Div(z, y))
}

func vjpRemainder(b *Builder, x, y, z, g Value) (gx, gy Value) {
	return g, b.Mul(b.Neg(g), b.FloorDivide(x, y))
}

func vjpFmod(b *Builder, x, y, z, g Value) (gx, gy Value) {
	return g, b.Mul(b.Neg(g), b.TruncDivide(x, y))
}

// vjpAtan2 is 0 at the origin, where the angle has no slope.
func vjpAtan2(b *Builder, x, y, z, g Value) (gx, gy Value) {
	zero := b.zeroOf(g)
	r2 := b.Add(b.Mul(x, x), b.Mul(y, y))
	s := b.Where(b.Eq(r2, zero), zero, b.Div(g, r2))
	return b.Mul(s, y), b.Mul(s, b.Neg(x))
}

// vjpPow chooses 0 where the formulas would multiply 0 by an infinity: for the
// base where the exponent is 0, for the exponent where the base is 0 and the
// exponent is not negative.
func vjpPow(b *Builder, x, y, z, g Value) (gx, gy Value) {
	zero := b.zeroOf(g)
	dx := b.Mul(y, b.Pow(x, b.shift(y, -1)))
	gx = b.Where(b.Eq(y, zero), zero, b.Mul(g, dx))
	flat := b.LogicalAnd(b.Eq(x, zero), b.Ge(y, zero))
	gy = b.Mul(g, b.Where(flat, zero, b.Mul(z, b.Log(x))))
	return gx, gy
}

func vjpMaximum(b *Builder, x, y, z, g Value) (gx, gy Value) {
	return b.chosen(g, b.Eq(x, y), b.Lt(x, y), b.Gt(x, y))
}

func vjpMinimum(b *Builder, x, y, z, g Value) (gx, gy Value) {
	return b.chosen(g, b.Eq(x, y), b.Gt(x, y), b.Lt(x, y))
}

// chosen gives the cotangent to the operand that won, half to each on a tie,
// and to both where the order is not defined (NaN).
func (b *Builder) chosen(g, tie, xLost, yLost Value) (gx, gy Value) {
	zero := b.zeroOf(g)
	share := b.Where(tie, b.scale(g, 0.5), g)
	return b.Where(xLost, zero, share), b.Where(yLost, zero, share)
}

func vjpWhere(b *Builder, a Args, out, grad []Value) []Value {
	c, g := a.In[0], grad[0]
	zero := b.zeroOf(g)
	gx, gy := b.Where(c, g, zero), b.Where(c, zero, g)
	return []Value{{}, b.SumTo(gx, a.In[1].Shape()), b.SumTo(gy, a.In[2].Shape())}
}

// vjpCast converts the cotangent back; integers have none.
func vjpCast(b *Builder, a Args, out, grad []Value) []Value {
	d := a.In[0].DType()
	if !d.IsFloatOrF8() || !out[0].DType().IsFloatOrF8() {
		return []Value{{}}
	}
	return []Value{b.Cast(grad[0], d)}
}
