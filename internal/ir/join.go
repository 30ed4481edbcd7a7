package ir

import "slices"

// Ops that take tensors apart or join them.

func init() {
	register("cat(Tensor[] tensors, int dim=0) -> Tensor", Spec{
		Category: View,
		Promote:  PromoteDefault,
		Doc: "Tensors one after the other along dim; their other dimensions are equal. They are promoted to their common " +
			"dtype. ATen's cat, without the legacy skipping of empty 1-d tensors.",
		Infer: inferCat,
		VJP:   vjpCat,
	})
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
			n := a.In[0].Dim(a.Dim("dim", a.In[0].Rank()))
			requireOutputs(a, n)
			out := make([]Value, n)
			for i := range out {
				out[i] = selectAt(b, a, i)
			}
			return out
		},
		VJP: vjpPieces(func(b *Builder, g Value, dim int) Value { return b.Unsqueeze(g, dim) }),
	})
	register("split(Tensor self, int[] split_size, int dim=0) -> Tensor[]", Spec{
		Category: View,
		Doc: "Consecutive pieces along dim: one number is the size of all, the last being what is left (ATen's split.Tensor); " +
			"several are their sizes (split.sizes).",
		Decompose: decomposeSplit, VJP: vjpPieces(asItIs),
	})
	register("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", Spec{
		Category: View,
		Doc:      "Consecutive pieces of the given sizes along dim, which add up to its size. ATen's split_with_sizes.",
		Decompose: func(b *Builder, a Args) []Value {
			return splitSizes(b, a, a.Ints("split_sizes"))
		},
		VJP: vjpPieces(asItIs),
	})
	register("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", Spec{
		Category:  View,
		Doc:       "At most chunks consecutive pieces along dim of size ceil(n/chunks), the last being what is left. ATen's chunk.",
		Decompose: decomposeChunk, VJP: vjpPieces(asItIs),
	})
	register("roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor", Spec{
		Category: View,
		Doc: "Elements moved by shifts along dims, those that leave at one end entering at the other; without dims the " +
			"flattened tensor is moved. ATen's roll.",
		Decompose: decomposeRoll,
		VJP:       vjpRoll,
	})
}

// vjpPieces joins the cotangents of the pieces of a tensor along dim, each after whole has made it a piece
// of a tensor of its rank.
func vjpPieces(whole func(b *Builder, g Value, dim int) Value) vjpFunc {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		dim := a.Dim("dim", a.In[0].Rank())
		pieces := make([]Value, len(out))
		for i, g := range grad {
			pieces[i] = whole(b, b.orZero(g, out[i]), dim)
		}
		return []Value{b.Cat(pieces, dim)}
	}
}

func asItIs(_ *Builder, g Value, _ int) Value { return g }

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

func vjpCat(b *Builder, a Args, out, grad []Value) []Value {
	dim := a.Dim("dim", out[0].Rank())
	gs := make([]Value, len(a.In))
	at := 0
	for i, v := range a.In {
		n := v.Dim(dim)
		gs[i] = b.Slice(grad[0], dim, at, at+n, 1)
		at += n
	}
	return gs
}

func requireDimension(a Args) {
	if a.In[0].Rank() == 0 {
		a.Fail(ErrIndex, "a tensor of rank 0 has no dimension to choose from")
	}
}

// selected returns the normalised dim of a use of select and the normalised index i along it.
func selected(a Args, i int) (dim, index int) {
	requireDimension(a)
	x := a.In[0]
	dim = a.Dim("dim", x.Rank())
	n := x.Dim(dim)
	if i < -n || i >= n {
		a.Fail(ErrIndex, "index %d is out of range for dimension %d of size %d", i, dim, n)
	}
	if i < 0 {
		i += n
	}
	return dim, i
}

func selectAt(b *Builder, a Args, i int) Value {
	x := a.In[0]
	dim, i := selected(a, i)
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

// MaxOutputs is the largest number of results of one op.
const MaxOutputs = 1 << 16

// requireOutputs fails for more results than one op may have.
func requireOutputs(a Args, n int) {
	if n > MaxOutputs {
		a.Fail(ErrArg, "it would have %d results, at most %d are supported", n, MaxOutputs)
	}
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
func evenSizes(a Args, n, size int) []int {
	if n == 0 {
		return []int{0}
	}
	requireOutputs(a, (n-1)/size+1)
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
	if slices.ContainsFunc(sizes, func(n int) bool { return n < 0 }) {
		a.Fail(ErrArg, "sizes %v have a negative entry", sizes)
	}
	sum := 0
	for _, n := range sizes {
		if n > x.Dim(dim)-sum {
			a.Fail(ErrShape, "sizes %v add up to more than %d, the size of dimension %d", sizes, x.Dim(dim), dim)
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
	return pieces(b, a.In[0], dim, evenSizes(a, n, sizes[0]))
}

func decomposeChunk(b *Builder, a Args) []Value {
	requireDimension(a)
	dim, chunks := a.Dim("dim", a.In[0].Rank()), a.Int("chunks")
	if chunks <= 0 {
		a.Fail(ErrArg, "chunks is %d, must be positive", chunks)
	}
	n := a.In[0].Dim(dim)
	if n == 0 {
		requireOutputs(a, chunks)
		return pieces(b, a.In[0], dim, make([]int, chunks))
	}
	return pieces(b, a.In[0], dim, evenSizes(a, n, (n-1)/chunks+1))
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
	var by [MaxRank]int
	var moved []int
	for i, d := range dims {
		if x.Rank() == 0 {
			a.Fail(ErrIndex, "dimension %d is out of range for rank 0", d)
		}
		d = a.NormDim(d, x.Rank())
		if n := x.Dim(d); n > 0 {
			by[d] = ((by[d]+shifts[i])%n + n) % n
		}
	}
	for d, n := range by {
		if n > 0 {
			moved = append(moved, d)
		}
	}
	for len(moved) > 0 {
		k := min(len(moved), rollAtOnce)
		x, moved = b.rolled(x, moved[:k], &by), moved[k:]
	}
	return []Value{b.Call1(opReshape, []any{x, s.Dims()})}
}

// rollAtOnce is along how many dimensions elements are moved at once, in pieces of which there are two to
// the power of it.
const rollAtOnce = 3

// rolled moves the elements of x along dims, each of which is copied once: a piece of a piece goes to where
// it belongs in the end.
func (b *Builder) rolled(x Value, dims []int, by *[MaxRank]int) Value {
	if len(dims) == 0 {
		return x
	}
	d := dims[0]
	n := x.Dim(d)
	k := n - by[d]
	return b.Cat([]Value{b.rolled(b.Slice(x, d, k, n, 1), dims[1:], by), b.rolled(b.Slice(x, d, 0, k, 1), dims[1:], by)}, d)
}

// vjpRoll moves the cotangent the other way.
func vjpRoll(b *Builder, a Args, _, grad []Value) []Value {
	back := slices.Clone(a.Ints("shifts"))
	for i := range back {
		back[i] = -back[i]
	}
	return []Value{b.callNamed("roll", []any{grad[0], back, a.Ints("dims")})}
}
