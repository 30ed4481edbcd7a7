package ir

import "math"

// Discrete Fourier transforms. There is one primitive, of lines; the rest moves dimensions, repeats
// and scales.

func init() {
	register("_fft_line(Tensor self, bool forward) -> Tensor", Spec{
		Category: Fourier, HostOnly: true,
		Doc: "The Fourier transform of complex lines along the last dimension, or without forward its inverse, both without a factor.",
		Infer: func(a Args) []Shape {
			s := a.In[0].Shape()
			if !s.DType().IsComplex() || s.Rank() == 0 {
				a.Fail(ErrDType, "only for lines of complex numbers, got %v", s)
			}
			return []Shape{s}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.fftLine(grad[0], !a.Bool("forward"))}
		},
	})
	const rows = " over the dimensions dim; normalization is 0 for no factor, 1 for 1/√n and 2 for 1/n."
	register("_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor", Spec{
		Category: Fourier, HostOnly: true, ComplexKernels: true, Doc: "Fourier transform of complex numbers" + rows + " ATen's _fft_c2c.",
		Decompose: func(b *Builder, a Args) []Value {
			if !a.In[0].DType().IsComplex() {
				a.Fail(ErrDType, "expects a complex tensor, got %v", a.In[0].DType())
			}
			dims := transformed(a)
			return []Value{b.normalized(a, b.fft(a.In[0], dims, a.Bool("forward")), a.In[0], dims)}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.callNamed("_fft_c2c", []any{grad[0], a.Ints("dim"), a.Int("normalization"), !a.Bool("forward")})}
		},
	})
	register("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", Spec{
		Category: Fourier, HostOnly: true, Doc: "Fourier transform of reals" + rows + " With onesided the last of dim has the half that the other follows from. ATen's _fft_r2c.",
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			if d := x.DType(); d != F32 && d != F64 {
				a.Fail(ErrDType, "expects f32 or f64, got %v", d)
			}
			dims := transformed(a)
			last := dims[len(dims)-1]
			n := x.Dim(last)
			y := b.fft(b.Cast(x, x.DType().complexOf()), []int{last}, true)
			if a.Bool("onesided") {
				y = b.Slice(y, last, 0, n/2+1, 1)
			}
			return []Value{b.normalized(a, b.fft(y, dims[:len(dims)-1], true), x, dims)}
		},
		VJP: vjpR2C,
	})
	register("_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor", Spec{
		Category: Fourier, HostOnly: true, ComplexKernels: true, Doc: "Inverse Fourier transform to last_dim_size reals of the half of their transform" + rows + " ATen's _fft_c2r.",
		Decompose: decomposeC2R, VJP: vjpC2R,
	})
	initTransforms()
	initShifts()
}

// transformed returns the dimensions that a transform runs over.
func transformed(a Args) []int {
	dims := a.Ints("dim")
	if len(dims) == 0 || a.In[0].Rank() == 0 {
		a.Fail(ErrShape, "a Fourier transform needs a dimension to run over")
	}
	var seen [MaxRank]bool
	for i, d := range dims {
		if dims[i] = a.NormDim(d, a.In[0].Rank()); seen[dims[i]] {
			a.Fail(ErrIndex, "FFT dims must be unique: dimension %d appears twice", dims[i])
		}
		seen[dims[i]] = true
		if a.In[0].Dim(dims[i]) == 0 {
			a.Fail(ErrShape, "invalid number of data points (0) in dimension %d", dims[i])
		}
	}
	return dims
}

func (b *Builder) fftLine(x Value, forward bool) Value {
	return b.Call1(opFftLine, []any{x, forward})
}

// fft transforms along each of the dimensions, without a factor.
func (b *Builder) fft(x Value, dims []int, forward bool) Value {
	for _, d := range dims {
		if d == x.Rank()-1 {
			x = b.fftLine(x, forward)
		} else {
			x = b.Transpose(b.fftLine(b.Transpose(x, d, -1), forward), d, -1)
		}
	}
	return x
}

// normalized multiplies x by the factor for transforms of the lengths that full has along dims.
func (b *Builder) normalized(a Args, x, full Value, dims []int) Value {
	n := 1.0
	for _, d := range dims {
		n *= float64(full.Dim(d))
	}
	switch a.Int("normalization") {
	case 0:
		return x
	case 1:
		n = math.Sqrt(n)
	case 2:
	default:
		a.Fail(ErrArg, "normalization is %d, must be 0, 1 or 2", a.Int("normalization"))
	}
	if !x.DType().IsComplex() {
		return b.scale(x, 1/n)
	}
	return b.viewAsComplex(b.scale(b.viewAsReal(x), 1/n))
}

