package ir

import "math"

// Windows of signals. Their numbers are computed in f64 and rounded once.

func init() {
	window := func(name, params, doc string, at func(b *Builder, a Args, x Value) Value) {
		register(name+"(int window_length, bool periodic=True, "+params+"*, ScalarType dtype=f32) -> Tensor", Spec{
			Category: Creation, NoGrad: constantGrad,
			Doc: doc + " A periodic window is the one that is an element longer, without its last element. ATen's " + name + ".",
			Decompose: func(b *Builder, a Args) []Value {
				n, d := a.Int("window_length"), a.DType("dtype")
				if n < 0 || !d.IsFloat() {
					a.Fail(ErrArg, "window_length must not be negative and dtype floating, got %d and %v", n, d)
				}
				inferDims(a, d, []int{n})
				if n < 2 {
					return []Value{b.Full([]int{n}, 1, d)}
				}
				last := n - 1
				if a.Bool("periodic") {
					last = n
				}
				x := b.scale(b.Iota(n, F64), 1/float64(last)) // from 0 at the first element to 1 at the last
				return []Value{b.Cast(at(b, a, x), d)}
			},
		})
	}
	window("hann_window", "", "½ - ½·cos(2πx) for x from 0 to 1.", func(b *Builder, a Args, x Value) Value {
		return b.cosines(x, 0.5, -0.5)
	})
	window("hamming_window", "float alpha=0.54, float beta=0.46, ", "alpha - beta·cos(2πx) for x from 0 to 1.", func(b *Builder, a Args, x Value) Value {
		return b.cosines(x, a.float("alpha"), -a.float("beta"))
	})
	window("blackman_window", "", "0.42 - ½·cos(2πx) + 0.08·cos(4πx) for x from 0 to 1.", func(b *Builder, a Args, x Value) Value {
		return b.cosines(x, 0.42, -0.5, 0.08)
	})
	window("bartlett_window", "", "1 - |2x - 1| for x from 0 to 1, a triangle.", func(b *Builder, a Args, x Value) Value {
		return b.oneMinus(b.abs(b.shift(b.scale(x, 2), -1)))
	})
	window("kaiser_window", "float beta=12.0, ", "I₀(beta·√(1 - (2x - 1)²))/I₀(beta) for x from 0 to 1, I₀ being the modified Bessel function.", kaiserWindow)
}

// cosines is Σ c[k]·cos(2πkx).
func (b *Builder) cosines(x Value, c ...float64) Value {
	sum := b.fullLike(x, c[0])
	for k, f := range c[1:] {
		sum = b.Add(sum, b.scale(b.cos(b.scale(x, 2*math.Pi*float64(k+1))), f))
	}
	return sum
}

// maxKaiserBeta bounds the terms of the series, and I₀ to what an f64 holds.
const maxKaiserBeta = 500

func kaiserWindow(b *Builder, a Args, x Value) Value {
	beta := a.float("beta")
	if !(math.Abs(beta) <= maxKaiserBeta) {
		a.Fail(ErrArg, "beta must be between %d and %d, got %v", -maxKaiserBeta, maxKaiserBeta, beta)
	}
	y := b.shift(b.scale(x, 2), -1)
	// I₀(z) is Σ (z²/4)ᵏ/k!², whose terms fall from k = z/2 on.
	quarter := b.scale(b.maximum(b.oneMinus(b.Mul(y, y)), b.zeroOf(y)), beta*beta/4)
	sum, at := b.fullLike(x, 1), 1.0
	for k := 20 + int(1.5*math.Abs(beta)); k > 0; k-- {
		f := 1 / float64(k*k)
		sum = b.shift(b.Mul(sum, b.scale(quarter, f)), 1)
		at = 1 + at*f*beta*beta/4
	}
	return b.scale(sum, 1/at)
}
