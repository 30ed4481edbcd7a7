package ir

import "math"

func init() {
	register("interpolate(Tensor self, int[]? size=None, float? scale_factor=None, str mode='nearest', bool align_corners=False) -> Tensor", Spec{
		Doc:      "self [N, C, …] resampled to the spatial dimensions size, or by scale_factor in all of them. mode is nearest, nearest-exact or area for 1 to 3 spatial dimensions, linear for 1, bilinear for 2 and trilinear for 3. Floating dtypes, the first two modes any; f16 and bf16 compute in f32. As torch.nn.functional.interpolate.",
		Category: Neural, Decompose: interpolate,
	})
}

func interpolate(b *Builder, a Args) []Value {
	x, mode := a.In[0], a.Str("mode")
	n := x.Rank() - 2
	if n < 1 || n > 3 {
		a.Fail(ErrShape, "input must have 3 to 5 dimensions (batch, channels, 1 to 3 spatial), got %d", x.Rank())
	}
	size, scale := interpolatedSize(a, x.Shape().Dims()[2:])
	corners := a.Bool("align_corners")
	linear := mode == [...]string{"", "linear", "bilinear", "trilinear"}[n]
	if corners && !linear {
		a.Fail(ErrArg, "align_corners is for the linear modes, not for %q", mode)
	}
	switch {
	case mode == "nearest" || mode == "nearest-exact":
		for i, o := range size {
			x = b.nearest(x, 2+i, o, scale, mode == "nearest-exact")
		}
		return []Value{x}
	case !x.DType().IsFloat():
		a.Fail(ErrDType, "mode %q is not defined for %v operands", mode, x.DType())
	case mode == "area":
		return []Value{b.callNamed([...]string{"", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}[n], []any{x, size})}
	case !linear:
		a.Fail(ErrArg, "mode %q is not known for %d spatial dimensions", mode, n)
	}
	y := b.widen(x)
	for i := n - 1; i >= 0; i-- {
		y = b.lerp(y, 2+i, size[i], scale, corners)
	}
	return []Value{b.Cast(y, x.DType())}
}

// interpolatedSize returns the spatial dimensions of the result and the scale
// factor if it was given, 0 if not.
func interpolatedSize(a Args, in []int) ([]int, float64) {
	scale, scaled := a.OptFloat("scale_factor")
	given := a.Get("size") != nil
	if given == scaled {
		a.Fail(ErrArg, "give either size or scale_factor")
	}
	size := make([]int, len(in))
	if given {
		copy(size, spread(a, "size", len(in)))
		scale = 0
	} else if !(scale > 0) || math.IsInf(scale, 0) {
		a.Fail(ErrArg, "scale_factor must be positive, got %v", scale)
	} else {
		for i, n := range in {
			size[i] = int(math.Floor(float64(n) * scale))
		}
	}
	for i, o := range size {
		if o < 1 || in[i] < 1 {
			a.Fail(ErrShape, "spatial dimension %d of size %d cannot be resampled to %d", i, in[i], o)
		}
	}
	return size, scale
}

// nearest reads position ⌊i·scale⌋, or ⌊(i+½)·scale⌋ if exact, for each i. Near whole numbers the
// result depends on rounding, which follows ATen's CPU kernels: the scale and the position are f32
// (f64 for f64), the position is rounded once, as f64 arithmetic on f32 does, and the floor is taken
// in f32.
func (b *Builder) nearest(x Value, dim, out int, factor float64, exact bool) Value {
	in := x.Dim(dim)
	if out == in {
		return x
	}
	if out == 2*in {
		return b.repeatEach(x, dim, 2)
	}
	d, scale := F64, float64(in)/float64(out)
	if factor > 0 {
		scale = 1 / factor
	}
	if x.DType() != F64 {
		if d = F32; factor > 0 {
			scale = float64(float32(scale))
		} else {
			scale = float64(float32(in) / float32(out))
		}
	}
	c := func(v float64) Value { return b.Const(v, F64) }
	at := b.Iota(out, F64)
	if exact {
		at = b.Sub(b.Mul(b.Add(at, c(0.5)), c(scale)), c(0.5))
		at = b.Add(b.maximum(b.Cast(at, d), b.Const(0.0, d)), b.Const(0.5, d))
	} else {
		at = b.Cast(b.Mul(at, c(scale)), d)
	}
	at = b.Cast(b.floor(b.Cast(at, F32)), I64)
	return b.IndexSelect(x, dim, b.minimum(at, b.Const(in-1, I64)))
}

// repeatEach repeats each element along dim in place.
func (b *Builder) repeatEach(x Value, dim, times int) Value {
	dims := x.Shape().Dims()
	wide := append(append(append([]int{}, dims[:dim+1]...), times), dims[dim+1:]...)
	dims[dim] *= times
	return b.Reshape(b.Expand(b.Unsqueeze(x, dim+1), wide...), dims...)
}

// lerp mixes the two neighbours of each source position, with ATen's rules for
// where pixels lie: at the corners of a grid, or at the centres of its cells.
func (b *Builder) lerp(x Value, dim, out int, factor float64, corners bool) Value {
	in, d := x.Dim(dim), x.DType()
	if in == out && (factor == 0 || corners) {
		return x
	}
	c := func(v float64) Value { return b.Const(v, d) }
	pos := b.sourcePositions(d, in, out, factor, corners)
	if !corners {
		pos = b.maximum(pos, c(0))
	}
	low := b.minimum(b.Cast(b.floor(pos), I64), b.Const(in-1, I64))
	high := b.minimum(b.Add(low, b.Const(1, I64)), b.Const(in-1, I64))
	w := b.minimum(b.maximum(b.Sub(pos, b.Cast(low, d)), c(0)), c(1))
	dims := make([]int, x.Rank()-dim)
	for i := range dims {
		dims[i] = 1
	}
	dims[0] = out
	w = b.Reshape(w, dims...)
	return b.Add(b.Mul(b.IndexSelect(x, dim, low), b.Sub(c(1), w)), b.Mul(b.IndexSelect(x, dim, high), w))
}