// decomposeC2R completes the last dimension by the conjugates of the half that is given.
func decomposeC2R(b *Builder, a Args) []Value {
	x, n := a.In[0], a.Int("last_dim_size")
	if !x.DType().IsComplex() {
		a.Fail(ErrDType, "expects a complex tensor, got %v", x.DType())
	}
	if n < 1 {
		a.Fail(ErrShape, "invalid number of data points (%d) specified", n)
	}
	dims := transformed(a)
	last := dims[len(dims)-1]
	x = b.resized(b.fft(x, dims[:len(dims)-1], false), last, n/2+1)
	if n > 2 {
		rest := b.Flip(b.Slice(x, last, 1, (n+1)/2, 1), last)
		x = b.Cat([]Value{x, b.callNamed("conj", []any{rest})}, last)
	}
	x = b.resized(x, last, n)
	re, _ := b.parts(b.fft(x, []int{last}, false))
	return []Value{b.normalized(a, re, re, dims)}
}

// halves multiplies what stands for itself and its conjugate in the last dimension of dims, of n reals,
// by a factor.
func (b *Builder) halves(x Value, dims []int, n int, factor float64) Value {
	last := dims[len(dims)-1]
	d := x.DType().Part()
	sizes := make([]int, x.Rank()-last+1)
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[0] = x.Dim(last)
	i := b.Iota(sizes[0], I64)
	once := b.logicalOr(b.eq(i, b.Const(0, I64)), b.eq(b.Add(i, i), b.Const(n, I64)))
	w := b.Where(once, b.Const(1, d), b.Const(factor, d))
	return b.viewAsComplex(b.Mul(b.viewAsReal(x), b.Reshape(w, sizes...)))
}

func vjpR2C(b *Builder, a Args, out, grad []Value) []Value {
	dims, g, norm := transformed(a), grad[0], a.Int("normalization")
	if !a.Bool("onesided") {
		re, _ := b.parts(b.callNamed("_fft_c2c", []any{g, dims, norm, false}))
		return []Value{re}
	}
	n := a.In[0].Dim(dims[len(dims)-1])
	return []Value{b.callNamed("_fft_c2r", []any{b.halves(g, dims, n, 0.5), dims, norm, n})}
}

func vjpC2R(b *Builder, a Args, out, grad []Value) []Value {
	dims := transformed(a)
	last := dims[len(dims)-1]
	g := b.callNamed("_fft_r2c", []any{grad[0], dims, a.Int("normalization"), true})
	return []Value{b.resized(b.halves(g, dims, a.Int("last_dim_size"), 2), last, a.In[0].Dim(last))}
}

// resized cuts a dimension to n elements, or adds zeros behind them.
func (b *Builder) resized(x Value, dim, n int) Value {
	if have := x.Dim(dim); have > n {
		return b.Slice(x, dim, 0, n, 1)
	} else if have < n {
		return b.padDim(x, dim, 0, n-have, 0)
	}
	return x
}

// spectrum is how a transform of torch.fft is written by the rows above.
type spectrum struct {
	from, to string // "r" or "c": what the elements are before and after
	forward  bool
}

func (t spectrum) row() string { return "_fft_" + t.from + "2" + t.to }

// normalization returns the number of a norm; what is not "ortho" is a factor for one direction.
func (t spectrum) normalization(a Args) int {
	norm := a.Str("norm")
	switch {
	case norm == "ortho":
		return 1
	case norm == "backward":
		if t.forward {
			return 0
		}
		return 2
	case norm == "forward":
		if t.forward {
			return 2
		}
		return 0
	}
	a.Fail(ErrArg, "invalid normalization mode: %q", norm)
	return 0
}

