package ir

// Indexing of leading dimensions by several index tensors, and rows of tables.

func init() {
	register("index(Tensor self, Tensor[] indices) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self[indices[0], indices[1], …]: the indices (i64 or i32, negative ones count from the end) broadcast together, " +
			"index the leading dimensions and are replaced by their common shape. ATen's index.Tensor, without masks.",
		Decompose: func(b *Builder, a Args) []Value {
			p := newPlaces(b, a)
			x := b.IndexSelect(p.rows, 0, p.index)
			return []Value{b.Call1(opReshape, []any{x, append(p.picked.Dims(), p.rest...)})}
		},
	})
	register("index_put(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self with values, broadcast to the shape of index(self, indices), written there, or added if accumulate; where " +
			"an index repeats, the later write wins. The only index may be a mask over the leading dimensions if values are " +
			"the same for each of its places. ATen's index_put.",
		Decompose: decomposeIndexPut,
	})
	register("embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor", Spec{
		Category: Indexing,
		Doc: "Rows of weight [n, d] chosen by indices (i64 or i32): shape indices + [d]. Row padding_idx, if not negative, " +
			"gets no gradient. ATen's embedding.",
		Decompose: decomposeEmbedding,
		VJP:       vjpEmbedding,
	})
	registerBackward("embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor",
		"The gradient of embedding with respect to weight, of num_weights rows. As at::embedding_dense_backward.", embeddingBackward)
	register("one_hot(Tensor self, int num_classes) -> Tensor", Spec{
		Category: Indexing,
		Doc: "i64 of self's shape + [num_classes]: 1 where the last index equals the class in self, else 0; a class outside " +
			"gives zeros. ATen's one_hot, with num_classes required.",
		Decompose: decomposeOneHot,
		NoGrad:    "classes are integers",
	})
}

// places says where a use of index or index_put reads or writes.
type places struct {
	rows   Value // self with the indexed dimensions flattened into the first
	index  Value // i64 vector of rows
	picked Shape // the common shape of the indices
	rest   []int // the dimensions that are not indexed
}

func newPlaces(b *Builder, a Args) places {
	self, indices := a.In[0], a.Tensors("indices")
	s := self.Shape()
	if len(indices) == 0 || len(indices) > s.Rank() {
		a.Fail(ErrIndex, "%d indices for rank %d", len(indices), s.Rank())
	}
	p := places{picked: MakeShape(I64), rest: s.Dims()[len(indices):]}
	for i, v := range indices {
		requireIndex(a, v)
		var ok bool
		if p.picked, ok = BroadcastDims(p.picked, v.Shape().WithDType(I64)); !ok {
			a.Fail(ErrShape, "index %d of shape %v does not broadcast with the others", i, v.Shape().Dims())
		}
	}
	// A place outside must be an error even where the flat place exists, so the
	// flat index of such a place is made -1.
	n := 1
	var flat, valid Value
	for i, v := range indices {
		size := s.Dim(i)
		n *= size
		v = b.wrapIndex(v, size)
		if len(indices) == 1 {
			flat = v
			break
		}
		ok := b.logicalAnd(b.ge(v, b.Const(0, I64)), b.lt(v, b.Const(size, I64)))
		if i == 0 {
			flat, valid = v, ok
			continue
		}
		flat = b.Add(b.Mul(flat, b.Const(size, I64)), v)
		valid = b.logicalAnd(valid, ok)
	}
	if !valid.IsNil() {
		flat = b.Where(valid, flat, b.Const(-1, I64))
	}
	p.rows = b.Reshape(self, append([]int{n}, p.rest...)...)
	p.index = b.Reshape(b.Expand(flat, p.picked.Dims()...), p.picked.Numel())
	return p
}

func decomposeIndexPut(b *Builder, a Args) []Value {
	self, values := a.In[0], a.Tensor("values")
	requireSameDType(a, "values")
	if indices := a.Tensors("indices"); len(indices) == 1 && indices[0].DType() == Bool {
		return []Value{maskedPut(b, a, indices[0], values)}
	}
	p := newPlaces(b, a)
	target, err := NewShape(self.DType(), append(p.picked.Dims(), p.rest...))
	if err != nil {
		a.Fail(ErrShape, "%v", err)
	}
	if s, ok := BroadcastDims(values.Shape(), target); !ok || !s.SameDims(target) {
		a.Fail(ErrShape, "values of shape %v do not broadcast to %v", values.Shape().Dims(), target.Dims())
	}
	n := p.index.Dim(0)
	values = b.Reshape(b.Expand(values, target.Dims()...), append([]int{n}, p.rest...)...)
	var out Value
	if a.Bool("accumulate") {
		out = b.IndexAdd(p.rows, 0, p.index, values)
	} else {
		out = b.indexCopy(p.rows, 0, p.index, values)
	}
	return []Value{b.Reshape(out, self.Shape().Dims()...)}
}

