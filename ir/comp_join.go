package ir

import "math"

// Composites that take tensors apart, join them or put something around them.

func init() {
	register("select(Tensor self, int dim, int index) -> Tensor", Spec{
		Category:  View,
		Doc:       "The slice at index (negative: from the end) along dim, which disappears. ATen's select.int.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{selectAt(b, a, a.Int("index"))} },
	})
	register("narrow(Tensor self, int dim, int start, int length) -> Tensor", Spec{
		Category:  View,
		Doc:       "length elements from start (negative: from the end) along dim; they must exist. ATen's narrow.",
		Decompose: decomposeNarrow,
	})
	register("stack(Tensor[] tensors, int dim=0) -> Tensor", Spec{
		Category:  View,
		Promote:   PromoteDefault,
		Doc:       "Tensors of equal shape along a new dimension dim, promoted to their common dtype. ATen's stack.",
		Decompose: decomposeStack,
	})
	register("unbind(Tensor self, int dim=0) -> Tensor[]", Spec{
		Category: View,
		Doc:      "All slices along dim, which disappears. ATen's unbind.",
		Decompose: func(b *Builder, a Args) []Value {
			requireDimension(a)
			out := make([]Value, a.In[0].Dim(a.Dim("dim", a.In[0].Rank())))
			for i := range out {
				out[i] = selectAt(b, a, i)
			}
			return out
		},
	})
	register("split(Tensor self, int[] split_size, int dim=0) -> Tensor[]", Spec{
		Category: View,
		Doc: "Consecutive pieces along dim: one number is the size of all, the last being what is left (ATen's split.Tensor); " +
			"several are their sizes (split.sizes).",
		Decompose: decomposeSplit,
	})
	register("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", Spec{
		Category: View,
		Doc:      "Consecutive pieces of the given sizes along dim, which add up to its size. ATen's split_with_sizes.",
		Decompose: func(b *Builder, a Args) []Value {
			return splitSizes(b, a, a.Ints("split_sizes"))
		},
	})
	register("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", Spec{
		Category:  View,
		Doc:       "At most chunks consecutive pieces along dim of size ceil(n/chunks), the last being what is left. ATen's chunk.",
		Decompose: decomposeChunk,
	})
	register("roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor", Spec{
		Category: View,
		Doc: "Elements moved by shifts along dims, those that leave at one end entering at the other; without dims the " +
			"flattened tensor is moved. ATen's roll.",
		Decompose: decomposeRoll,
	})
	register("pad(Tensor self, int[] pad, str mode='constant', Scalar? value=None) -> Tensor", Spec{
		Category: View,
		Doc: "self with padding: (before, after) pairs from the last dimension backwards, negative ones crop. mode is constant " +
			"(with value, 0 unless given), reflect, replicate or circular; the latter three pad the last 1, 2 or 3 " +
			"dimensions of a tensor with one or two more. ATen's pad.",
		Decompose: decomposePad,
	})
}

func requireDimension(a Args) {
	if a.In[0].Rank() == 0 {
		a.Fail(ErrIndex, "a tensor of rank 0 has no dimension to choose from")
	}
}

func selectAt(b *Builder, a Args, i int) Value {
	requireDimension(a)
	x := a.In[0]
	dim := a.Dim("dim", x.Rank())
	n := x.Dim(dim)
	if i < -n || i >= n {
		a.Fail(ErrIndex, "index %d is out of range for dimension %d of size %d", i, dim, n)
	}
	if i < 0 {
		i += n
	}
	dims := x.Shape().Dims()
	dims = append(dims[:dim], dims[dim+1:]...)
	return b.Reshape(b.Slice(x, dim, i, i+1, 1), dims...)
}

