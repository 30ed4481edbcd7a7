package ir

// The methods here record one primitive each with Go-typed arguments; they are
// what composites and gradients are written with. Shape rules are the op's.

// Const records a rank-0 constant that enters the hash. v is int, int64,
// float64 or bool.
func (b *Builder) Const(v any, d DType) Value { return b.Full(nil, v, d) }

// WrappedConst records a constant for a literal: like a plain number of the
// user's it takes part in type promotion last, but its value enters the hash.
func (b *Builder) WrappedConst(v any) Value {
	d := I64
	switch v.(type) {
	case float64:
		d = DefaultDType
	case bool:
		d = Bool
	}
	c := b.Const(v, d)
	c.Node.flags |= flagWrapped
	return c
}

// Full records a tensor of the given dimensions filled with a constant.
func (b *Builder) Full(size []int, v any, d DType) Value {
	if size == nil {
		size = []int{}
	}
	return b.Call1(opFull, []any{size, v, d})
}

// fullLike records a constant with the shape of x.
func (b *Builder) fullLike(x Value, v any) Value { return b.Full(x.Shape().Dims(), v, x.DType()) }

// Iota records 0, 1, … n-1.
func (b *Builder) Iota(n int, d DType) Value { return b.Call1(opArange, []any{0, n, 1, d}) }

// Cast records a conversion; it is x itself if the dtype is right already.
func (b *Builder) Cast(x Value, d DType) Value {
	if x.DType() == d {
		return x
	}
	return b.Call1(opCast, []any{x, d})
}

// Where records cond ? x : y, elementwise with broadcasting.
func (b *Builder) Where(cond, x, y Value) Value { return b.Call1(opWhere, []any{cond, x, y}) }

// Sum records a sum over dims (nil: all).
func (b *Builder) Sum(x Value, dims []int, keepdim bool) Value {
	return b.Call1(opSum, []any{x, dimsArg(dims), keepdim})
}

// prod records a product over dims (nil: all).
func (b *Builder) prod(x Value, dims []int, keepdim bool) Value {
	return b.Call1(opProd, []any{x, dimsArg(dims), keepdim})
}

// Amax records a maximum over dims (nil: all).
func (b *Builder) Amax(x Value, dims []int, keepdim bool) Value {
	return b.Call1(opAmax, []any{x, dimsArg(dims), keepdim})
}

// amin records a minimum over dims (nil: all).
func (b *Builder) amin(x Value, dims []int, keepdim bool) Value {
	return b.Call1(opAmin, []any{x, dimsArg(dims), keepdim})
}

func dimsArg(dims []int) any {
	if dims == nil {
		return nil
	}
	return dims
}

// Mean records a mean over dims (nil: all) of a floating x.
func (b *Builder) Mean(x Value, dims []int, keepdim bool) Value {
	return b.meanOf(x, b.Sum(x, dims, keepdim))
}

// meanOf divides a sum of x's elements by how many there are for each result.
func (b *Builder) meanOf(x, sum Value) Value {
	n := float64(x.Shape().Numel()) / float64(max(sum.Shape().Numel(), 1))
	return b.Div(sum, b.Const(n, sum.DType()))
}

// Cumsum records a running sum along dim.
func (b *Builder) Cumsum(x Value, dim int) Value { return b.Call1(opCumsum, []any{x, dim}) }

// Reshape records a reshape; it is x itself if the dimensions are right already.
func (b *Builder) Reshape(x Value, dims ...int) Value {
	if s := x.Shape(); len(dims) == s.Rank() {
		same := true
		for i, d := range dims {
			same = same && s.dims[i] == d
		}
		if same {
			return x
		}
	}
	if dims == nil {
		dims = []int{}
	}
	return b.Call1(opReshape, []any{x, dims})
}

// Permute records a reordering of the dimensions.
func (b *Builder) Permute(x Value, dims ...int) Value {
	if dims == nil {
		dims = []int{}
	}
	return b.Call1(opPermute, []any{x, dims})
}

