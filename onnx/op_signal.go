package onnx

import (
	"math"

	"github.com/loris-ml/loris"
)

// signalRows are the ops of signals. Windows and filter banks are computed while recording.
var signalRows = map[string]*row{
	"DFT":             one(1, 3, dft),
	"STFT":            one(2, 4, stft),
	"MelWeightMatrix": one(5, 5, melWeights),
	"HannWindow":      window1(func(x float64) float64 { return 0.5 - 0.5*math.Cos(2*math.Pi*x) }),
	"HammingWindow":   window1(func(x float64) float64 { return 25.0/46 - 21.0/46*math.Cos(2*math.Pi*x) }),
	"BlackmanWindow": window1(func(x float64) float64 {
		return 0.42 - 0.5*math.Cos(2*math.Pi*x) + 0.08*math.Cos(4*math.Pi*x)
	}),
}

// window1 is the row of a window, given over the unit interval.
func window1(f func(x float64) float64) *row {
	return one(1, 1, func(c *call, in []*value) *value {
		n := c.oneInt(in[0])
		c.table(n)
		period := float64(n)
		if !c.bool("periodic", true) {
			period--
		}
		w := make([]float64, n)
		for i := range w {
			w[i] = f(float64(i) / period)
		}
		e := c.elemAttr("output_datatype", tFloat)
		if !e.float() {
			c.unsupported("a window of %v", e)
		}
		return foldedFloats(e, []int{n}, w)
	})
}

// complexOf reads the last dimension, of one or two elements, as complex numbers.
func (c *call) complexOf(t *loris.Tensor) *loris.Tensor {
	if d := t.DType(); d != loris.F32 && d != loris.F64 {
		t = t.Cast(loris.F32)
	}
	last := t.Rank() - 1
	switch {
	case last < 1 || t.Dim(last) < 1 || t.Dim(last) > 2:
		c.fail("%v is no signal: its last dimension is not 1 or 2", t.Shape())
	case t.Dim(last) == 1:
		re := t.Select(last, 0)
		return loris.Complex(re, re.ZerosLike())
	}
	return t.ViewAsComplex()
}

func dft(c *call, in []*value) *value {
	x := c.tensor(in[0])
	axis := c.int("axis", 1)
	if c.node.version >= 20 {
		axis = -2
		if a := opt(in, 2); a != nil && !a.empty {
			axis = c.oneInt(a)
		}
	}
	axis = c.axis(axis, x.Rank())
	n := x.Dim(axis)
	if l := opt(in, 1); l != nil && !l.empty {
		n = c.oneInt(l)
	}
	y := c.complexOf(x)
	if axis == x.Rank()-1 || n < 1 {
		c.fail("a transform of %d elements along axis %d of %v", n, axis, in[0])
	}
	inverse, onesided := c.bool("inverse", false), c.bool("onesided", false)
	switch {
	case inverse && onesided:
		c.unsupported("an inverse transform of one side")
	case inverse:
		y = y.IFFT(loris.Dim(axis), loris.FFTSize(n))
	default:
		y = y.FFT(loris.Dim(axis), loris.FFTSize(n))
	}
	if onesided {
		y = y.Narrow(axis, 0, n/2+1)
	}
	return out(in[0].elem, y.ViewAsReal().Cast(x.DType()))
}

func stft(c *call, in []*value) *value {
	x := c.tensor(in[0])
	if x.Rank() != 3 {
		c.fail("signals are [batch, length, 1 or 2], not %v", in[0])
	}
	step, size := c.oneInt(in[1]), x.Dim(1)
	window := c.maybe(opt(in, 2))
	if l := opt(in, 3); l != nil && !l.empty {
		size = c.oneInt(l)
	} else if window != nil {
		size = window.Numel()
	}
	if step < 1 || size < 1 || size > x.Dim(1) || window != nil && window.Numel() != size {
		c.fail("frames of %d elements, every %d, of %v", size, step, in[0])
	}
	frames := x.Unfold(1, size, step).Transpose(2, 3) // [batch, frames, size, 1 or 2]
	if window != nil {
		frames = frames.Mul(window.Cast(x.DType()).Reshape(size, 1))
	}
	y := c.complexOf(frames).FFT(loris.Dim(2))
	if c.bool("onesided", true) {
		y = y.Narrow(2, 0, size/2+1)
	}
	return out(in[0].elem, y.ViewAsReal().Cast(x.DType()))
}

// melWeights are triangular filters whose corners are evenly spaced in mel.
func melWeights(c *call, in []*value) *value {
	bins, length, rate := c.oneInt(in[0]), c.oneInt(in[1]), c.oneInt(in[2])
	low, high := c.oneFloat(in[3]), c.oneFloat(in[4])
	if bins < 1 || length < 1 || rate < 1 || bins > 1<<16 || length > 1<<24 {
		c.fail("%d bins of a spectrum of %d at %d Hz", bins, length, rate)
	}
	mel := func(hertz float64) float64 { return 2595 * math.Log10(1+hertz/700) }
	spectrum := length/2 + 1
	step := (mel(high) - mel(low)) / float64(bins+2)
	corner := func(i int) int {
		hertz := 700 * (math.Pow(10, (mel(low)+float64(i)*step)/2595) - 1)
		return int(math.Floor(float64(length+1) * hertz / float64(rate)))
	}
	c.table(spectrum, bins)
	w := make([]float64, spectrum*bins)
	set := func(row, col int, v float64) {
		if row < 0 || row >= spectrum {
			c.fail("the filters reach beyond half of the sample rate")
		}
		w[row*bins+col] = v
	}
	for i := range bins {
		left, centre, right := corner(i), corner(i+1), corner(i+2)
		if left == centre {
			set(centre, i, 1)
		}
		for j := left; j <= centre && left < centre; j++ {
			set(j, i, float64(j-left)/float64(centre-left))
		}
		for j := centre; j < right; j++ {
			set(j, i, float64(right-j)/float64(right-centre))
		}
	}
	e := c.elemAttr("output_datatype", tFloat)
	if !e.float() {
		c.unsupported("weights of %v", e)
	}
	return foldedFloats(e, []int{spectrum, bins}, w)
}
