package ir

func init() {
	register("convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		Doc:      "Cross-correlation of input [N, C, d1..dn] with weight [O, C/groups, k1..kn], n from 1 to 3, plus bias [O]; transposed, the gradient of one, with weight [C, O/groups, k1..kn]. The lists have one entry a spatial dimension. One floating dtype; f16 and bf16 accumulate in f32. As at::convolution.",
		Category: Neural, Infer: func(a Args) []Shape { return []Shape{ConvOf(a).outShape()} }, VJP: vjpConvolution,
	})
}

// Conv is the geometry of one use of convolution. Arrays hold the first Spatial
// entries, one a spatial dimension.
type Conv struct {
	DType      DType
	Batch      int
	In, Out    int // channels
	Groups     int
	Spatial    int // number of spatial dimensions: 1 to 3
	Transposed bool

	InDims, OutDims, Kernel, Stride, Padding, Dilation, outputPadding [3]int
}

// outShape returns the shape of the result, [Batch, Out, OutDims...].
func (c *Conv) outShape() Shape {
	dims := append([]int{c.Batch, c.Out}, c.OutDims[:c.Spatial]...)
	return MakeShape(c.DType, dims...)
}

// ConvOf reads and checks the operands and attributes of a use of convolution;
// a mistake panics with an *OpError.
func ConvOf(a Args) *Conv {
	x, w, bias := a.Tensor("input"), a.Tensor("weight"), a.Tensor("bias")
	xs, ws := x.Shape(), w.Shape()
	c := &Conv{DType: xs.DType(), Spatial: xs.Rank() - 2, Groups: a.Int("groups"), Transposed: a.Bool("transposed")}
	if !c.DType.IsFloat() || ws.DType() != c.DType {
		a.Fail(ErrDType, "input and weight must have one floating dtype, got %v and %v", c.DType, ws.DType())
	}
	if c.Spatial < 1 || c.Spatial > 3 {
		a.Fail(ErrShape, "input must have 3 to 5 dimensions (batch, channels, 1 to 3 spatial), got %d", xs.Rank())
	}
	if ws.Rank() != xs.Rank() {
		a.Fail(ErrShape, "weight must have %d dimensions as input has, got %d", xs.Rank(), ws.Rank())
	}
	c.Batch, c.In = xs.Dim(0), xs.Dim(1)
	if c.Groups < 1 {
		a.Fail(ErrArg, "groups must be positive, got %d", c.Groups)
	}
	want, o := ws.Dim(1)*c.Groups, ws.Dim(0)
	if c.Transposed {
		want, o = ws.Dim(0), ws.Dim(1)*c.Groups
	}
	c.Out = o
	if want != c.In {
		a.Fail(ErrShape, "weight wants %d input channels in %d groups, input has %d", want, c.Groups, c.In)
	}
	if ws.Dim(0)%c.Groups != 0 {
		a.Fail(ErrShape, "dimension 0 of weight, %d, is not divisible by %d groups", ws.Dim(0), c.Groups)
	}
	if !bias.IsNil() && bias.Shape() != MakeShape(c.DType, c.Out) {
		a.Fail(ErrShape, "bias must be %v, got %v", MakeShape(c.DType, c.Out), bias.Shape())
	}
	spatialInts(a, "stride", c.Stride[:c.Spatial], 1)
	spatialInts(a, "padding", c.Padding[:c.Spatial], 0)
	spatialInts(a, "dilation", c.Dilation[:c.Spatial], 1)
	spatialInts(a, "output_padding", c.outputPadding[:c.Spatial], 0)
	for i := range c.Spatial {
		c.InDims[i], c.Kernel[i] = xs.Dim(2+i), ws.Dim(2+i)
		c.inferDim(a, i)
	}
	return c
}