// apply transforms x over dims to the given sizes, of which -1 keeps what is there.
func (t spectrum) apply(b *Builder, a Args, x Value, dims, sizes []int) Value {
	switch {
	case t.from == "r" && x.DType().IsComplex():
		a.Fail(ErrDType, "expects a real input tensor, got %v", x.DType())
	case t.row() == "_fft_c2r" && !x.DType().IsComplex():
		d := F32
		if x.DType() == F64 {
			d = F64
		}
		x = b.Cast(x, d.complexOf())
	case !x.DType().IsComplex() && x.DType() != F64:
		x = b.Cast(x, F32)
	}
	last := len(dims) - 1
	size := 0
	for i, d := range dims {
		n := sizes[i]
		if t.to == "r" && i == last {
			if size = n; n < 0 {
				size = 2 * (x.Dim(d) - 1)
			}
			n = size/2 + 1
		}
		switch {
		case n == 0 || size < 0 || t.to == "r" && i == last && size < 1:
			a.Fail(ErrShape, "invalid number of data points (%d) specified", max(n, size))
		case n > 0:
			x = b.resized(x, d, n)
		}
	}
	args := []any{x, dims, t.normalization(a)}
	switch row := t.row(); {
	case row == "_fft_c2c" && !x.DType().IsComplex(): // of reals
		y := b.callNamed("_fft_r2c", append(args, false))
		if !t.forward {
			y = b.conjWhole(y)
		}
		return y
	case row == "_fft_c2c":
		args = append(args, t.forward)
	case row == "_fft_r2c":
		args = append(args, true)
	default:
		args = append(args, size)
	}
	return b.callNamed(t.row(), args)
}

func initTransforms() {
	forward, inverse := spectrum{"c", "c", true}, spectrum{"c", "c", false}
	half, unhalf := spectrum{"r", "c", true}, spectrum{"c", "r", false}
	const norm = ` norm is "backward" (no factor forward, 1/n back), "ortho" (1/√n both) or "forward". `
	for _, r := range []struct {
		name, what string
		t          spectrum
	}{
		{"fft", "The Fourier transform", forward}, {"ifft", "The inverse Fourier transform", inverse},
		{"rfft", "The half of the Fourier transform of reals that the other follows from", half},
		{"irfft", "The reals, an even number unless given, whose transform's half is self", unhalf},
	} {
		t := r.t
		register("fft_"+r.name+"(Tensor self, int? n=None, int dim=-1, str norm='backward') -> Tensor", Spec{
			Category: Fourier, Doc: r.what + ", along dim, after cutting or padding it with zeros to n elements." + norm + "ATen's fft_" + r.name + ".",
			Decompose: func(b *Builder, a Args) []Value {
				n, ok := a.OptInt("n")
				if !ok {
					n = -1
				}
				requireDims(a)
				return []Value{t.apply(b, a, a.In[0], []int{a.Dim("dim", a.In[0].Rank())}, []int{n})}
			},
		})
		for _, many := range []string{"2", "n"} {
			dims := map[string]string{"2": "int[] dim=[-2,-1]", "n": "int[]? dim=None"}[many]
			register("fft_"+r.name+many+"(Tensor self, int[]? s=None, "+dims+", str norm='backward') -> Tensor", Spec{
				Category: Fourier, Doc: r.what + ", over the dimensions dim, after cutting or padding them with zeros to the sizes s." + norm + "ATen's fft_" + r.name + many + ".",
				Decompose: func(b *Builder, a Args) []Value {
					dims, sizes := dimsAndSizes(a)
					return []Value{t.apply(b, a, a.In[0], dims, sizes)}
				},
			})
		}
	}
	register("fft_hfft(Tensor self, int? n=None, int dim=-1, str norm='backward') -> Tensor", Spec{
		Category: Fourier, Doc: "The transform, n reals, of a signal whose half is self and the other its conjugate, along dim." + norm + "ATen's fft_hfft.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{hermitian(b, a, "fft_irfft", true)} },
	})
	register("fft_ihfft(Tensor self, int? n=None, int dim=-1, str norm='backward') -> Tensor", Spec{
		Category: Fourier, Doc: "The inverse of fft_hfft, along dim." + norm + "ATen's fft_ihfft.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{hermitian(b, a, "fft_rfft", false)} },
	})
}

// requireDims fails for scalars, which have nothing to transform.
func requireDims(a Args) {
	if a.In[0].Rank() == 0 {
		a.Fail(ErrShape, "a scalar has no dimension to transform")
	}
}

// hermitian is a transform by that of the conjugate in the other direction.
func hermitian(b *Builder, a Args, name string, before bool) Value {
	norm := a.Str("norm")
	other, known := map[string]string{"backward": "forward", "forward": "backward", "ortho": "ortho"}[norm]
	if !known {
		a.Fail(ErrArg, "invalid normalization mode: %q", norm)
	}
	x := a.In[0]
	if before {
		return b.callNamed(name, []any{b.conjWhole(x), a.Get("n"), a.Int("dim"), other})
	}
	return b.conjWhole(b.callNamed(name, []any{x, a.Get("n"), a.Int("dim"), other}))
}

