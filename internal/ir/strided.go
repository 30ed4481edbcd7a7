package ir

import (
	"cmp"
	"slices"
)

// Views by strides, and ops that write a tensor into a part of another. No tensor here has
// strides: those of as_strided refer to the row-major elements of self.

func init() {
	register("as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor", Spec{
		Category: View,
		Doc: "The elements of self, in row-major order, at storage_offset + Σ index·stride for each index of a tensor of the given size; places may " +
			"repeat and must be elements of self. Any dtype. ATen's as_strided of a contiguous tensor.",
		Decompose: func(b *Builder, a Args) []Value {
			w := newStridedWindow(a)
			if out, ok := w.view(b, a.In[0]); ok {
				return []Value{out}
			}
			chosen := b.IndexSelect(b.flatten(a.In[0]), 0, w.places(b))
			return []Value{b.Reshape(chosen, w.size...)}
		},
	})
	register("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor", Spec{
		Category: View,
		Doc: "self with src, of the given size, in the places that as_strided takes; where those repeat, the later element in row-major order " +
			"wins. ATen's as_strided_scatter of a contiguous tensor.",
		Decompose: func(b *Builder, a Args) []Value {
			w := newStridedWindow(a)
			src := b.written(a, w.size)
			if order, ok := w.stretch(); ok {
				stretch := b.flatten(b.Permute(src, order...))
				return []Value{b.Reshape(b.replaced(b.flatten(a.In[0]), stretch, 0, w.offset, 1), a.In[0].Shape().Dims()...)}
			}
			x := b.Scatter(b.flatten(a.In[0]), 0, w.places(b), b.flatten(src))
			return []Value{b.Reshape(x, a.In[0].Shape().Dims()...)}
		},
	})
	register("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", Spec{
		Category: View,
		Doc: "self with src in the place of what slice gives for the same arguments, whose dimensions src has; src is cast to self's dtype. " +
			"ATen's slice_scatter.",
		Decompose: func(b *Builder, a Args) []Value {
			dim, start, count, step := SliceBounds(a)
			dims := a.In[0].Shape().Dims()
			dims[dim] = count
			return []Value{b.replaced(a.In[0], b.written(a, dims), dim, start, step)}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			dim, start, count, step := SliceBounds(a)
			return b.vjpReplaced(a, grad[0], dim, start, count, step)
		},
	})
	register("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", Spec{
		Category: View,
		Doc:      "self with src in the place of the slice that select gives, whose dimensions src has; src is cast to self's dtype. ATen's select_scatter.",
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			dim, i := selected(a, a.Int("index"))
			src := b.written(a, slices.Delete(x.Shape().Dims(), dim, dim+1))
			return []Value{b.replaced(x, b.Unsqueeze(src, dim), dim, i, 1)}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			dim, i := selected(a, a.Int("index"))
			return b.vjpReplaced(a, grad[0], dim, i, 1, 1)
		},
	})
	register("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", Spec{
		Category: View,
		Doc:      "self with src in the place of the diagonal that diagonal gives, whose dimensions src has; src is cast to self's dtype. ATen's diagonal_scatter.",
		Decompose: func(b *Builder, a Args) []Value {
			d := newDiagonal(a)
			flat := b.Reshape(b.Permute(a.In[0], d.perm...), append(d.batch, d.rows*d.cols)...)
			src := b.written(a, append(d.batch, d.count))
			flat = b.replaced(flat, src, len(d.batch), d.start, d.cols+1)
			x := b.Reshape(flat, append(d.batch, d.rows, d.cols)...)
			return []Value{b.Permute(x, inversePermutation(d.perm)...)}
		},
	})
}

// stridedWindow is a use of as_strided.
type stridedWindow struct {
	size, stride  []int
	offset, numel int
}

// newStridedWindow reads size, stride and storage_offset, and fails unless every place is an element
// of self.
func newStridedWindow(a Args) *stridedWindow {
	w := &stridedWindow{size: a.Ints("size"), stride: a.Ints("stride")}
	w.offset, _ = a.OptInt("storage_offset")
	if len(w.size) != len(w.stride) {
		a.Fail(ErrShape, "mismatch in length of strides %v and shape %v", w.stride, w.size)
	}
	s, err := NewShape(a.In[0].DType(), w.size)
	if err != nil {
		a.Fail(ErrShape, "size %v: %v", w.size, err)
	}
	w.numel = s.Numel()
	n := a.In[0].Shape().Numel()
	last := w.offset
	for d, stride := range w.stride {
		if stride < 0 {
			a.Fail(ErrArg, "strides must not be negative, got %v", w.stride)
		}
		if w.numel > 0 && w.size[d] > 1 && (stride > n || last > n) {
			last = n // a product of both could overflow
		} else if w.numel > 0 {
			last += (w.size[d] - 1) * stride
		}
	}
	if w.offset < 0 || w.numel > 0 && last >= n {
		a.Fail(ErrShape, "size %v with strides %v from element %d is out of bounds for %d elements", w.size, w.stride, w.offset, n)
	}
	return w
}

