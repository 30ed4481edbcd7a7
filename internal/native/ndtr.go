package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// ndtrNear has the coefficients of ndtr(-j-h)·exp((j+h)²/2), |h| ≤ 1/2, over h: a row for each power of h, in it
// one for each j.
var ndtrNear = [8][16]float32{
	{
		0.5, 0.2615783, 0.168102, 0.12151395, 0.09441064, 0.0769193, 0.06477931, 0.05589348,
		0.049122546, 0.04379879, 0.039506692, 0.03597489, 0.033018973, 0.030509414, 0.028352661, 0.026479488,
	},
	{
		-0.3989423, -0.13736399, -0.06273828, -0.034400437, -0.021299716, -0.014345756, -0.010266394, -0.0076879035,
		-0.005961911, -0.004753181, -0.0038753394, -0.0032184946, -0.0027146274, -0.002319892, -0.002005033, -0.0017499455,
	},
	{
		0.24999987, 0.06210751, 0.021312758, 0.009156326, 0.004605891, 0.002595264, 0.0015904738, 0.0010390796,
		0.0007136303, 0.0005100819, 0.0003766501, 0.00028572467, 0.0002217207, 0.00017540948, 0.00014109914, 0.0001151539,
	},
	{
		-0.13297628, -0.025085798, -0.0067042937, -0.0023104926, -0.00095871836, -0.00045647912, -0.00024118391, -0.00013811536,
		-8.428944e-05, -5.4147826e-05, -3.627942e-05, -2.5174359e-05, -1.7993067e-05, -1.3189541e-05, -9.881718e-06, -7.5456264e-06,
	},
	{
		0.062444966, 0.009248235, 0.0019753217, 0.0005561112, 0.00019273596, 7.821287e-05, 3.584147e-05, 1.8067676e-05,
		9.82857e-06, 5.6878216e-06, 3.4639581e-06, 2.201676e-06, 1.4509665e-06, 9.863592e-07, 6.887701e-07, 4.9237553e-07,
	},
	{
		-0.026270412, -0.0031633915, -0.00055021065, -0.00012834318, -3.7535603e-05, -1.3077836e-05, -5.2254272e-06, -2.3277626e-06,
		-1.131955e-06, -5.9139046e-07, -3.2792377e-07, -1.9116271e-07, -1.1628255e-07, -7.336824e-08, -4.7783676e-08, -3.199669e-08,
	},
	{
		0.009403159, 0.0010602628, 0.00015044224, 2.9160936e-05, 7.2174707e-06, 2.1642475e-06, 7.5546166e-07, 2.9784366e-07,
		1.2962693e-07, 6.119736e-08, 3.0918724e-08, 1.6540769e-08, 9.2913695e-09, 5.4432294e-09, 3.3074892e-09, 2.0751152e-09,
	},
	{
		-0.0021428175, -0.0003213431, -3.816835e-05, -6.263399e-06, -1.3295595e-06, -3.464448e-07, -1.0638862e-07, -3.7313868e-08,
		-1.4590612e-08, -6.242875e-09, -2.8804286e-09, -1.4166969e-09, -7.3593254e-10, -4.007775e-10, -2.2742017e-10, -1.3379298e-10,
	},
}

const (
	// ndtrEnd is beyond where ndtr(-x) rounds to 0, and below where the table ends.
	ndtrEnd = 14.3
	// From ndtrOne and ndtrOne64 on ndtr rounds to 1.
	ndtrOne, ndtrOne64 = 6, 9
)

// ndtr is exp(-a²/2) times a polynomial around the nearest integer to a = |x|, and 1 less that for positive x.
func (g *gen) ndtr(w int, x val) val {
	if w == 8 {
		return g.ndtr64(x)
	}
	a := g.bounded(w, x, -ndtrEnd, ndtrOne)
	t := g.addF(w, a, g.num(w, f32.magic))
	h := g.subF(w, a, g.subF(w, t, g.num(w, f32.magic)))
	look := g.coefficients("ndtr", ndtrNear[:], t)
	p := g.looked(w, h, len(ndtrNear), 0, look)
	return g.ndtrSide(w, x, g.expHalfSquare(&f32, a, p))
}

// ndtr64 is erfc(z)/2 for z = |x|/√2, with the square from x, since rounding z would change it by much.
func (g *gen) ndtr64(x val) val {
	const w = 8
	a := g.bounded(w, x, -erfcMost64*math.Sqrt2, ndtrOne64)
	z := g.mulF(w, a, g.num(w, math.Sqrt2/2))
	y := g.half(g.erfcScaled(z))
	return g.ndtrSide(w, x, g.expHalfSquare(&f64, a, y))
}

// ndtrSide is y, which is ndtr(-|x|), or 1 less that for positive x.
func (g *gen) ndtrSide(w int, x, y val) val {
	return g.blend(w, g.cmpF(w, cmpGT, x, g.konst(w, 0)), g.subF(w, g.num(w, 1), y), y)
}

// expHalfSquare is factor·exp(-a²/2), with what rounding the square loses, as expMinus.
func (g *gen) expHalfSquare(f *format, a, factor val) val {
	w := f.w
	half := g.mulF(w, a, g.num(w, 0.5))
	square := g.mulF(w, half, a)
	lost := g.fma(by(w, x64.FMSUB213PS, x64.FMSUB213PD), g.vl(w), half, a, square)
	return g.expMinus(f, square, lost, factor)
}

// expMinus is factor·exp(-x) for an x that is the sum of two floats, and not negative, and 0 where a thirtieth of the
// power is: the factor is at most that there.
func (g *gen) expMinus(f *format, x, rest, factor val) val {
	return g.expTimes(f, g.subF(f.w, g.konst(f.w, 0), x), rest, factor, f.expLow+2)
}
