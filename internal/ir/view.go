package ir

// Ops that only move elements. They work on storage-only dtypes, too, but for
// constant_pad_nd, which makes elements.

func init() {
	register("reshape(Tensor self, int[] shape) -> Tensor", Spec{
		Category: View,
		Doc: "The same elements in row-major order under other dimensions; one of shape may be -1 and is deduced. " +
			"Any dtype. ATen's reshape.",
		Infer: inferReshape,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Reshape(grad[0], a.In[0].Shape().Dims()...)}
		},
	})
	register("permute(Tensor self, int[] dims) -> Tensor", Spec{
		Category: View,
		Doc:      "Dimensions in another order: dimension i of the result is dimension dims[i] of self. Any dtype. ATen's permute.",
		Infer:    inferPermute,
		VJP:      vjpPermute,
	})
	register("expand(Tensor self, int[] size) -> Tensor", Spec{
		Category: View,
		Doc: "Broadcast to size: new dimensions come first, those of size 1 stretch, -1 keeps an existing one. Any dtype. " +
			"ATen's expand.",
		Infer: inferExpand,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.sumTo(grad[0], a.In[0].Shape())}
		},
	})
	register("slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", Spec{
		Category: View,
		Doc: "Elements start, start+step, … before end along dim; start and end count from the end if negative and are " +
			"clamped. A negative step, which ATen lacks, works as in Python. Any dtype. ATen's slice.Tensor.",
		Infer: func(a Args) []Shape {
			dims := a.In[0].Shape().Dims()
			dim, _, count, _ := SliceBounds(a)
			dims[dim] = count
			return inferDims(a, a.In[0].DType(), dims)
		},
		VJP: vjpSlice,
	})
	register("flip(Tensor self, int[] dims) -> Tensor", Spec{
		Category: View,
		Doc:      "Elements in reverse order along each of dims; an empty list reverses nothing. Any dtype. ATen's flip.",
		Infer: func(a Args) []Shape {
			FlipDims(a)
			return []Shape{a.In[0].Shape()}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Flip(grad[0], a.Ints("dims")...)}
		},
	})
}

// inferDims returns the one output shape with the given dimensions, or fails.
func inferDims(a Args, d DType, dims []int) []Shape {
	s, err := NewShape(d, dims)
	if err != nil {
		a.Fail(ErrShape, "the result would have dimensions %v: %v", dims, err)
	}
	return []Shape{s}
}

func inferReshape(a Args) []Shape {
	s := a.In[0].Shape()
	dims := a.Ints("shape")
	numel, hole, n := s.Numel(), -1, 1
	for i, d := range dims {
		switch {
		case d >= 0:
			n *= d
		case d != -1:
			a.Fail(ErrShape, "shape %v has the negative size %d", dims, d)
		case hole >= 0:
			a.Fail(ErrShape, "shape %v has more than one -1", dims)
		default:
			hole = i
		}
	}
	switch {
	case hole < 0 && n == numel:
	case hole >= 0 && n > 0 && numel%n == 0:
		dims[hole] = numel / n
	case hole >= 0 && n == 0 && numel == 0:
		a.Fail(ErrShape, "the -1 of shape %v can be any size for a tensor without elements", dims)
	default:
		a.Fail(ErrShape, "shape %v does not fit %d elements", dims, numel)
	}
	return inferDims(a, s.DType(), dims)
}

func inferPermute(a Args) []Shape {
	s := a.In[0].Shape()
	dims := a.Ints("dims")
	if len(dims) != s.Rank() {
		a.Fail(ErrShape, "dims %v has %d entries for rank %d", dims, len(dims), s.Rank())
	}
	out := make([]int, len(dims))
	for i, d := range PermuteDims(a) {
		out[i] = s.Dim(d)
	}
	return []Shape{MakeShape(s.DType(), out...)}
}

// PermuteDims returns the dims of a use of permute, none negative. A repeated
// one or one out of range fails with ErrIndex.
func PermuteDims(a Args) []int {
	dims := a.Ints("dims")
	var seen [MaxRank]bool
	for i, d := range dims {
		d = a.NormDim(d, len(dims))
		if seen[d] {
			a.Fail(ErrIndex, "dimension %d appears twice in dims", d)
		}
		seen[d], dims[i] = true, d
	}
	return dims
}

