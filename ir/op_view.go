package ir

// Ops that only move elements. They work on storage-only dtypes, too, but for
// constant_pad_nd, which makes elements.

func init() {
	OpReshape = register("reshape(Tensor self, int[] shape) -> Tensor", Spec{
		Category: View,
		Doc: "The same elements in row-major order under other dimensions; one of shape may be -1 and is deduced. " +
			"Any dtype. ATen's reshape.",
		Infer: inferReshape,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Reshape(grad[0], a.In[0].Shape().Dims()...)}
		},
	})
	OpPermute = register("permute(Tensor self, int[] dims) -> Tensor", Spec{
		Category: View,
		Doc:      "Dimensions in another order: dimension i of the result is dimension dims[i] of self. Any dtype. ATen's permute.",
		Infer:    inferPermute,
		VJP:      vjpPermute,
	})
	OpExpand = register("expand(Tensor self, int[] size) -> Tensor", Spec{
		Category: View,
		Doc: "Broadcast to size: new dimensions come first, those of size 1 stretch, -1 keeps an existing one. Any dtype. " +
			"ATen's expand.",
		Infer: inferExpand,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.SumTo(grad[0], a.In[0].Shape())}
		},
	})
	OpSlice = register("slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", Spec{
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
	OpFlip = register("flip(Tensor self, int[] dims) -> Tensor", Spec{
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
	OpCat = register("cat(Tensor[] tensors, int dim=0) -> Tensor", Spec{
		Category: View,
		Promote:  PromoteDefault,
		Doc: "Tensors one after the other along dim; their other dimensions are equal. They are promoted to their common " +
			"dtype. ATen's cat, without the legacy skipping of empty 1-d tensors.",
		Infer: inferCat,
		VJP:   vjpCat,
	})
	OpConstantPadNd = register("constant_pad_nd(Tensor self, int[] pad, Scalar value) -> Tensor", Spec{
		Category: View,
		Promote:  PromoteFirst,
		Doc: "self with value around it: pad holds (before, after) pairs from the last dimension backwards, a negative entry " +
			"crops. value, of rank 0, is cast to self's dtype. ATen's constant_pad_nd.",
		Infer: inferConstantPad,
		VJP:   vjpConstantPad,
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
	return a.Dims("dims", a.In[0].Rank())
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

func inferCat(a Args) []Shape {
	if len(a.In) == 0 {
		a.Fail(ErrArg, "no tensors are given")
	}
	s := a.In[0].Shape()
	for i, v := range a.In {
		if v.Rank() == 0 {
			a.Fail(ErrShape, "tensor %d has rank 0 and cannot be concatenated", i)
		}
	}
	dim := a.Dim("dim", s.Rank())
	dims := s.Dims()
	for i, v := range a.In[1:] {
		if v.Rank() != s.Rank() {
			a.Fail(ErrShape, "tensor %d has rank %d, tensor 0 has rank %d", i+1, v.Rank(), s.Rank())
		}
		for d := range dims {
			if d != dim && v.Dim(d) != dims[d] {
				a.Fail(ErrShape, "tensor %d has size %d in dimension %d, tensor 0 has %d", i+1, v.Dim(d), d, dims[d])
			}
		}
		dims[dim] += v.Dim(dim)
	}
	return inferDims(a, s.DType(), dims)
}

func inferConstantPad(a Args) []Shape {
	s := a.In[0].Shape()
	requireNumbers(a, s.DType())
	if v := a.Tensor("value"); v.Rank() != 0 {
		a.Fail(ErrShape, "value has rank %d, want 0", v.Rank())
	}
	pad := a.Ints("pad")
	if len(pad)%2 != 0 || len(pad)/2 > s.Rank() {
		a.Fail(ErrShape, "pad %v is not a list of pairs for at most %d dimensions", pad, s.Rank())
	}
	dims := s.Dims()
	for i := 0; i < len(pad); i += 2 {
		d := s.Rank() - 1 - i/2
		if dims[d] += pad[i] + pad[i+1]; dims[d] < 0 {
			a.Fail(ErrShape, "size %d of dimension %d with padding %d and %d is negative", s.Dim(d), d, pad[i], pad[i+1])
		}
	}
	return inferDims(a, s.DType(), dims)
}
