package native

import "math"

// inverseOf is erfinv(x)/x over w = -log(1-x²) in pieces: the first is a polynomial of w, the others of
// √w, each about a number, up to a w.
type inverseOf []struct {
	most, about float64
	p           []float64
}

// erfinvP64 is precise enough for f64.
var erfinvP64 = inverseOf{
	{6.25, 3.125, []float64{
		1.6536545626831027462, 0.24015818242558832428, -0.0060336708714278498839, -0.0007407025341544769871,
		0.00018673420802464837717, -0.000013882523394405316701, -1.3654691850603575084e-6, 4.2347881737823392581e-7,
		-2.9070382262927266389e-8, -4.1126608200232400759e-9, 1.0512181539804126687e-9, -5.41428719808471606e-11,
		-1.2976885526532075645e-11, 2.6304834740560441484e-12, -8.1183994430743531936e-14, -4.0012377350918958564e-14,
		6.5964077124208341111e-15, -4.0282154327661742238e-17, -1.3016928016796444876e-16, 1.5574320246233252171e-17,
		1.1500222520662529727e-18, -3.4996044354754177822e-19, -1.1134837698327019363e-21, 3.2407044593799019112e-21,
	}},
	{16, 3.25, []float64{
		3.0838856104922206294, 1.0052589676941652962, 0.0053709145535716796344, -0.0037512085082155610952,
		0.0024914420969817609034, -0.001688275535733707206, 0.00095328936374356371754, -0.00035503780975963811131,
		0.000024031257015092523571, 0.000068287086547533766803, -0.000047318984120112454885, 0.000012465167157087251774,
		2.9257291901789824671e-6, -3.9860843952147559524e-6, 1.4987130784186126344e-6, -2.7004219280868946486e-8,
		-2.7134511054394561371e-7, 1.3104351499972014101e-7, 6.9692419776296940396e-10, -1.5102695423335064107e-8,
	}},
	{6.1 * 6.1, 5.05, []float64{
		4.9004210514436405454, 1.010285017597772109, -0.00016985809149340306541, -0.00020031200668027352034,
		0.000071240315422453620263, -0.000018374536139125648515, 4.1938537538031479526e-6, -9.0708602402224486456e-7,
		2.0161905521548852953e-7, -5.4931977483167189852e-8, 2.1821840910471058411e-8, -1.1207461299741068557e-8,
		5.8058881045281102856e-9, -2.6311132048940674482e-9, 1.0483309310240925839e-9, -3.8682910276006672419e-10,
		7.745384761724364086e-11, 2.8907082659821913672e-11, -1.5439278197208341602e-11,
	}},
}

// erfinv64 is x·P, infinite at ±1. Beyond, the logarithm is NaN.
func (g *gen) erfinv64(x val) val {
	const w = 8
	if g.evex() {
		return g.erfinvLooked(x)
	}
	one, f := g.num(w, 1), erfinvP64
	l := g.log(w, g.mulF(w, g.subF(w, one, x), g.addF(w, one, x)), baseE)
	v := g.atMost(w, g.subF(w, g.konst(w, 0), l), f[len(f)-1].most)
	root := g.sqrt(w, v)
	y := g.poly(w, g.subF(w, v, g.num(w, f[0].about)), f[0].p)
	for i, piece := range f[1:] {
		z := g.poly(w, g.subF(w, root, g.num(w, piece.about)), piece.p)
		y = g.blend(w, g.cmpF(w, cmpGT, v, g.num(w, f[i].most)), z, y)
	}
	return g.mulF(w, x, g.erfinvEnd(x, y))
}

// erfinvEnd is y = erfinv(x)/x but infinite where |x| is 1.
func (g *gen) erfinvEnd(x, y val) val {
	return g.blend(8, g.cmpF(8, cmpEQ, g.abs(8, x), g.num(8, 1)), g.num(8, math.Inf(1)), y)
}

// erfinvStep64 is how far apart the polynomials of erfinvNear64 are; multiples of it are exact.
const erfinvStep64 = 13. / 32

// erfinvMost64 is beyond the largest -log(1-x²) of an x below 1.
const erfinvMost64 = 6.1 * 6.1

// erfinvLooked is x times a polynomial around the nearest multiple of erfinvStep64 to √-log(1-x²). The logarithm is
// that of a number from 0 to 1: at 0 it is infinite, and below not a number.
func (g *gen) erfinvLooked(x val) val {
	const w = 8
	one := g.num(w, 1)
	e, m := g.apart(&f64, g.subMul(w, one, x, x))
	l := g.logOf(w, e, g.subF(w, m, one), baseE)
	s, _ := g.nearRoot(w, g.atMost(w, g.subF(w, g.konst(w, 0), l), erfinvMost64), none)
	t := g.mulAdd(w, s, g.num(w, 1/erfinvStep64), g.num(w, f64.magic))
	h := g.subMul(w, s, g.subF(w, t, g.num(w, f64.magic)), g.num(w, erfinvStep64))
	y := g.looked(w, h, len(erfinvNear64), 0, g.coefficients64("erfinv", erfinvNear64[:], t))
	return g.mulF(w, x, g.erfinvEnd(x, y))
}
