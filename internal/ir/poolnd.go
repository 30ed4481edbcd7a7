package ir

import "fmt"

func init() {
	for n := 1; n <= 3; n++ {
		params := "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=False) -> "
		register(fmt.Sprintf("max_pool%dd%sTensor", n, params), Spec{
			Doc:      fmt.Sprintf("Largest element of each window over the last %d dimensions of self [N, C, …] or [C, …]; stride is kernel_size unless given. As torch.nn.functional.max_pool%dd.", n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return maxPoolND(b, a, n)[:1] },
		})
		register(fmt.Sprintf("max_pool%dd_with_indices%s(Tensor values, Tensor indices)", n, params), Spec{
			Doc:      fmt.Sprintf("max_pool%dd, and the i64 position of each largest element counted over the last %d dimensions of self. As torch.nn.functional.max_pool%dd with return_indices.", n, n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return maxPoolND(b, a, n) },
		})
		override := ", int? divisor_override=None"
		if n == 1 {
			override = ""
		}
		register(fmt.Sprintf("avg_pool%dd(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool count_include_pad=True%s) -> Tensor", n, override), Spec{
			Doc:      fmt.Sprintf("Mean of each window over the last %d dimensions of self [N, C, …] or [C, …], of a floating dtype or i64; stride is kernel_size unless given. count_include_pad counts the zeros of the padding, divisor_override replaces the count. As torch.nn.functional.avg_pool%dd.", n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return avgPoolND(b, a, n) },
		})
		register(fmt.Sprintf("adaptive_avg_pool%dd(Tensor self, int[] output_size) -> Tensor", n), Spec{
			Doc:      fmt.Sprintf("Mean over windows that split the last %d dimensions of self [N, C, …] or [C, …], of a floating dtype, into output_size parts as evenly as can be. As torch.nn.functional.adaptive_avg_pool%dd.", n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return adaptiveAvgPoolND(b, a, n) }, VJP: vjpAdaptiveAvg(n),
		})
	}
}

// requirePoolRank fails unless self has n spatial dimensions behind one or two.
func requirePoolRank(a Args, n int) {
	if r := a.In[0].Rank(); r != n+1 && r != n+2 {
		a.Fail(ErrShape, "input must have %d or %d dimensions, got %d", n+1, n+2, r)
	}
}

// poolStride is the stride attribute, or the kernel's size if it is empty.
func poolStride(a Args, n int, kernel []int) []int {
	if len(a.Ints("stride")) == 0 {
		return kernel
	}
	return spread(a, "stride", n)
}

func maxPoolND(b *Builder, a Args, n int) []Value {
	requirePoolRank(a, n)
	kernel := spread(a, "kernel_size", n)
	return b.Call(opMaxPoolWithIndices, []any{a.In[0], kernel, poolStride(a, n, kernel), spread(a, "padding", n), spread(a, "dilation", n), a.Bool("ceil_mode")})
}

