package ir

// Short-time Fourier transforms.

func init() {
	const frames = "int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
	register("stft(Tensor self, "+frames+"bool center=False, str pad_mode='reflect', bool normalized=False, bool onesided=True, bool return_complex=True) -> Tensor", Spec{
		Category: Fourier,
		Doc: "The Fourier transforms of frames of n_fft elements of a signal [T] or [N, T], one every hop_length, n_fft/4 unless given, times the window, which has win_length " +
			"elements, n_fft unless given, and zeros around them: [*, frequencies, frames]. center pads the signal by n_fft/2 on both sides in the way of pad_mode, normalized " +
			"multiplies by 1/√n_fft, onesided leaves out what follows from the rest, and without return_complex the parts are a last dimension. ATen's stft, which does not centre.",
		Decompose: decomposeSTFT,
	})
	register("istft(Tensor self, "+frames+"bool center=True, bool normalized=False, bool onesided=True, int? length=None, bool return_complex=False) -> Tensor", Spec{
		Category: Fourier,
		Doc: "The signal, of the given length, of which self [*, frequencies, frames] is the stft with the same arguments: frames overlap and are divided by the sum of their " +
			"windows' squares, which gives NaN where that is 0. return_complex is for a self that is not onesided. ATen's istft.",
		Decompose: decomposeISTFT,
	})
	register("_stft_frames(Tensor self, Tensor window, int hop_length, int normalization, bool onesided) -> Tensor", Spec{
		Category: Fourier, Unlisted: true,
		Doc: "The Fourier transforms of frames of floating signals [N, T], as long as the window and one every hop_length, times the window: " +
			"[N, frequencies, frames]. normalization and onesided are those of _fft_r2c.",
		Decompose: func(b *Builder, a Args) []Value {
			window := a.In[1]
			frames := b.Mul(b.callNamed("unfold", []any{a.In[0], 1, window.Dim(0), a.Int("hop_length")}), window)
			spectra := b.callNamed("_fft_r2c", []any{frames, []int{2}, a.Int("normalization"), a.Bool("onesided")})
			return []Value{b.Transpose(spectra, 1, 2)}
		},
	})
}

// frameSizes reads n_fft and hop_length and returns the window of n_fft elements in dtype d.
func frameSizes(b *Builder, a Args, d DType) (n, hop int, window Value) {
	n = a.Int("n_fft")
	hop, length := n/4, n
	if v, ok := a.OptInt("hop_length"); ok {
		hop = v
	}
	if v, ok := a.OptInt("win_length"); ok {
		length = v
	}
	if n < 1 || hop < 1 || length < 1 || length > n {
		a.Fail(ErrArg, "expected n_fft and hop_length > 0 and 0 < win_length <= n_fft, got %d, %d and %d", n, hop, length)
	}
	if window = a.Tensor("window"); window.IsNil() {
		window = b.Full([]int{length}, 1, d)
	}
	if window.Rank() != 1 || window.Dim(0) != length || !window.DType().IsFloat() {
		a.Fail(ErrShape, "expected a floating 1D window of size win_length %d, got %v", length, window.Shape())
	}
	before := (n - length) / 2
	return n, hop, b.padDim(b.Cast(window, d), 0, before, n-length-before, 0)
}

// spectrumFactor is the normalization of a transform: 1/√n if normalized, else none forward and 1/n back.
func spectrumFactor(a Args, back bool) int {
	switch {
	case a.Bool("normalized"):
		return 1
	case back:
		return 2
	}
	return 0
}