// maskedPut is index_put with a mask over the leading dimensions, of which
// every place gets the same values: how many there are depends on the data.
func maskedPut(b *Builder, a Args, mask, values Value) Value {
	self := a.In[0]
	s, dims := self.Shape(), mask.Shape().Dims()
	if len(dims) > s.Rank() || !mask.Shape().SameDims(MakeShape(Bool, s.Dims()[:min(len(dims), s.Rank())]...)) {
		a.Fail(ErrShape, "the mask of shape %v does not cover the leading dimensions of self", dims)
	}
	rest := s.WithDims(s.Dims()[len(dims):]...)
	if t, ok := BroadcastDims(values.Shape(), rest); !ok || !t.SameDims(rest) {
		a.Fail(ErrShape, "values of shape %v must broadcast to %v to be the same at every place of the mask",
			values.Shape().Dims(), rest.Dims())
	}
	for range rest.Rank() {
		dims = append(dims, 1)
	}
	put := values
	if a.Bool("accumulate") {
		put = b.Add(self, values)
	}
	return b.Where(b.Reshape(mask, dims...), put, self)
}

func decomposeEmbedding(b *Builder, a Args) []Value {
	w, index := a.In[0], a.In[1]
	requireIndex(a, index)
	if w.Rank() != 2 {
		a.Fail(ErrShape, "weight has rank %d, must be 2", w.Rank())
	}
	if p := a.Int("padding_idx"); p >= w.Dim(0) {
		a.Fail(ErrIndex, "padding_idx %d is out of range for %d rows", p, w.Dim(0))
	}
	rows := b.IndexSelect(w, 0, b.Reshape(index, index.Shape().Numel()))
	return []Value{b.Call1(opReshape, []any{rows, append(index.Shape().Dims(), w.Dim(1))})}
}

func vjpEmbedding(b *Builder, a Args, out, grad []Value) []Value {
	return []Value{b.rowGradients(grad[0], a.In[1], a.In[0].Dim(0), a.Int("padding_idx")), {}}
}

// rowGradients sums the gradients of chosen rows by row, of n rows; those of row padding count for
// nothing.
func (b *Builder) rowGradients(g, indices Value, n, padding int) Value {
	count := indices.Shape().Numel()
	index := b.Reshape(indices, count)
	width := g.Dim(-1)
	g = b.Reshape(g, count, width)
	if padding >= 0 {
		skipped := b.eq(b.Reshape(index, count, 1), b.Const(padding, index.DType()))
		g = b.Where(skipped, b.Const(0, g.DType()), g)
	}
	return b.IndexAdd(b.Full([]int{n, width}, 0, g.DType()), 0, index, g)
}

// embeddingBackward is the gradient of a table from which rows were chosen. With scale_grad_by_freq
// the gradient of a row is divided by how often it was.
func embeddingBackward(b *Builder, a Args) []Value {
	g, indices, n := a.Tensor("grad_output"), a.Tensor("indices"), a.Int("num_weights")
	requireIndex(a, indices)
	if s, i := g.Shape(), indices.Shape(); n < 0 || s.Rank() != i.Rank()+1 || !s.WithDims(s.Dims()[:i.Rank()]...).SameDims(i) {
		a.Fail(ErrShape, "grad_output must be a row for each of indices %v, got %v", i, s)
	}
	sum := b.rowGradients(g, indices, n, a.Int("padding_idx"))
	if a.Bool("scale_grad_by_freq") {
		index := b.flatten(indices)
		often := b.countIn(n, index, b.Full([]int{index.Dim(0)}, 1, g.DType()))
		sum = b.Div(sum, b.Unsqueeze(b.maximum(often, b.Const(1, g.DType())), 1))
	}
	return []Value{sum}
}

func decomposeOneHot(b *Builder, a Args) []Value {
	x, n := a.In[0], a.Int("num_classes")
	requireIndex(a, x)
	if n <= 0 {
		a.Fail(ErrArg, "num_classes is %d, must be positive: shapes do not depend on data", n)
	}
	x = b.Call1(opReshape, []any{x, append(x.Shape().Dims(), 1)})
	return []Value{b.Cast(b.eq(x, b.Iota(n, x.DType())), I64)}
}