func decomposeNarrow(b *Builder, a Args) []Value {
	requireDimension(a)
	x := a.In[0]
	dim, start, length := a.Dim("dim", x.Rank()), a.Int("start"), a.Int("length")
	n := x.Dim(dim)
	if start < 0 {
		start += n
	}
	if start < 0 || length < 0 || length > n-start {
		a.Fail(ErrIndex, "%d elements from %d do not lie in dimension %d of size %d", length, a.Int("start"), dim, n)
	}
	return []Value{b.Slice(x, dim, start, start+length, 1)}
}

func decomposeStack(b *Builder, a Args) []Value {
	if len(a.In) == 0 {
		a.Fail(ErrArg, "no tensors are given")
	}
	s := a.In[0].Shape()
	dim := a.Dim("dim", s.Rank()+1)
	xs := make([]Value, len(a.In))
	for i, x := range a.In {
		if !x.Shape().SameDims(s) {
			a.Fail(ErrShape, "tensor %d is %v, tensor 0 is %v", i, x.Shape(), s)
		}
		xs[i] = b.Unsqueeze(x, dim)
	}
	return []Value{b.Cat(xs, dim)}
}

// pieces cuts consecutive pieces of the given sizes along dim.
func pieces(b *Builder, x Value, dim int, sizes []int) []Value {
	out := make([]Value, len(sizes))
	at := 0
	for i, n := range sizes {
		out[i] = b.Slice(x, dim, at, at+n, 1)
		at += n
	}
	return out
}

// evenSizes divides n into sizes of size and a rest.
func evenSizes(n, size int) []int {
	if n == 0 {
		return []int{0}
	}
	var sizes []int
	for ; n > 0; n -= size {
		sizes = append(sizes, min(n, size))
	}
	return sizes
}

func splitSizes(b *Builder, a Args, sizes []int) []Value {
	requireDimension(a)
	x := a.In[0]
	dim := a.Dim("dim", x.Rank())
	sum := 0
	for _, n := range sizes {
		if n < 0 {
			a.Fail(ErrArg, "sizes %v have a negative entry", sizes)
		}
		sum += n
	}
	if sum != x.Dim(dim) {
		a.Fail(ErrShape, "sizes %v add up to %d, dimension %d has size %d", sizes, sum, dim, x.Dim(dim))
	}
	return pieces(b, x, dim, sizes)
}

func decomposeSplit(b *Builder, a Args) []Value {
	sizes := a.Ints("split_size")
	if len(sizes) != 1 {
		return splitSizes(b, a, sizes)
	}
	requireDimension(a)
	dim := a.Dim("dim", a.In[0].Rank())
	n := a.In[0].Dim(dim)
	if sizes[0] < 0 || (sizes[0] == 0 && n != 0) {
		a.Fail(ErrArg, "split_size is %d for a dimension of size %d", sizes[0], n)
	}
	return pieces(b, a.In[0], dim, evenSizes(n, sizes[0]))
}

func decomposeChunk(b *Builder, a Args) []Value {
	requireDimension(a)
	dim, chunks := a.Dim("dim", a.In[0].Rank()), a.Int("chunks")
	if chunks <= 0 {
		a.Fail(ErrArg, "chunks is %d, must be positive", chunks)
	}
	n := a.In[0].Dim(dim)
	if n == 0 {
		return pieces(b, a.In[0], dim, make([]int, chunks))
	}
	return pieces(b, a.In[0], dim, evenSizes(n, (n+chunks-1)/chunks))
}

func decomposeRoll(b *Builder, a Args) []Value {
	x, shifts, dims := a.In[0], a.Ints("shifts"), a.Ints("dims")
	flat := len(dims) == 0 && len(shifts) == 1
	if !flat && (len(shifts) == 0 || len(shifts) != len(dims)) {
		a.Fail(ErrArg, "shifts %v and dims %v must have the same length, which is not 0", shifts, dims)
	}
	s := x.Shape()
	if flat {
		x, dims = b.Reshape(x, s.Numel()), []int{0}
	}
	for i, d := range dims {
		if x.Rank() == 0 {
			a.Fail(ErrIndex, "dimension %d is out of range for rank 0", d)
		}
		d = a.NormDim(d, x.Rank())
		n := x.Dim(d)
		if n == 0 || shifts[i]%n == 0 {
			continue
		}
		k := n - (shifts[i]%n+n)%n
		x = b.Cat([]Value{b.Slice(x, d, k, n, 1), b.Slice(x, d, 0, k, 1)}, d)
	}
	return []Value{b.Call1(OpReshape, []any{x, s.Dims()})}
}

