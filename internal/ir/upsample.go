package ir

import (
	"fmt"
	"strings"
)

// The upsampling ops under ATen's names, which exported graphs and packages call; users have interpolate.
func init() {
	for n, scales := range [][]string{{"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}} {
		registerNearest("nearest", scales, n+1, false)
		registerNearest("_nearest_exact", scales, n+1, true)
	}
	for _, u := range []struct {
		name, scales string
		resample     func(b *Builder, x Value, dim, out int, factor float64, corners bool) Value
	}{
		{"upsample_linear1d", "scales", (*Builder).lerp},
		{"upsample_bilinear2d", "scales_h scales_w", (*Builder).lerp},
		{"upsample_trilinear3d", "scales_d scales_h scales_w", (*Builder).lerp},
		{"upsample_bicubic2d", "scales_h scales_w", (*Builder).cubicResample},
	} {
		scales := strings.Fields(u.scales)
		factors := "float? " + strings.Join(scales, "=None, float? ") + "=None"
		register(fmt.Sprintf("%s(Tensor self, int[] output_size, bool align_corners, %s) -> Tensor", u.name, factors), Spec{
			Doc:      fmt.Sprintf("self [N, C, …] resampled to the spatial dimensions output_size; the factors say where pixels lie, which follows from the sizes unless they are given. Floating dtypes; f16 and bf16 compute in f32. As at::%s.", u.name),
			Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
				x, n := a.Tensor("self"), len(scales)
				if !x.DType().IsFloat() || x.Rank() != n+2 {
					a.Fail(ErrShape, "input must be floating of %d dimensions, got %v", n+2, x.Shape())
				}
				y := b.widen(x)
				size := spread(a, "output_size", n)
				for i := n - 1; i >= 0; i-- {
					if size[i] < 1 || x.Dim(2+i) < 1 {
						a.Fail(ErrShape, "spatial dimension %d of size %d cannot be resampled to %d", i, x.Dim(2+i), size[i])
					}
					factor, _ := a.OptFloat(scales[i])
					y = u.resample(b, y, 2+i, size[i], factor, a.Bool("align_corners"))
				}
				return []Value{b.Cast(y, x.DType())}
			},
		})
		registerBackward(fmt.Sprintf("%s_backward(Tensor grad_output, int[] output_size, int[] input_size, bool align_corners, %s) -> Tensor", u.name, factors),
			fmt.Sprintf("The gradient of %s with respect to its input, whose dimensions are input_size. As at::%s_backward.", u.name, u.name),
			func(b *Builder, a Args) []Value { return upsampleBackward(b, a, u.name) })
	}
}

// registerNearest adds upsample_nearest or _upsample_nearest_exact for n spatial dimensions.
func registerNearest(kind string, scales []string, n int, exact bool) {
	name := fmt.Sprintf("upsample_%s%dd", kind, n)
	if exact {
		name = fmt.Sprintf("_upsample_nearest_exact%dd", n)
	}
	factors := "float? " + strings.Join(scales, "=None, float? ") + "=None"
	register(fmt.Sprintf("%s(Tensor self, int[] output_size, %s) -> Tensor", name, factors), Spec{
		Doc:      fmt.Sprintf("self [N, C, …] resampled to the spatial dimensions output_size by the nearest pixels; the factors say where pixels lie, which follows from the sizes unless they are given. Any dtype. As at::%s.", name),
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			x, size := a.Tensor("self"), spread(a, "output_size", n)
			if x.Rank() != n+2 {
				a.Fail(ErrShape, "input must have %d dimensions, got %v", n+2, x.Shape())
			}
			for i, o := range size {
				if o < 1 || x.Dim(2+i) < 1 {
					a.Fail(ErrShape, "spatial dimension %d of size %d cannot be resampled to %d", i, x.Dim(2+i), o)
				}
				factor, _ := a.OptFloat(scales[i])
				x = b.nearest(x, 2+i, o, factor, exact)
			}
			return []Value{b.Reshape(x, x.Shape().Dims()...)}
		},
	})
}

// upsampleBackward differentiates the resampling of an input of which the shape matters alone:
// it is linear.
func upsampleBackward(b *Builder, a Args, forward string) []Value {
	g := a.Tensor("grad_output")
	x := b.Full(a.Ints("input_size"), 0, g.DType())
	grads := b.pullBackFrom([]Value{x}, 1, []Value{g}, func(b *Builder, in []Value) []Value {
		named := []Named{A("self", in[0])}
		for _, p := range specs[byName[forward]].Schema.Params[1:] {
			named = append(named, A(p.Name, a.Get(p.Name)))
		}
		y := b.Call(byName[forward], nil, named...)
		if y[0].Shape() != g.Shape() {
			a.Fail(ErrShape, "the gradient of the result must be %v, got %v", y[0].Shape(), g.Shape())
		}
		return y
	})
	return grads
}

// cubicResample mixes four neighbours of each source position by cubic convolution; those
// beyond the edges are the edges.
func (b *Builder) cubicResample(x Value, dim, out int, factor float64, corners bool) Value {
	in, d := x.Dim(dim), x.DType()
	pos := b.sourcePositions(d, in, out, factor, corners)
	first := b.floor(pos)
	tail := make([]int, x.Rank()-dim)
	for i := range tail {
		tail[i] = 1
	}
	tail[0] = out
	var y Value
	for j, w := range b.cubicWeights(b.Sub(pos, first)) {
		at := b.Add(b.Cast(first, I64), b.Const(j-1, I64))
		at = b.minimum(b.maximum(at, b.Const(0, I64)), b.Const(in-1, I64))
		part := b.Mul(b.IndexSelect(x, dim, at), b.Reshape(w, tail...))
		if j > 0 {
			part = b.Add(y, part)
		}
		y = part
	}
	return y
}

// cubicWeights returns the weights of four neighbours of a position that lies t behind the
// second: those of cubic convolution with the coefficient -¾.
func (b *Builder) cubicWeights(t Value) [4]Value {
	const k = -0.75
	c := func(v float64) Value { return b.Const(v, t.DType()) }
	near := func(x Value) Value { // at a distance of at most 1
		return b.Add(b.Mul(b.Mul(b.Sub(b.Mul(c(k+2), x), c(k+3)), x), x), c(1))
	}
	far := func(x Value) Value { // of 1 to 2
		return b.Sub(b.Mul(b.Add(b.Mul(b.Sub(b.Mul(c(k), x), c(5*k)), x), c(8*k)), x), c(4*k))
	}
	u := b.Sub(c(1), t)
	return [4]Value{far(b.Add(t, c(1))), near(t), near(u), far(b.Add(u, c(1)))}
}

// sourcePositions is where each of out pixels along one dimension lies among in, by ATen's
// rules: at the corners of a grid, or at the centres of its cells.
func (b *Builder) sourcePositions(d DType, in, out int, factor float64, corners bool) Value {
	c := func(v float64) Value { return b.Const(v, d) }
	pos := b.Iota(out, d)
	switch {
	case corners && out > 1:
		return b.Mul(pos, b.Div(c(float64(in-1)), c(float64(out-1))))
	case corners:
		return b.Mul(pos, c(0))
	}
	scale := b.Div(c(float64(in)), c(float64(out)))
	if factor > 0 {
		scale = c(1 / factor)
	}
	return b.Sub(b.Mul(scale, b.Add(pos, c(0.5))), c(0.5))
}