// view records the window by moving no element twice: it is a stretch of self in another order of
// dimensions. False if it is not.
func (w *stridedWindow) view(b *Builder, x Value) (Value, bool) {
	if w.numel == 0 {
		return b.Reshape(b.Slice(b.flatten(x), 0, 0, 0, 1), w.size...), true
	}
	order, ok := w.stretch()
	if !ok {
		return Value{}, false
	}
	dims := make([]int, len(order))
	for i, d := range order {
		dims[i] = w.size[d]
	}
	x = b.Slice(b.flatten(x), 0, w.offset, w.offset+w.numel, 1)
	return b.Permute(b.Reshape(x, dims...), inversePermutation(order)...), true
}

// stretch returns the order of dimensions in which the window's elements follow each other in self without a
// gap, if there is one.
func (w *stridedWindow) stretch() (order []int, ok bool) {
	order = countTo(len(w.size))
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(w.stride[j], w.stride[i]) })
	n := 1
	for _, d := range slices.Backward(order) {
		if w.size[d] != 1 && w.stride[d] != n {
			return nil, false
		}
		n *= w.size[d]
	}
	return order, true
}

// places records the places of the window's elements, a vector.
func (w *stridedWindow) places(b *Builder) Value {
	at := b.Full(w.size, w.offset, I64)
	for d, n := range w.size {
		dims := make([]int, len(w.size))
		for i := range dims {
			dims[i] = 1
		}
		dims[d] = n
		at = b.Add(at, b.Mul(b.Reshape(b.Iota(n, I64), dims...), b.Const(w.stride[d], I64)))
	}
	return b.Reshape(at, w.numel)
}

// written returns the operand src in self's dtype. It fails unless src has the dimensions dims.
func (b *Builder) written(a Args, dims []int) Value {
	src := a.Tensor("src")
	if !slices.Equal(src.Shape().Dims(), dims) {
		a.Fail(ErrShape, "expected src to have a size equal to the slice of self. src size = %v, slice size = %v", src.Shape().Dims(), dims)
	}
	return b.Cast(src, a.In[0].DType())
}

const fewReplaced = 8

// replaced records x with the slices of src along dim at start, start+step, …
//
// Where one of fewReplaced elements or fewer is replaced, they are scattered into a copy.
func (b *Builder) replaced(x, src Value, dim, start, step int) Value {
	n, count := x.Dim(dim), src.Dim(dim)
	if count == 0 {
		return x
	}
	if step < 0 {
		src, start, step = b.Flip(src, dim), start+(count-1)*step, -step
	}
	if step == 1 || count == 1 {
		var parts []Value
		if start > 0 {
			parts = append(parts, b.Slice(x, dim, 0, start, 1))
		}
		parts = append(parts, src)
		if end := start + count; end < n {
			parts = append(parts, b.Slice(x, dim, end, n, 1))
		}
		if len(parts) == 1 {
			return src
		}
		return b.Cat(parts, dim)
	}
	if count*fewReplaced <= n && scatters(x.DType()) {
		return b.scatterEvery(x, src, dim, start, step)
	}
	// Element i of the result is element i of x, or one of src behind x.
	i, by := b.Iota(n, I64), b.Const(step, I64)
	from := b.Sub(i, b.Const(start, I64))
	taken := b.logicalAnd(b.ge(from, b.Const(0, I64)), b.lt(from, b.Const((count-1)*step+1, I64)))
	taken = b.logicalAnd(taken, b.eq(b.remainder(from, by), b.Const(0, I64)))
	behind := b.Add(b.floorDivide(from, by), b.Const(n, I64))
	return b.IndexSelect(b.Cat([]Value{x, src}, dim), dim, b.Where(taken, behind, i))
}

// scatters reports whether elements of a dtype can be scattered.
func scatters(d DType) bool { return !d.IsF8() && !d.IsComplex() }

// scatterEvery records x with the slices of src along dim at start, start+step, …
func (b *Builder) scatterEvery(x, src Value, dim, start, step int) Value {
	dims := make([]int, src.Rank())
	for i := range dims {
		dims[i] = 1
	}
	count := src.Dim(dim)
	dims[dim] = count
	index := b.Add(b.Mul(b.Iota(count, I64), b.Const(step, I64)), b.Const(start, I64))
	return b.Scatter(x, dim, b.ExpandAs(b.Reshape(index, dims...), src), src)
}

// vjpReplaced returns the gradients of self, g with zeros in the place of the slices, and of src, those
// slices of g. The rule of what replaced records would add up a padded tensor for each part.
func (b *Builder) vjpReplaced(a Args, g Value, dim, start, count, step int) []Value {
	src := a.Tensor("src")
	if count == 0 {
		return []Value{g, b.fullLike(src, 0)}
	}
	backwards := step < 0
	if backwards {
		start, step = start+(count-1)*step, -step
	}
	of := b.Slice(g, dim, start, start+(count-1)*step+1, step)
	self := b.replaced(g, b.fullLike(of, 0), dim, start, step)
	if backwards {
		of = b.Flip(of, dim)
	}
	return []Value{self, b.Cast(b.Reshape(of, src.Shape().Dims()...), src.DType())}
}
