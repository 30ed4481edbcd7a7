package ir

func init() {
	register("_adaptive_mean(Tensor self, int dim, int size) -> Tensor", Spec{
		Doc:      "Mean over windows that split dimension dim into size parts as evenly as can be.",
		Category: Neural, Unlisted: true, Decompose: decomposeAdaptiveMean,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			dim := a.Dim("dim", a.In[0].Rank())
			return []Value{b.callNamed("_adaptive_mean_backward", []any{grad[0], dim, a.In[0].Dim(dim)})}
		},
	})
	register("_adaptive_mean_backward(Tensor grad_output, int dim, int size) -> Tensor", Spec{
		Doc:      "The gradient of _adaptive_mean with respect to self, of which dimension dim has the given size.",
		Category: Neural, Unlisted: true, Decompose: decomposeAdaptiveMeanBackward,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			dim := a.Dim("dim", a.In[0].Rank())
			return []Value{b.callNamed("_adaptive_mean", []any{grad[0], dim, a.In[0].Dim(dim)})}
		},
	})
}

func adaptiveAvgPoolND(b *Builder, a Args, n int) []Value {
	requirePoolRank(a, n)
	if d := a.In[0].DType(); !d.IsFloat() {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	out := spread(a, "output_size", n)
	x := b.widen(a.In[0])
	lead := x.Rank() - n
	for i, o := range out {
		dim := lead + i
		in := x.Dim(dim)
		switch {
		case o < 0 || in == 0:
			a.Fail(ErrShape, "spatial dimension %d of size %d cannot be pooled to %d", i, in, o)
		case o == in:
		case o == 0:
			x = b.Slice(x, dim, 0, 0, 1)
		case in%o == 0:
			x = b.Div(b.sumTile(x, dim, o), b.Const(float64(in/o), x.DType()))
		case o <= fewWindows:
			x = b.windowMeans(x, dim, o)
		default:
			x = b.callNamed("_adaptive_mean", []any{x, dim, o})
		}
	}
	return []Value{b.Cast(x, a.In[0].DType())}
}

// vjpAdaptiveAvg is the gradient of the last n dimensions, the last first, so that what is repeated along the
// others is rows of the result.
func vjpAdaptiveAvg(n int) func(b *Builder, a Args, out, grad []Value) []Value {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		to, g := a.In[0].Shape(), b.widen(grad[0])
		if out[0].Shape().Numel() == 0 {
			return []Value{b.fullLike(a.In[0], 0)}
		}
		for dim := to.Rank() - 1; dim >= to.Rank()-n; dim-- {
			switch in, o := to.Dim(dim), g.Dim(dim); {
			case in == o:
			case in%o == 0:
				g = b.repeatParts(b.Div(g, b.Const(float64(in/o), g.DType())), dim, in/o)
			default:
				g = b.callNamed("_adaptive_mean_backward", []any{g, dim, in})
			}
		}
		return []Value{b.Cast(g, a.In[0].DType())}
	}
}

// repeatParts returns each element of a dimension n times.
func (b *Builder) repeatParts(x Value, dim, n int) Value {
	dims := x.Shape().Dims()
	wide := append(append(append([]int{}, dims[:dim+1]...), n), dims[dim+1:]...)
	dims[dim] *= n
	return b.Reshape(b.Expand(b.Unsqueeze(x, dim+1), wide...), dims...)
}

// fewWindows is how many windows are averaged one by one at most.
const fewWindows = 8

// windowMeans averages o windows of one dimension, as _adaptive_mean does, from where each lies.
func (b *Builder) windowMeans(x Value, dim, o int) Value {
	n := x.Dim(dim)
	means := make([]Value, o)
	for i := range means {
		from, to := i*n/o, ((i+1)*n+o-1)/o
		means[i] = b.Mean(b.Slice(x, dim, from, to, 1), []int{dim}, true)
	}
	return b.Cat(means, dim)
}

