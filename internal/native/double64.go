package native

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
)

// The functions of this file are those of f64 that have other ranges or more
// digits than f32 needs. How far they may be from the nearest float is their tolerance in ir.

// doubles returns the functions of f64 whose rows compute f32 by way of it.
func doubles() map[ir.Op]func(g *gen, x []val) val {
	one := func(f func(g *gen, x val) val) func(g *gen, x []val) val {
		return func(g *gen, x []val) val { return f(g, x[0]) }
	}
	return map[ir.Op]func(g *gen, x []val) val{
		aten.Sinh: one((*gen).sinh64), aten.Cosh: one((*gen).cosh64),
		aten.Acosh: one((*gen).acosh64),
		aten.Atan2: func(g *gen, x []val) val { return g.atan2(x[0], x[1]) },
	}
}

func (g *gen) atan64(x val) val {
	return g.signedAs(8, g.atanBelow(g.atMost(8, g.abs(8, x), atanMost), g.num(8, 1), atanP64), x)
}

// atanP64 is atanP to 64 bits.
var atanP64 = []float64{-0.33333333333333333329, 0.19999999999999991448, -0.142857142857114906, 0.11111111110751481039, -0.090909090668160809014,
	0.076923067291948968002, -0.066666418691311826727, 0.058819230561140225622, -0.052580202726567583391, 0.047192591882420923804,
	-0.041038875468626871964, 0.030622995553735514673, -0.013905374533113233897}

const (
	// halvedFrom is where eᵃ is near the largest number.
	halvedFrom = 700
	// logFrom is from where acosh is log 2x.
	logFrom = 0x1p28
)

// largeHalf is eᵃ/2 for a whose exponential may be infinite.
func (g *gen) largeHalf(a val) val {
	h := g.exp(8, g.half(g.atMost(8, a, 2000)))
	return g.mulF(8, g.half(h), h)
}

func (g *gen) sinh64(x val) val {
	a := g.abs(8, x)
	large := g.signedAs(8, g.largeHalf(a), x)
	return g.blend(8, g.cmpF(8, cmpGT, a, g.num(8, halvedFrom)), large, g.sinh(x))
}

func (g *gen) cosh64(x val) val {
	a := g.abs(8, x)
	return g.blend(8, g.cmpF(8, cmpGT, a, g.num(8, halvedFrom)), g.largeHalf(a), g.cosh(x))
}

func (g *gen) acosh64(x val) val {
	log2x := g.addF(8, g.log(8, x, baseE), g.num(8, math.Ln2))
	return g.blend(8, g.cmpF(8, cmpGT, x, g.num(8, logFrom)), log2x, g.acosh(x))
}

// erfSmall64 is erf(x)/x - 1 over x², |x| ≤ 1; erfcLog64 is the logarithm of
// erfc(1+v) over v up to 5.
var (
	erfSmall64 = []float64{0.12837916709551257389, -0.37612638903183752379, 0.11283791670955120236, -0.026866170645129840806, 0.0052239776254232983087,
		-0.00085483270219348295955, 0.0001205533290288873541, -0.000014925647567519332125, 1.6462045441468418937e-6, -1.6364642158167615302e-7,
		1.4792401209404813002e-8, -1.2164560057283450081e-9, 8.7090451290531066896e-11, -4.2309458242953378173e-12}
	erfcLog64 = []float64{-1.8496055099332485089, -2.6389675142347313625, -0.84310725636076692531, -0.041561098012135297365, 0.010033825160920954105,
		-0.001977901697524230648, 0.00023732046313066261505, 0.000026279862858634216738, -0.000027156334221864214715, 9.5950065095135264136e-6,
		-2.033159780146730995e-6, 1.1028561509522453165e-7, 1.2585035591399702997e-7, -7.0143565617852361939e-8, 2.3570812642171107464e-8,
		-5.9695484096523652289e-9, 1.1993313226526883724e-9, -1.9306769041530837202e-10, 2.4703372545019870187e-11, -2.4597640050179192208e-12,
		1.8378982899623459528e-13, -9.6914650543282855077e-15, 3.2139503865759768831e-16, -5.0381750908202161481e-18}
)

// erf64 is x + x·P(x²) near 0 and 1 - e^Q elsewhere.
func (g *gen) erf64(x val) val {
	const w = 8
	a := g.abs(w, x)
	small := g.mulAdd(w, g.poly(w, g.mulF(w, a, a), erfSmall64), a, a)
	v := g.subF(w, g.atMost(w, a, 6), g.num(w, 1))
	large := g.subF(w, g.num(w, 1), g.expOf(&f64, g.poly(w, v, erfcLog64), none, math.Inf(-1)))
	return g.signedAs(w, g.blend(w, g.cmpF(w, cmpLT, a, g.num(w, 1)), small, large), x)
}

// From erfcMost64 on erfc is 0.
const erfcAbout64, erfcMost64 = 4, 27.3

// erfcP64 is erfc(x)·exp(x²)·(1+2x) over t = (x-about)/(x+about), 0 ≤ x ≤ most.
var erfcP64 = []float64{
	1.2329951186255526, -0.13962111684056253, 0.015379652102620118, 0.06809705425469287, -0.1010390660363301,
	0.09373283499833991, -0.06633036581152664, 0.037167515537767724, -0.016197734067324464, 0.005031969973220623,
	-0.0007577732121369506, -0.00019925664793139902, 0.0001506212968975, -2.4399491652020997e-05,
	-1.1220847136030513e-05, 5.710755033318011e-06, 2.9151867844427024e-07, -8.27783270915466e-07, 7.720575108516087e-08,
	1.1337438448551072e-07, -1.922501323797287e-08, -1.6719971814682665e-08, 1.7062645155877114e-09,
	2.150996088786476e-09, 3.047496016346768e-10,
}

// erfc64 is exp(-a²)·P(t)/(1+2a), a = |x|, and 2 less that for negative x.
func (g *gen) erfc64(x val) val {
	const w = 8
	a := g.bounded(w, x, erfcTwo64, erfcMost64)
	square := g.mulF(w, a, a)
	lost := g.fma(x64.FMSUB213PD, g.vl(w), a, a, square)
	y := g.expMinus(&f64, square, lost, g.erfcScaled(a))
	return g.blend(w, g.cmpF(w, cmpLT, x, g.konst(w, 0)), g.subF(w, g.num(w, 2), y), y)
}

// erfcScaled is erfc(a)·exp(a²) for a from 0 to erfcMost64.
func (g *gen) erfcScaled(a val) val {
	const w = 8
	about := g.num(w, erfcAbout64)
	t := g.nearQuotient(w, g.subF(w, a, about), g.addF(w, a, about))
	return g.nearQuotient(w, g.poly(w, t, erfcP64), g.addF(w, g.addF(w, a, a), g.num(w, 1)))
}