func decomposePad(b *Builder, a Args) []Value {
	x, pad, mode, value := a.In[0], a.Ints("pad"), a.Str("mode"), a.Tensor("value")
	if mode == "constant" {
		if value.IsNil() {
			value = b.Const(0, x.DType())
		}
		return []Value{b.PadConst(x, pad, value)}
	}
	edge, ok := padEdges[mode]
	switch n := len(pad) / 2; {
	case !ok:
		a.Fail(ErrArg, "mode is %q, must be constant, reflect, replicate or circular", mode)
	case !value.IsNil():
		a.Fail(ErrArg, "mode %s takes no value", mode)
	case len(pad)%2 != 0 || n < 1 || n > 3 || (x.Rank() != n+1 && x.Rank() != n+2):
		a.Fail(ErrShape, "mode %s pads the last 1, 2 or 3 dimensions of a tensor with one or two more, not rank %d by %v",
			mode, x.Rank(), pad)
	}
	for i := 0; i < len(pad); i += 2 {
		x = padEdge(b, a, x, x.Rank()-1-i/2, pad[i], pad[i+1], edge)
	}
	return []Value{x}
}

// padMode makes the n elements that go before (or after) x along dim.
type padMode struct {
	make  func(b *Builder, x Value, dim, n int, before bool) Value
	limit func(size int) int // the most that can be made
}

var padEdges = map[string]padMode{
	"reflect": {
		make: func(b *Builder, x Value, dim, n int, before bool) Value {
			if size := x.Dim(dim); !before {
				return b.Flip(b.Slice(x, dim, size-1-n, size-1, 1), dim)
			}
			return b.Flip(b.Slice(x, dim, 1, 1+n, 1), dim)
		},
		limit: func(size int) int { return size - 1 },
	},
	"replicate": {
		make: func(b *Builder, x Value, dim, n int, before bool) Value {
			at, dims := 0, x.Shape().Dims()
			if !before {
				at = dims[dim] - 1
			}
			dims[dim] = n
			return b.Expand(b.Slice(x, dim, at, at+1, 1), dims...)
		},
		limit: func(size int) int {
			if size == 0 {
				return 0
			}
			return math.MaxInt
		},
	},
	"circular": {
		make: func(b *Builder, x Value, dim, n int, before bool) Value {
			if size := x.Dim(dim); before {
				return b.Slice(x, dim, size-n, size, 1)
			}
			return b.Slice(x, dim, 0, n, 1)
		},
		limit: func(size int) int { return size },
	},
}

func padEdge(b *Builder, a Args, x Value, dim, before, after int, edge padMode) Value {
	size := x.Dim(dim)
	if n := edge.limit(size); before > n || after > n {
		a.Fail(ErrShape, "padding %d and %d is too much for mode %s in dimension %d of size %d",
			before, after, a.Str("mode"), dim, size)
	}
	if size+before+after < 0 || -before > size || -after > size {
		a.Fail(ErrShape, "padding %d and %d crops more than dimension %d of size %d has", before, after, dim, size)
	}
	parts := []Value{b.Slice(x, dim, max(0, -before), size-max(0, -after), 1)}
	if before > 0 {
		parts = append([]Value{edge.make(b, x, dim, before, true)}, parts...)
	}
	if after > 0 {
		parts = append(parts, edge.make(b, x, dim, after, false))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return b.Cat(parts, dim)
}