// Transpose records an exchange of two dimensions, which may be negative.
func (b *Builder) Transpose(x Value, i, j int) Value {
	r := x.Rank()
	p := make([]int, r)
	for k := range p {
		p[k] = k
	}
	i, j = (i+r)%r, (j+r)%r
	p[i], p[j] = p[j], p[i]
	return b.Permute(x, p...)
}

// Expand records a broadcast to the given dimensions; x itself if it has them.
func (b *Builder) Expand(x Value, dims ...int) Value {
	if x.Shape().SameDims(MakeShape(x.DType(), dims...)) {
		return x
	}
	if dims == nil {
		dims = []int{}
	}
	return b.Call1(opExpand, []any{x, dims})
}

// ExpandAs records a broadcast of x to the dimensions of y.
func (b *Builder) ExpandAs(x, y Value) Value { return b.Expand(x, y.Shape().Dims()...) }

// Unsqueeze records a new dimension of size 1 at position dim (may be negative).
func (b *Builder) Unsqueeze(x Value, dim int) Value {
	d := x.Shape().Dims()
	if dim < 0 {
		dim += len(d) + 1
	}
	out := append(append(append(make([]int, 0, len(d)+1), d[:dim]...), 1), d[dim:]...)
	return b.Reshape(x, out...)
}

// Slice records x[start:end:step] along dim; 0 <= start <= end.
func (b *Builder) Slice(x Value, dim, start, end, step int) Value {
	return b.Call1(opSlice, []any{x, dim, start, end, step})
}

// Flip records a reversal along dims.
func (b *Builder) Flip(x Value, dims ...int) Value { return b.Call1(opFlip, []any{x, dims}) }

// Cat records a concatenation along dim.
func (b *Builder) Cat(xs []Value, dim int) Value { return b.Call1(opCat, []any{xs, dim}) }

// PadConst records constant padding: pad has (before, after) pairs from the last
// dimension backwards, as ATen's constant_pad_nd; negative entries crop.
func (b *Builder) PadConst(x Value, pad []int, value Value) Value {
	return b.Call1(opConstantPadNd, []any{x, pad, value})
}

// Gather records out[i][j] = x[index[i][j]][j] along dim.
func (b *Builder) Gather(x Value, dim int, index Value) Value {
	return b.Call1(opGather, []any{x, dim, index})
}

// ScatterReduce records scatter_reduce with include_self: reduce is "sum",
// "prod", "mean", "amax" or "amin".
func (b *Builder) ScatterReduce(x Value, dim int, index, src Value, reduce string) Value {
	return b.Call1(opScatterReduce, []any{x, dim, index, src, reduce})
}

// Scatter records scatter: later writes of one place win in index order.
func (b *Builder) Scatter(x Value, dim int, index, src Value) Value {
	return b.Call1(opScatter, []any{x, dim, index, src})
}

// IndexSelect records the choice of rows of x along dim by a 1-d index.
func (b *Builder) IndexSelect(x Value, dim int, index Value) Value {
	return b.Call1(opIndexSelect, []any{x, dim, index})
}

// IndexAdd records the addition of rows of source into x along dim.
func (b *Builder) IndexAdd(x Value, dim int, index, source Value) Value {
	return b.Call1(opIndexAdd, []any{x, dim, index, source})
}

// Sort records a stable sort along dim: values and i64 indices.
func (b *Builder) Sort(x Value, dim int, descending bool) (values, indices Value) {
	o := b.Call(opSort, []any{x, dim, descending})
	return o[0], o[1]
}

// sumTo records the sum that undoes a broadcast: x is reduced to the dimensions
// of the shape to, which broadcasts to x's.
func (b *Builder) sumTo(x Value, to Shape) Value {
	xs := x.Shape()
	if xs.SameDims(to) {
		return x
	}
	var dims []int
	off := xs.Rank() - to.Rank()
	for i := range xs.Rank() {
		if i < off || (to.dims[i-off] == 1 && xs.dims[i] != 1) {
			dims = append(dims, i)
		}
	}
	if dims != nil {
		x = b.Call1(opSum, []any{x, dims, true, x.DType()})
	}
	return b.Reshape(x, to.Dims()...)
}