func decomposeSTFT(b *Builder, a Args) []Value {
	x := a.In[0]
	d := x.DType()
	if d != F32 && d != F64 || x.Rank() < 1 || x.Rank() > 2 {
		a.Fail(ErrShape, "expected an f32 or f64 signal of 1 or 2 dimensions, got %v", x.Shape())
	}
	n, hop, window := frameSizes(b, a, d)
	signal := x
	if x.Rank() == 1 {
		signal = b.Unsqueeze(x, 0)
	}
	if a.Bool("center") {
		signal = b.callNamed("pad", []any{signal, []int{n / 2, n / 2}, a.Str("pad_mode")})
	}
	if signal.Dim(1) < n {
		a.Fail(ErrShape, "expected 0 < n_fft <= %d, but got n_fft %d", signal.Dim(1), n)
	}
	out := b.callNamed("_stft_frames", []any{signal, window, hop, spectrumFactor(a, false), a.Bool("onesided")})
	if x.Rank() == 1 {
		out = b.Reshape(out, out.Shape().Dims()[1:]...)
	}
	if !a.Bool("return_complex") {
		out = b.viewAsReal(out)
	}
	return []Value{out}
}

func decomposeISTFT(b *Builder, a Args) []Value {
	x := a.In[0]
	if !x.DType().IsComplex() || x.Rank() < 2 || x.Rank() > 3 {
		a.Fail(ErrShape, "istft requires a complex-valued input of 2 or 3 dimensions, got %v", x.Shape())
	}
	n, hop, window := frameSizes(b, a, x.DType().Part())
	bins, onesided := n, a.Bool("onesided")
	if onesided {
		bins = n/2 + 1
	}
	if x.Dim(-2) != bins || x.Dim(-1) == 0 {
		a.Fail(ErrShape, "expected %d frequencies and at least one frame for n_fft %d, got %v", bins, n, x.Shape())
	}
	if onesided && a.Bool("return_complex") {
		a.Fail(ErrArg, "cannot have onesided output if window or input is complex")
	}
	batched := x
	if x.Rank() == 2 {
		batched = b.Unsqueeze(x, 0)
	}
	spectra := b.Transpose(batched, 1, 2)
	var parts []Value
	if onesided {
		parts = []Value{b.callNamed("_fft_c2r", []any{spectra, []int{2}, spectrumFactor(a, true), n})}
	} else {
		re, im := b.parts(b.callNamed("_fft_c2c", []any{spectra, []int{2}, spectrumFactor(a, true), false}))
		if parts = []Value{re}; a.Bool("return_complex") {
			parts = append(parts, im)
		}
	}
	for i, p := range parts {
		if parts[i] = b.overlapAdd(a, p, window, hop); x.Rank() == 2 {
			parts[i] = b.Reshape(parts[i], parts[i].Dim(1))
		}
	}
	if len(parts) == 2 {
		return []Value{b.fromParts(parts[0], parts[1])}
	}
	return parts
}

// overlapAdd returns the signals of which frames [N, frames, n] times the window are the overlapping
// pieces, cut as center and length say.
func (b *Builder) overlapAdd(a Args, frames, window Value, hop int) Value {
	batch, count, n := frames.Dim(0), frames.Dim(1), frames.Dim(2)
	size := n + hop*(count-1)
	start, end := 0, size
	if a.Bool("center") {
		start, end = n/2, size-n/2
	}
	length, given := a.OptInt("length")
	if given {
		end = start + length
	}
	if end <= start {
		a.Fail(ErrShape, "the signal would have %d elements", end-start)
	}
	at := b.Add(b.Unsqueeze(b.Mul(b.Iota(count, I64), b.Const(hop, I64)), 1), b.Iota(n, I64))
	at = b.Reshape(at, count*n)
	pieces := b.Reshape(b.Mul(frames, window), batch, count*n)
	sum := b.IndexAdd(b.Full([]int{batch, size}, 0, frames.DType()), 1, at, pieces)
	squares := b.Reshape(b.Expand(b.Mul(window, window), count, n), count*n)
	envelope := b.IndexAdd(b.Full([]int{size}, 0, frames.DType()), 0, at, squares)
	stop := min(end, size)
	out := b.Div(b.Slice(sum, 1, start, stop, 1), b.Slice(envelope, 0, start, stop, 1))
	return b.padDim(out, 1, 0, end-stop, 0)
}