// avgPoolND sums windows and divides by their counts, which are constants.
func avgPoolND(b *Builder, a Args, n int) []Value {
	requirePoolRank(a, n)
	d := a.In[0].DType()
	if !d.IsFloat() && d != I64 {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	p := &Pool{Spatial: n}
	kernel := spread(a, "kernel_size", n)
	copy(p.Kernel[:n], kernel)
	copy(p.Stride[:n], poolStride(a, n, kernel))
	copy(p.Padding[:n], spread(a, "padding", n))
	x := b.widen(a.In[0])
	if d == I64 {
		x = b.Cast(x, F64)
	}
	lead := x.Rank() - n
	// Whether windows tile the input, or its first elements. In three dimensions rows are often short, of which
	// three sums after each other take longer than windows.
	whole := n < 3
	for i := range n {
		if p.Kernel[i] < 1 || p.Stride[i] < 1 || p.Padding[i] < 0 {
			a.Fail(ErrArg, "kernel_size and stride must be at least 1 and padding at least 0")
		}
		p.InDims[i], p.Dilation[i] = x.Dim(lead+i), 1
		p.inferDim(a, i, a.Bool("ceil_mode"))
		whole = whole && p.Padding[i] == 0 && p.Stride[i] == p.Kernel[i] && p.OutDims[i]*p.Kernel[i] <= p.InDims[i]
	}
	var y Value
	if whole {
		for i := range n {
			x = b.Slice(x, lead+i, 0, p.OutDims[i]*p.Kernel[i], 1)
		}
		y = b.sumTiles(x, p.OutDims[:n])
	} else {
		y = b.sumWindows(x, p)
	}
	// For i64 the cast truncates, as ATen's integer division does.
	return []Value{b.Cast(divideCounts(b, a, y, p), d)}
}

// sumTiles splits each of the last dimensions into the given number of parts of
// one size and sums each part.
func (b *Builder) sumTiles(x Value, parts []int) Value {
	lead := x.Rank() - len(parts)
	for i, p := range parts {
		x = b.sumTile(x, lead+i, p)
	}
	return x
}

// sumTile is sumTiles of one dimension. Its intermediate value has one dimension more than x.
func (b *Builder) sumTile(x Value, dim, parts int) Value {
	dims := x.Shape().Dims()
	split := append(append([]int{}, dims[:dim]...), parts, dims[dim]/parts)
	return b.Sum(b.Reshape(x, append(split, dims[dim+1:]...)...), []int{dim + 1}, false)
}

// sumWindows is a convolution of single channels with a kernel of ones. Windows
// that ceil mode lets run over the end read zeros put there.
func (b *Builder) sumWindows(x Value, p *Pool) Value {
	n := p.Spatial
	dims := x.Shape().Dims()
	lead := len(dims) - n
	one := [3]int{1, 1, 1}
	var zero [3]int
	x = b.Reshape(x, append([]int{MakeShape(Bool, dims[:lead]...).Numel(), 1}, dims[lead:]...)...)
	pad := make([]int, 2*n)
	over := false
	for i := range n {
		need := (p.OutDims[i]-1)*p.Stride[i] + p.Kernel[i] - p.InDims[i] - 2*p.Padding[i]
		if need > 0 {
			pad[2*(n-1-i)+1] = need
			over = true
		}
	}
	if over {
		x = b.PadConst(x, pad, b.Const(0.0, x.DType()))
	}
	w := b.Full(append([]int{1, 1}, p.Kernel[:n]...), 1.0, x.DType())
	y := b.Call1(opConvolution, []any{x, w, nil, p.Stride[:n], p.Padding[:n], one[:n], false, zero[:n], 1})
	return b.Reshape(y, append(dims[:lead:lead], p.OutDims[:n]...)...)
}

// divideCounts divides the sum of each window by the number of its elements.
func divideCounts(b *Builder, a Args, y Value, p *Pool) Value {
	if a.Spec.Schema.Param("divisor_override") >= 0 {
		if div, ok := a.OptInt("divisor_override"); ok {
			if div == 0 {
				a.Fail(ErrArg, "divisor_override must not be 0")
			}
			return b.Div(y, b.Const(float64(div), y.DType()))
		}
	}
	include := a.Bool("count_include_pad")
	even := 1
	for i := range p.Spatial {
		if p.evenCounts(i, include) {
			even *= p.Kernel[i]
			continue
		}
		dims := make([]int, p.Spatial-i)
		for j := range dims {
			dims[j] = 1
		}
		dims[0] = p.OutDims[i]
		y = b.Div(y, b.Reshape(b.Cast(p.counts(b, i, include), y.DType()), dims...))
	}
	return b.Div(y, b.Const(float64(even), y.DType()))
}

// evenCounts reports whether all windows along dimension i count the whole
// kernel.
func (p *Pool) evenCounts(i int, include bool) bool {
	before := p.Padding[i]
	end := (p.OutDims[i]-1)*p.Stride[i] - before + p.Kernel[i]
	if include {
		return end <= p.InDims[i]+before
	}
	return before == 0 && end <= p.InDims[i]
}

// counts returns, as i64, how many positions each window along dimension i
// counts: those inside the input, and inside its padding if that is included.
func (p *Pool) counts(b *Builder, i int, include bool) Value {
	c := func(n int) Value { return b.Const(n, I64) }
	start := b.Sub(b.Mul(b.Iota(p.OutDims[i], I64), c(p.Stride[i])), c(p.Padding[i]))
	end := b.Add(start, c(p.Kernel[i]))
	if include {
		return b.Sub(b.minimum(end, c(p.InDims[i]+p.Padding[i])), start)
	}
	return b.Sub(b.minimum(end, c(p.InDims[i])), b.maximum(start, c(0)))
}