// FlipDims returns which dimensions a use of flip reverses.
func FlipDims(a Args) (mask [MaxRank]bool) {
	if len(a.Ints("dims")) == 0 {
		return mask
	}
	mask = a.dims("dims", a.In[0].Rank())
	if a.In[0].Rank() == 0 {
		mask = [MaxRank]bool{} // dimension 0 or -1, which there is for its name only
	}
	return mask
}

func inferExpand(a Args) []Shape {
	s := a.In[0].Shape()
	size := a.Ints("size")
	off := len(size) - s.Rank()
	if off < 0 {
		a.Fail(ErrShape, "size %v has fewer dimensions than self", size)
	}
	for i, n := range size {
		switch {
		case n < -1:
			a.Fail(ErrShape, "size %v has the negative size %d", size, n)
		case i < off && n == -1:
			a.Fail(ErrShape, "-1 keeps nothing in the new dimension %d of size %v", i, size)
		case i < off:
		case n == -1:
			size[i] = s.Dim(i - off)
		case s.Dim(i-off) != 1 && s.Dim(i-off) != n:
			a.Fail(ErrShape, "size %d of dimension %d does not stretch to %d in %v", s.Dim(i-off), i-off, n, size)
		}
	}
	return inferDims(a, s.DType(), size)
}

// SliceBounds resolves a use of slice against its operand: element i of the
// result along dim, for 0 <= i < count, is element start+i*step. step is not 0
// and may be negative. It fails with ErrIndex for a bad dim and ErrArg for
// step 0.
func SliceBounds(a Args) (dim, start, count, step int) {
	s := a.In[0].Shape()
	if s.Rank() == 0 {
		a.Fail(ErrShape, "a tensor of rank 0 cannot be sliced")
	}
	dim, step = a.Dim("dim", s.Rank()), a.Int("step")
	n := s.Dim(dim)
	if step == 0 {
		a.Fail(ErrArg, "step is 0")
	}
	lo, hi := 0, n // the range that start and end are clamped to
	if step < 0 {
		lo, hi = -1, n-1
	}
	clamp := func(name string, absent int) int {
		v, ok := a.OptInt(name)
		if !ok {
			return absent
		}
		if v < 0 {
			v += n
		}
		return min(max(v, lo), hi)
	}
	if step > 0 {
		start = clamp("start", lo)
		if end := clamp("end", hi); end > start {
			count = (end-start-1)/step + 1
		}
		return dim, start, count, step
	}
	start = clamp("start", hi)
	if end := clamp("end", lo); end < start {
		count = (start-end-1)/-step + 1
	}
	return dim, start, count, step
}

func inversePermutation(perm []int) []int {
	inv := make([]int, len(perm))
	for i, p := range perm {
		inv[p] = i
	}
	return inv
}

func vjpPermute(b *Builder, a Args, out, grad []Value) []Value {
	return []Value{b.Permute(grad[0], inversePermutation(PermuteDims(a))...)}
}

// vjpSlice puts zeros between the elements for a step (in a view of rank 3, so
// that any rank will do) and then around them.
func vjpSlice(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0].Shape()
	dim, start, count, step := SliceBounds(a)
	g := grad[0]
	switch {
	case count == 0:
		return []Value{b.fullLike(a.In[0], 0)}
	case step < 0:
		g, start, step = b.Flip(g, dim), start+(count-1)*step, -step
	}
	n := self.Dim(dim)
	if count == 1 || step == 1 {
		return []Value{b.padDim(g, dim, start, n-start-count, 0)}
	}
	if count*fewReplaced <= n && scatters(self.DType()) {
		return []Value{b.scatterEvery(b.fullLike(a.In[0], 0), g, dim, start, step)}
	}
	outer, inner := 1, 1
	for i := range self.Rank() {
		if i < dim {
			outer *= self.Dim(i)
		} else if i > dim {
			inner *= self.Dim(i)
		}
	}
	g = b.padDim(b.Reshape(g, outer*count, 1, inner), 1, 0, step-1, 0)
	g = b.padDim(b.Reshape(g, outer, count*step, inner), 1, start, n-start-count*step, 0)
	return []Value{b.Reshape(g, self.Dims()...)}
}
