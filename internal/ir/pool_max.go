package ir

import "fmt"

func init() {
	for n := 1; n <= 3; n++ {
		register(fmt.Sprintf("adaptive_max_pool%dd(Tensor self, int[] output_size) -> (Tensor values, Tensor indices)", n), Spec{
			Doc:      fmt.Sprintf("Largest element of windows that split the last %d dimensions of self [N, C, …] or [C, …] into output_size parts as evenly as can be, and its i64 position counted over those dimensions; NaN above all. Any dtype but bool. As torch.nn.functional.adaptive_max_pool%dd with return_indices.", n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return adaptiveMaxPoolND(b, a, n) }, VJP: vjpMaxima(n),
		})
	}
	for n := 2; n <= 3; n++ {
		register(fmt.Sprintf("fractional_max_pool%dd(Tensor self, int[] kernel_size, int[] output_size, Tensor random_samples) -> (Tensor values, Tensor indices)", n), Spec{
			Doc:      fmt.Sprintf("Largest element of output_size windows of kernel_size over the last %d dimensions of self [N, C, …] or [C, …], and its i64 position counted over those dimensions. The windows lie at pseudo-random distances that follow from random_samples [N, C, %d], numbers from 0 to 1. Any dtype but bool. As torch.nn.functional.fractional_max_pool%dd with return_indices.", n, n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return fractionalMaxPoolND(b, a, n) }, VJP: vjpMaxima(n),
		})
		more := map[int]string{3: ", int[] stride, int[] padding"}[n]
		register(fmt.Sprintf("max_unpool%dd(Tensor self, Tensor indices, int[] output_size%s) -> Tensor", n, more), Spec{
			Doc:      fmt.Sprintf("Zeros whose last %d dimensions are output_size, with the elements of self [N, C, …] or [C, …] at the i64 positions that a max_pool%dd of that size found. As at::max_unpool%dd.", n, n, n),
			Category: Neural, Decompose: func(b *Builder, a Args) []Value { return maxUnpoolND(b, a, n) },
		})
	}
}

// vjpMaxima adds each cotangent to the element that was the largest of its window.
func vjpMaxima(n int) func(b *Builder, a Args, out, grad []Value) []Value {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		gs := make([]Value, len(a.In))
		if !grad[0].IsNil() {
			gs[0] = b.sumByPlace(a, n, a.In[0].Shape(), out[1], grad[0])
		}
		return gs
	}
}