// conjWhole is conj of a tensor that is in memory before and after: its parts are multiplied where they
// are by 1 and -1, which is one pass over numbers that lie side by side.
func (b *Builder) conjWhole(x Value) Value {
	if !x.DType().IsComplex() || x.Rank() == 0 {
		return b.callNamed("conj", []any{x})
	}
	parts := b.viewAsReal(x)
	d, n := parts.DType(), x.Dim(-1)
	sign := b.shift(b.scale(b.Cast(b.Iota(2, I64), d), -2), 1)
	signs := b.Reshape(b.Expand(sign, n, 2), 2*n)
	flat := append(x.Shape().Dims()[:x.Rank()-1], 2*n)
	return b.viewAsComplex(b.Reshape(b.Mul(b.Reshape(parts, flat...), signs), parts.Shape().Dims()...))
}

// dimsAndSizes reads s and dim: without dim the last ones of s, or all.
func dimsAndSizes(a Args) (dims, sizes []int) {
	requireDims(a)
	rank := a.In[0].Rank()
	dims, sizes = a.Ints("dim"), a.Ints("s")
	switch {
	case dims == nil && len(sizes) > rank:
		a.Fail(ErrShape, "got %d sizes but the tensor only has %d dimensions", len(sizes), rank)
	case dims == nil:
		n := rank
		if sizes != nil {
			n = len(sizes)
		}
		for i := range n {
			dims = append(dims, rank-n+i)
		}
	}
	if sizes == nil {
		for range dims {
			sizes = append(sizes, -1)
		}
	}
	if len(dims) == 0 {
		a.Fail(ErrShape, "the transform must run over at least one dimension")
	}
	if len(sizes) != len(dims) {
		a.Fail(ErrArg, "when given, dim and s must have the same length, got %d and %d", len(dims), len(sizes))
	}
	for i, d := range dims {
		dims[i] = a.NormDim(d, rank)
	}
	return dims, sizes
}

func initShifts() {
	for _, name := range []string{"fft_fftshift", "fft_ifftshift"} {
		register(name+"(Tensor self, int[]? dim=None) -> Tensor", Spec{
			Category: Fourier, Doc: "Frequencies in another order, zero in the middle or, for ifftshift, in front, along dim, all dimensions if absent. ATen's " + name + ".",
			Decompose: func(b *Builder, a Args) []Value {
				x := a.In[0]
				dims := a.Ints("dim")
				if dims == nil {
					dims = countTo(x.Rank())
				}
				if x.Rank() == 0 && len(dims) > 0 {
					a.Fail(ErrIndex, "dimension %d of a tensor without dimensions", dims[0])
				}
				by := make([]int, len(dims))
				for i, d := range dims {
					n := x.Dim(a.NormDim(d, x.Rank()))
					if by[i] = n / 2; a.Spec.Name == "fft_ifftshift" {
						by[i] = (n + 1) / 2
					}
				}
				if len(dims) == 0 {
					return []Value{x}
				}
				return []Value{b.callNamed("roll", []any{x, by, dims})}
			},
		})
	}
	for _, name := range []string{"fft_fftfreq", "fft_rfftfreq"} {
		register(name+"(int n, float d=1, *, ScalarType dtype=f32) -> Tensor", Spec{
			Category: Fourier, Doc: "The frequencies of a transform, or of its half, of n samples at distance d. ATen's " + name + ".",
			Decompose: func(b *Builder, a Args) []Value {
				n, d := a.Int("n"), a.DType("dtype")
				requireNumberDType(a)
				if n < 1 || !d.IsFloat() {
					a.Fail(ErrArg, "n must be positive and dtype floating, got %d and %v", n, d)
				}
				count := n
				if a.Spec.Name == "fft_rfftfreq" {
					count = n/2 + 1
				}
				i := b.Iota(count, d)
				if count == n && n > 1 {
					i = b.Where(b.ge(i, b.Const((n+1)/2, d)), b.Sub(i, b.Const(n, d)), i)
				}
				return []Value{b.scale(i, 1/(float64(n)*a.float("d")))}
			},
		})
	}
}