// adaptiveArgs checks a use of _adaptive_mean or its gradient, and returns its operand, dimension and sizes.
func adaptiveArgs(b *Builder, a Args) (x Value, dim, n, size int) {
	x = a.In[0]
	if d := x.DType(); !d.IsFloat() {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	if x.Rank() == 0 {
		a.Fail(ErrShape, "a tensor without dimensions cannot be split")
	}
	dim, size = a.Dim("dim", x.Rank()), a.Int("size")
	if n = x.Dim(dim); n < 1 || size < 1 {
		a.Fail(ErrShape, "%d elements cannot be split into %d parts", n, size)
	}
	return b.widen(x), dim, n, size
}

func decomposeAdaptiveMean(b *Builder, a Args) []Value {
	x, dim, n, o := adaptiveArgs(b, a)
	counts := b.adaptiveCounts(n, o, x, dim)
	return []Value{b.Cast(b.Div(b.adaptiveSum(x, dim, o), counts), a.In[0].DType())}
}

// decomposeAdaptiveMeanBackward: windows that are split evenly into n elements are those of which each
// element is a part.
func decomposeAdaptiveMeanBackward(b *Builder, a Args) []Value {
	g, dim, o, n := adaptiveArgs(b, a)
	return []Value{b.Cast(b.adaptiveSum(b.Div(g, b.adaptiveCounts(n, o, g, dim)), dim, n), a.In[0].DType())}
}

// adaptiveCounts returns how many elements each of o windows of n has, to be held against dimension dim of x.
func (b *Builder) adaptiveCounts(n, o int, x Value, dim int) Value {
	start, end, _ := b.adaptiveWindows(n, o)
	tail := make([]int, x.Rank()-dim)
	for j := range tail {
		tail[j] = 1
	}
	tail[0] = o
	return b.Reshape(b.Cast(b.Sub(end, start), x.DType()), tail...)
}

// adaptiveSum sums o windows of one dimension of size n; window i is [⌊i·n/o⌋, ⌈(i+1)·n/o⌉). It
// reads windows of the largest length and masks the elements that a shorter one lacks.
func (b *Builder) adaptiveSum(x Value, dim, o int) Value {
	n := x.Dim(dim)
	start, end, longest := b.adaptiveWindows(n, o)
	at := b.Add(start, b.Iota(longest, I64))
	dims := x.Shape().Dims()
	wide := append(append([]int{}, dims[:dim]...), o, longest)
	x = b.IndexSelect(x, dim, b.Reshape(b.minimum(at, b.Const(n-1, I64)), -1))
	x = b.Reshape(x, append(wide, dims[dim+1:]...)...)
	// tail, aligned at the last dimensions, is [o, longest, 1, …].
	tail := make([]int, len(dims)-dim+1)
	for j := range tail {
		tail[j] = 1
	}
	tail[0], tail[1] = o, longest
	x = b.Where(b.Reshape(b.lt(at, end), tail...), x, b.Const(0.0, x.DType()))
	return b.Sum(x, []int{dim + 1}, false)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// adaptiveWindows splits n elements into o windows, and returns where each begins and ends,
// [o, 1], and how long the longest is.
func (b *Builder) adaptiveWindows(n, o int) (start, end Value, longest int) {
	// In units of 1/parts windows begin at all places, so one begins just before an element's end.
	g := gcd(n, o)
	size, parts := n/g, o/g
	if longest = size; parts > 1 {
		longest = 1
		if size > 1 {
			longest = 2 + (size-2)/parts
		}
	}
	c := func(n int) Value { return b.Const(n, I64) }
	i := b.Reshape(b.Iota(o, I64), o, 1)
	start = b.floorDivide(b.Mul(i, c(n)), c(o))
	end = b.floorDivide(b.Add(b.Mul(b.Add(i, c(1)), c(n)), c(o-1)), c(o))
	return start, end, longest
}
