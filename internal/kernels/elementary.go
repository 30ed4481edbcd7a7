package kernels

import "math"

// The functions of this file compute on float32 by way of float64 and round
// once. Before that the relative error is below 1e-8, a sixth of float32's
// spacing, so that results are within 0.7 units in the last place. They follow
//
//	eˣ = 2ᵏ·eʳ,  k = ⌊x/ln 2⌉,  r = x − k·ln 2,  |r| ≤ ln 2 / 2
//
// with the Taylor polynomial of degree 7 for eʳ; loops in assembly take degree 9.
//
// The loops in assembly of all but Exp compute in float32. Sigmoid, Tanh and Silu
// are within 2 units in the last place. Gelu and GeluTanh are within 2.5 for
// operands of at least −1 and within 0.4 units of the operand below, where the
// result is small; forms that add 1 to erf or tanh lose as much there.

const (
	// Beyond ±expMost eˣ and its inverse are 0 or infinite in float32.
	expMost = 110

	// roundMagic added to a number below 2⁵¹ leaves no fraction: its low bits are
	// then the nearest integer in two's complement.
	roundMagic = 0x1.8p52
)

// exp is eˣ for |x| ≤ expMost; NaN gives NaN.
func exp(x float64) float64 {
	t := x*math.Log2E + roundMagic
	k := t - roundMagic
	r := x - k*math.Ln2
	r2 := r * r
	p := (1 + r) + r2*(1.0/2+r*(1.0/6)) + (r2*r2)*((1.0/24+r*(1.0/120))+r2*(1.0/720+r*(1.0/5040)))
	return p * math.Float64frombits((math.Float64bits(t)+1023)<<52)
}

func clamp(x, most float64) float64 {
	if x > most {
		return most
	}
	if x < -most {
		return -most
	}
	return x
}

// Exp sets dst = eᵃ.
func Exp(dst, a []float32) {
	a = a[:len(dst)]
	if l := loops(); l != nil {
		l.run(l.exp, dst, a)
		return
	}
	for i := range dst {
		dst[i] = float32(exp(clamp(float64(a[i]), expMost)))
	}
}

// Sigmoid sets dst = 1/(1 + e⁻ᵃ).
func Sigmoid(dst, a []float32) {
	a = a[:len(dst)]
	if l := loops(); l != nil {
		l.run(l.sigmoid, dst, a)
		return
	}
	for i := range dst {
		dst[i] = float32(1 / (1 + exp(clamp(-float64(a[i]), expMost))))
	}
}

const (
	// tanhSmall is where (e²ˣ−1)/(e²ˣ+1) begins to cancel: below it is the Taylor
	// series of tanh; tanhMost is where float32 has no number between tanh and 1.
	tanhSmall = 0.3
	tanhMost  = 10
)

// Tanh sets dst = tanh a.
func Tanh(dst, a []float32) {
	a = a[:len(dst)]
	if l := loops(); l != nil {
		l.run(l.tanh, dst, a)
		return
	}
	for i := range dst {
		x := clamp(float64(a[i]), tanhMost)
		if math.Abs(x) < tanhSmall {
			x2 := x * x
			dst[i] = float32(x * (1 + x2*(-1.0/3+x2*(2.0/15+x2*(-17.0/315+x2*(62.0/2835-x2*(1382.0/155925)))))))
			continue
		}
		e := exp(2 * x)
		dst[i] = float32((e - 1) / (e + 1))
	}
}

// Silu sets dst = a·sigmoid(a).
func Silu(dst, a []float32) {
	a = a[:len(dst)]
	if l := loops(); l != nil {
		l.run(l.silu, dst, a)
		return
	}
	for i := range dst {
		x := float64(a[i])
		dst[i] = float32(x / (1 + math.Exp(-x)))
	}
}

// Gelu sets dst = a·Φ(a), by the error function.
func Gelu(dst, a []float32) {
	a = a[:len(dst)]
	if l := loops(); l != nil {
		l.run(l.gelu, dst, a)
		return
	}
	for i := range dst {
		x := float64(a[i])
		dst[i] = float32(0.5 * x * math.Erfc(-x/math.Sqrt2))
	}
}

// geluSlope is √(2/π).
const geluSlope = math.Sqrt2 / math.SqrtPi

// GeluTanh sets dst to the approximation of a·Φ(a) by tanh.
func GeluTanh(dst, a []float32) {
	a = a[:len(dst)]
	if l := loops(); l != nil {
		l.run(l.geluTanh, dst, a)
		return
	}
	for i := range dst {
		x := float64(a[i])
		dst[i] = float32(x / (1 + math.Exp(-2*geluSlope*(x+0.044715*x*x*x))))
	}
}

// elementary is loops over a multiple of lanes elements.
type elementary struct {
	lanes                                    int
	exp, sigmoid, tanh, silu, gelu, geluTanh func(dst, src *float32, n int)
}

// elementaries lists what the processor can run, best first; none if only Go.
var elementaries = nativeElementary()

func loops() *elementary {
	if len(elementaries) == 0 {
		return nil
	}
	return elementaries[0]
}

// loopMost bounds a call of a loop in assembly to some ten microseconds, since the runtime cannot
// preempt the goroutine in it.
const loopMost = 16 << 10

// run applies a loop to a slice. The elements after the last full vector go through the same loop,
// so that a result does not depend on its position.
func (l *elementary) run(f func(dst, src *float32, n int), dst, src []float32) {
	whole := len(dst) / l.lanes * l.lanes
	for at := 0; at < whole; at += loopMost {
		f(&dst[at], &src[at], min(loopMost, whole-at))
	}
	if rest := dst[whole:]; len(rest) > 0 {
		var buf [16]float32
		copy(buf[:], src[whole:])
		f(&buf[0], &buf[0], l.lanes)
		copy(rest, buf[:])
	}
}