// pooledSizes checks the input of a pooling that is given the size of its result, and returns
// that and the input's.
func pooledSizes(a Args, n int) (in, out []int) {
	requirePoolRank(a, n)
	x := a.In[0].Shape()
	if d := x.DType(); d == Bool || d.IsStorage() {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	in, out = x.Dims()[x.Rank()-n:], spread(a, "output_size", n)
	for i, o := range out {
		if o < 1 || in[i] == 0 {
			a.Fail(ErrShape, "spatial dimension %d of size %d cannot be pooled to %d", i, in[i], o)
		}
	}
	return in, out
}

// planesOf returns the numbers of elements before and within the last n dimensions.
func planesOf(x Value, n int) (count, size int) {
	count, size = 1, 1
	for i, d := range x.Shape().Dims() {
		if i < x.Rank()-n {
			count *= d
		} else {
			size *= d
		}
	}
	return count, size
}

// maximaAt returns the largest element of each window, whose elements' places in the last n
// dimensions of x are at [planes or 1, cells, window], and where it is.
func (b *Builder) maximaAt(x, at Value, n int, out []int) []Value {
	dims := x.Shape().Dims()
	dims = append(dims[:len(dims)-n], out...)
	count, size := planesOf(x, n)
	flat, cells, window := b.Reshape(x, count, size), at.Dim(1), at.Dim(2)
	at = b.Expand(at, count, cells, window)
	seen := b.Reshape(b.Gather(flat, 1, b.Reshape(at, count, cells*window)), count, cells, window)
	k := b.Call1(opArgmax, []any{seen, 2, true})
	return []Value{b.Reshape(b.Gather(seen, 2, k), dims...), b.Reshape(b.Gather(at, 2, k), dims...)}
}

// adaptiveMaxPoolND lets windows that are smaller than the largest repeat their last element.
func adaptiveMaxPoolND(b *Builder, a Args, n int) []Value {
	in, out := pooledSizes(a, n)
	at := b.Full([]int{1}, 0, I64) // the place of each element of a window, [out…, window…]
	cells, window := 1, 1
	for i, o := range out {
		start, end, longest := b.adaptiveWindows(in[i], o)
		along := b.minimum(b.Add(start, b.Iota(longest, I64)), b.Sub(end, b.Const(1, I64)))
		at = b.Add(b.Mul(at, b.Const(in[i], I64)), b.Reshape(along, axesOf(n, i, 1, o, longest)...))
		cells *= o
		window *= longest
	}
	return b.maximaAt(a.In[0], b.Reshape(at, 1, cells, window), n, out)
}

// axesOf are the dimensions [count, 1…, cells, …, 1…, window, …] of what varies along axis i of
// n: which cell, and where in its window.
func axesOf(n, i, count, cells, window int) []int {
	dims := make([]int, 1+2*n)
	for j := range dims {
		dims[j] = 1
	}
	dims[0], dims[1+i], dims[1+n+i] = count, cells, window
	return dims
}

// fractionalMaxPoolND places windows along each axis from one sample for each plane. In two
// dimensions the samples are of the width first.
func fractionalMaxPoolND(b *Builder, a Args, n int) []Value {
	in, out := pooledSizes(a, n)
	x, samples, kernel := a.In[0], a.Tensor("random_samples"), spread(a, "kernel_size", n)
	count, _ := planesOf(x, n)
	if !samples.DType().IsFloat() || samples.Rank() != 3 || samples.Dim(2) != n || samples.Dim(0)*samples.Dim(1) < count {
		a.Fail(ErrShape, "random_samples must be floating of [N, C, %d] for %d planes, got %v", n, count, samples.Shape())
	}
	samples = b.Slice(b.Reshape(samples, samples.Dim(0)*samples.Dim(1), n), 0, 0, count, 1)
	if x.DType() != F64 {
		samples = b.Cast(samples, F32)
	}
	at := b.Full([]int{1}, 0, I64)
	cells, window := 1, 1
	for i, o := range out {
		if o < 1 || kernel[i] < 1 || o+kernel[i]-1 > in[i] {
			a.Fail(ErrArg, "%d windows of %d do not fit into spatial dimension %d of size %d", o, kernel[i], i, in[i])
		}
		k := i
		if n == 2 {
			k = 1 - i
		}
		start := b.fractionalStarts(b.Slice(samples, 1, k, k+1, 1), in[i]-kernel[i], o)
		along := b.Add(b.Unsqueeze(start, 2), b.Iota(kernel[i], I64))
		at = b.Add(b.Mul(at, b.Const(in[i], I64)), b.Reshape(along, axesOf(n, i, count, o, kernel[i])...))
		cells *= o
		window *= kernel[i]
	}
	return b.maximaAt(x, b.Reshape(at, count, cells, window), n, out)
}

// fractionalStarts is where out windows along one axis begin, [planes, out]; last is where the
// last one does.
func (b *Builder) fractionalStarts(sample Value, last, out int) Value {
	d := sample.DType()
	end := b.Full([]int{sample.Dim(0), 1}, last, I64)
	if out == 1 {
		return end
	}
	alpha := b.Div(b.Const(float64(last), d), b.Const(float64(out-1), d))
	whole := func(x Value) Value { return b.Cast(b.trunc(b.Mul(x, alpha)), I64) }
	starts := b.Sub(whole(b.Add(b.Iota(out-1, d), sample)), whole(sample))
	return b.Cat([]Value{starts, end}, 1)
}

func maxUnpoolND(b *Builder, a Args, n int) []Value {
	requirePoolRank(a, n)
	x, index, size := a.Tensor("self"), a.Tensor("indices"), a.Ints("output_size")
	if len(size) != n || index.Shape() != x.Shape().WithDType(index.DType()) {
		a.Fail(ErrShape, "unpooling of %v at the indices %v to %v", x.Shape(), index.Shape(), size)
	}
	dims := x.Shape().Dims()
	lead, cells := dims[:len(dims)-n], 1
	for _, s := range size {
		if s < 1 {
			a.Fail(ErrArg, "output_size must be at least 1, got %v", size)
		}
		cells *= s
	}
	zero := b.Full(append(lead[:len(lead):len(lead)], cells), 0, x.DType())
	out := b.Scatter(zero, len(lead), b.flattenLast(b.Cast(index, I64), n), b.flattenLast(x, n))
	return []Value{b.Reshape(out, append(lead[:len(lead):len(lead)], size...)...)}
}
