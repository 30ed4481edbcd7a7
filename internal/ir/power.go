package ir

import (
	"math"
	"math/bits"
)

// pow is math.Pow where that is exact, and elsewhere 2^(y·log2|x|) with a logarithm of more digits than a
// float has: math.Pow multiplies as many times as y has bits, and errs by thousands of units for large y.
func pow(x, y float64) float64 {
	a := math.Abs(x)
	if y == 0 || a == 1 || !(0 < a && a < math.Inf(1)) || y-y != 0 || x < 0 && y != math.Trunc(y) {
		return math.Pow(x, y)
	}
	hi, lo := log2Pair(a)
	t := float64(y * hi) // rounded, also where Go would add to a product before it rounds: on arm64
	p := math.Exp2(t)
	if math.Abs(t) < 2000 { // beyond, p is 0 or infinite
		k := math.RoundToEven(t)
		rest := math.FMA(y, hi, -t) + y*lo
		p = math.Ldexp(math.FMA(math.Exp2(t-k), rest*math.Ln2, math.Exp2(t-k)), int(k))
	}
	if x < 0 && math.Abs(math.Mod(y, 2)) == 1 {
		return -p
	}
	return p
}

// knownPower records x to the power of a plain number for those numbers that ATen computes by other ops,
// which take a tenth of a power's time: 2, 3 and, of floats, ±1/2, -1 and -2. As in ATen -∞ has no square
// root, though its power 1/2 would be ∞.
func knownPower(b *Builder, x Value, n ScalarLeaf) (Value, bool) {
	d := x.DType()
	if !d.IsFloat() && (!d.IsInt() || n.IsFloat) {
		return Value{}, false
	}
	// Narrow floats are rounded once, as a power is.
	cube := func(x Value) Value { return b.Mul(b.Mul(x, x), x) }
	if d.IsFloat() {
		switch n.AsFloat() {
		case 3:
			return b.Cast(cube(b.widen(x)), d), true
		case 0.5:
			return b.sqrt(x), true
		case -0.5:
			return b.rsqrt(x), true
		case -1:
			return b.reciprocal(x), true
		case -2:
			r := b.reciprocal(b.widen(x)) // the square of x may overflow where that of 1/x is a number
			return b.Cast(b.Mul(r, r), d), true
		}
	}
	switch n.AsFloat() {
	case 2:
		return b.Mul(x, x), true
	case 3:
		return cube(x), true
	}
	return Value{}, false
}

// knownBase records powers of the number 2 that are floats as what they are.
func knownBase(b *Builder, x Value, n ScalarLeaf) (Value, bool) {
	if d := x.DType(); n.AsFloat() != 2 || !d.IsFloat() && (!n.IsFloat || !d.IsIntegral()) {
		return Value{}, false
	}
	return b.exp2(x), true
}

// knownShift records the quotient of integers by a power of 2, rounded down, as a shift, which takes a tenth
// of a division's time.
func knownShift(b *Builder, x Value, n ScalarLeaf) (Value, bool) {
	if !dividesByPower(x, n) {
		return Value{}, false
	}
	return b.bitwiseRightShift(x, b.Const(int64(bits.TrailingZeros64(uint64(n.Int))), x.DType())), true
}

// knownMask records the remainder of integers by a power of 2, which is not negative, as their lowest bits.
func knownMask(b *Builder, x Value, n ScalarLeaf) (Value, bool) {
	if !dividesByPower(x, n) {
		return Value{}, false
	}
	return b.bitwiseAnd(x, b.Const(n.Int-1, x.DType())), true
}

// dividesByPower reports whether n is a power of 2 above 1 that integers of x's dtype can be.
func dividesByPower(x Value, n ScalarLeaf) bool {
	d, width := x.DType(), 8*x.DType().Size()
	if d.IsSigned() {
		width--
	}
	return d.IsInt() && !n.IsFloat && n.Int > 1 && n.Int&(n.Int-1) == 0 && bits.TrailingZeros64(uint64(n.Int)) < width
}

// times is the product of two pairs of floats, each of which stands for its sum, without the product
// of the small ones.
func times(xh, xl, yh, yl float64) (hi, lo float64) {
	hi = float64(xh * yh) // see pow
	return hi, math.FMA(xl, yh, math.FMA(xh, yl, math.FMA(xh, yh, -hi)))
}

// log2Pair returns log2 a for positive finite a as the sum of two floats: with a = m·2ᵉ and
// s = (m-1)/(m+1), at most 1/5, it is e + 2/ln 2·atanh s.
func log2Pair(a float64) (hi, lo float64) {
	m, e := math.Frexp(a)
	if m < 0.75 {
		m, e = 2*m, e-1
	}
	f, d := m-1, m+1
	sh := f / d
	sl := math.FMA(-sh, m-(d-1), math.FMA(-sh, d, f)) / d
	zh, zl := times(sh, sl, sh, sl)
	tail := 0.0 // (atanh(s)/s - 1 - z/3)/z² over z = s²
	for n := 27; n >= 5; n -= 2 {
		tail = math.FMA(tail, zh, 1/float64(n))
	}
	th, tl := times(zh, zl, 1./3, 0x1.5555555555555p-56)
	tl = math.FMA(zh*zh, tail, tl)
	uh := 1 + (th + tl)
	ul := 1 - uh + (th + tl) + (th - (th + tl) + tl)
	wh, wl := times(sh, sl, 2*math.Log2E, 4.0710547481862066e-17)
	hi, lo = times(wh, wl, uh, ul)
	sum := float64(e) + hi
	return sum, float64(e) - sum + hi + lo
}
