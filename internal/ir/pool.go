package ir

import "slices"

func init() {
	register("max_pool_with_indices(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> (Tensor values, Tensor indices)", Spec{
		Doc:      "Largest element of each window over the last len(kernel_size) dimensions, 1 to 3, and its i64 position counted over those dimensions of the input; the first of equal ones, NaN above all. All dimensions in front are batch. Any dtype but bool. As at::max_pool2d_with_indices.",
		Category: Neural, VJP: vjpMaxPool,
		Infer: func(a Args) []Shape {
			s := PoolOf(a).outShape(a.In[0].Shape())
			return []Shape{s, s.WithDType(I64)}
		},
	})
}

// Pool is the geometry of one use of a pooling op. Arrays hold the first Spatial
// entries, one a pooled dimension.
type Pool struct {
	Spatial int // number of pooled dimensions: 1 to 3

	InDims, OutDims, Kernel, Stride, Padding, Dilation [3]int
}

// outShape returns the shape of the values for an input of the given shape.
func (p *Pool) outShape(in Shape) Shape {
	dims := in.Dims()
	copy(dims[len(dims)-p.Spatial:], p.OutDims[:p.Spatial])
	return in.WithDims(dims...)
}

// PoolOf reads and checks the operand and attributes of a use of
// max_pool_with_indices; a mistake panics with an *OpError.
func PoolOf(a Args) *Pool {
	s := a.In[0].Shape()
	if d := s.DType(); d == Bool || d.IsStorage() {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	p := &Pool{Spatial: len(a.Ints("kernel_size"))}
	if p.Spatial < 1 || p.Spatial > 3 {
		a.Fail(ErrArg, "kernel_size must have 1 to 3 entries, got %d", p.Spatial)
	}
	if s.Rank() < p.Spatial {
		a.Fail(ErrShape, "input must have at least %d dimensions, got %d", p.Spatial, s.Rank())
	}
	p.read(a, s)
	return p
}

func (p *Pool) read(a Args, s Shape) {
	n, lead := p.Spatial, s.Rank()-p.Spatial
	spatialInts(a, "kernel_size", p.Kernel[:n], 1)
	spatialInts(a, "stride", p.Stride[:n], 1)
	spatialInts(a, "padding", p.Padding[:n], 0)
	spatialInts(a, "dilation", p.Dilation[:n], 1)
	for i := range n {
		p.InDims[i] = s.Dim(lead + i)
		p.inferDim(a, i, a.Bool("ceil_mode"))
	}
}

// inferDim sizes one pooled dimension. In ceil mode a last window that would
// start in the padding after the input is left out.
func (p *Pool) inferDim(a Args, i int, ceil bool) {
	n, s, pad := p.InDims[i], p.Stride[i], p.Padding[i]
	span := p.Dilation[i]*(p.Kernel[i]-1) + 1
	if n < 1 {
		a.Fail(ErrShape, "pooled dimension %d is empty", i)
	}
	if pad > span/2 {
		a.Fail(ErrArg, "padding %d is more than half of the kernel's span %d", pad, span)
	}
	room := n + 2*pad - span
	if ceil {
		room += s - 1
	}
	if room < 0 {
		a.Fail(ErrShape, "the kernel spans %d, more than the padded input, %d, in pooled dimension %d", span, n+2*pad, i)
	}
	out := room/s + 1
	if ceil && (out-1)*s >= n+pad {
		out--
	}
	p.OutDims[i] = out
}

// vjpMaxPool adds each cotangent to the element that won its window.
func vjpMaxPool(b *Builder, a Args, out, grad []Value) []Value {
	if grad[0].IsNil() {
		return []Value{{}}
	}
	return []Value{b.sumByPlace(a, len(a.Ints("kernel_size")), a.In[0].Shape(), out[1], grad[0])}
}

// sumByPlace returns zeros of the shape s with the elements of x added to them: index has for
// each its place among the last n dimensions.
func (b *Builder) sumByPlace(a Args, n int, s Shape, index, x Value) Value {
	dims := s.Dims()
	lead := len(dims) - n
	if lead < 0 || index.Shape() != x.Shape().WithDType(index.DType()) || x.Rank() != len(dims) || !slices.Equal(x.Shape().Dims()[:lead], dims[:lead]) {
		a.Fail(ErrShape, "%v and the indices %v are not of windows over the last %d dimensions of %v", x.Shape(), index.Shape(), n, s)
	}
	zero := b.flattenLast(b.Full(dims, 0, x.DType()), n)
	sum := b.ScatterReduce(zero, lead, b.flattenLast(index, n), b.flattenLast(x, n), "sum")
	return b.Reshape(sum, dims...)
}

// flattenLast makes the last n dimensions one.
func (b *Builder) flattenLast(x Value, n int) Value {
	_, size := planesOf(x, n)
	return b.Reshape(x, append(x.Shape().Dims()[:x.Rank()-n], size)...)
}