func (c *Conv) inferDim(a Args, i int) {
	n, s, p := c.InDims[i], c.Stride[i], c.Padding[i]
	span := c.Dilation[i]*(c.Kernel[i]-1) + 1
	if c.Kernel[i] < 1 {
		a.Fail(ErrShape, "kernel dimension %d is empty", i)
	}
	if c.Transposed {
		op := c.outputPadding[i]
		if op >= s && op >= c.Dilation[i] {
			a.Fail(ErrArg, "output_padding %d must be smaller than stride %d or dilation %d", op, s, c.Dilation[i])
		}
		c.OutDims[i] = (n-1)*s - 2*p + span + op
		if c.OutDims[i] < 1 {
			a.Fail(ErrShape, "the result would have size %d in spatial dimension %d", c.OutDims[i], i)
		}
		return
	}
	if n+2*p < span {
		a.Fail(ErrShape, "the kernel spans %d, more than the padded input, %d, in spatial dimension %d", span, n+2*p, i)
	}
	c.OutDims[i] = (n+2*p-span)/s + 1
}

// spatialInts reads an int[] attribute with one entry a spatial dimension and
// checks its bounds.
func spatialInts(a Args, name string, dst []int, least int) {
	v := a.Ints(name)
	if len(v) != len(dst) {
		a.Fail(ErrArg, "%s must have %d entries, got %d", name, len(dst), len(v))
	}
	for i, n := range v {
		if n < least {
			a.Fail(ErrArg, "%s must be at least %d, got %v", name, least, v)
		}
		dst[i] = n
	}
	requireWindow(a, name, v)
}

// vjpConvolution writes all gradients with convolution itself, so that they can
// be differentiated again.
func vjpConvolution(b *Builder, a Args, out, grad []Value) []Value {
	c := ConvOf(a)
	x, w, g := a.Tensor("input"), a.Tensor("weight"), grad[0]
	gs := []Value{b.convGradInput(c, w, g), {}}
	if c.Transposed {
		gs[1] = b.convGradWeight(c, g, x)
	} else {
		gs[1] = b.convGradWeight(c, x, g)
	}
	if !a.Tensor("bias").IsNil() {
		dims := []int{0}
		for i := range c.Spatial {
			dims = append(dims, 2+i)
		}
		gs = append(gs, b.Sum(g, dims, false))
	}
	return gs
}

// convGradInput is the transposed convolution of the cotangent with the same
// weight, whose output padding restores the positions that the stride left out.
func (b *Builder) convGradInput(c *Conv, w, g Value) Value {
	var op [3]int
	n := c.Spatial
	if !c.Transposed {
		for i := range n {
			op[i] = c.InDims[i] - ((c.OutDims[i]-1)*c.Stride[i] - 2*c.Padding[i] + c.Dilation[i]*(c.Kernel[i]-1) + 1)
		}
	}
	gx := b.Call1(opConvolution, []any{g, w, nil, c.Stride[:n], c.Padding[:n], c.Dilation[:n], !c.Transposed, op[:n], c.Groups})
	return b.crop(gx, c.InDims[:n])
}

// convGradWeight returns the gradient of the weight: for each tap the
// correlation of x, the larger side, with g, the smaller. That is a convolution
// in which batch and channels change places and so do stride and dilation:
//
//	x [N, G·X, d…] becomes [X, G·N, d…], g [N, G·Y, o…] becomes weight [G·Y, N, o…],
//	and the result [X, G·Y, k…] becomes [G·Y, X, k…]
//
// It covers more taps than the kernel has when the stride left positions out.
func (b *Builder) convGradWeight(c *Conv, x, g Value) Value {
	n, batch := c.Spatial, c.Batch
	xc := x.Dim(1) / c.Groups
	spatial := x.Shape().Dims()[2:]
	x = b.Reshape(x, append([]int{batch, c.Groups, xc}, spatial...)...)
	perm := []int{2, 1, 0, 3, 4, 5}
	x = b.Permute(x, perm[:n+3]...)
	x = b.Reshape(x, append([]int{xc, c.Groups * batch}, spatial...)...)
	var zero [3]int
	gw := b.Call1(opConvolution, []any{x, b.Transpose(g, 0, 1), nil, c.Dilation[:n], c.Padding[:n], c.Stride[:n], false, zero[:n], c.Groups})
	return b.Transpose(b.crop(gw, c.Kernel[:n]), 0, 1)
}

// crop keeps the first dims[i] positions of spatial dimension 2+i.
func (b *Builder) crop(x Value, dims []int) Value {
	for i, d := range dims {
		if x.Dim(2+i) > d {
			x = b.Slice(x, 2+i, 0, d, 1)
		}
	}
	return x
}
