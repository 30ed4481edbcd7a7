package ir

import "slices"

// Composites that rearrange dimensions.

func init() {
	register("detach(Tensor self) -> Tensor", Spec{
		Category: View,
		Doc:      "self, through which no gradient flows. ATen's detach.",
		Decompose: func(b *Builder, a Args) []Value {
			return []Value{b.Call1(opReshape, []any{a.In[0], a.In[0].Shape().Dims()})}
		},
		NoGrad: "it is there to stop gradients",
	})
	register("squeeze(Tensor self, int[]? dim=None) -> Tensor", Spec{
		Category:  View,
		Doc:       "self without the dimensions of size 1 among dim (any of them if absent, none if empty). ATen's squeeze.dims.",
		Decompose: decomposeSqueeze,
	})
	register("unsqueeze(Tensor self, int dim) -> Tensor", Spec{
		Category: View,
		Doc:      "self with a new dimension of size 1 at position dim, -1 being after the last. ATen's unsqueeze.",
		Decompose: func(b *Builder, a Args) []Value {
			return []Value{b.Unsqueeze(a.In[0], a.Dim("dim", a.In[0].Rank()+1))}
		},
	})
	register("flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", Spec{
		Category:  View,
		Doc:       "The dimensions from start_dim to end_dim, both included, as one; a scalar becomes [1]. ATen's flatten.",
		Decompose: decomposeFlatten,
	})
	register("unflatten(Tensor self, int dim, int[] sizes) -> Tensor", Spec{
		Category:  View,
		Doc:       "Dimension dim as several of the given sizes, one of which may be -1. ATen's unflatten.",
		Decompose: decomposeUnflatten,
	})
	register("transpose(Tensor self, int dim0, int dim1) -> Tensor", Spec{
		Category: View,
		Doc:      "self with two dimensions exchanged. ATen's transpose.",
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			i, j := a.Dim("dim0", x.Rank()), a.Dim("dim1", x.Rank())
			if i == j {
				return []Value{b.Permute(x, countTo(x.Rank())...)}
			}
			return []Value{b.Transpose(x, i, j)}
		},
	})
	register("movedim(Tensor self, int[] source, int[] destination) -> Tensor", Spec{
		Category: View,
		Doc:      "self with dimensions source moved to positions destination and the rest in order around them. ATen's movedim.",
		Decompose: func(b *Builder, a Args) []Value {
			return []Value{b.Permute(a.In[0], moveDims(a, a.Ints("source"), a.Ints("destination"))...)}
		},
	})
	register("diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", Spec{
		Category: View,
		Doc: "The diagonal of dimensions dim1 and dim2, offset to the right (negative: down), as the last dimension of the " +
			"result. ATen's diagonal.",
		Decompose: decomposeDiagonal,
	})
	register("unfold(Tensor self, int dimension, int size, int step) -> Tensor", Spec{
		Category: View,
		Doc: "The windows of the given size along dimension, one every step elements: dimension counts the windows and a new " +
			"last one runs inside them. ATen's unfold.",
		Decompose: decomposeUnfold,
	})
	register("repeat(Tensor self, int[] repeats) -> Tensor", Spec{
		Category:  View,
		Doc:       "self laid out repeats[i] times along each dimension; more repeats than dimensions make new first ones. ATen's repeat.",
		Decompose: decomposeRepeat,
		VJP:       repeatGradient,
	})
	register("repeat_interleave(Tensor self, int repeats, int? dim=None) -> Tensor", Spec{
		Category: View,
		Doc: "Each element repeated in place along dim, or of the flattened self if dim is absent. " +
			"ATen's repeat_interleave.self_int.",
		Decompose: decomposeRepeatInterleave,
	})
}

// countTo returns 0, 1, … n-1.
func countTo(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}

func decomposeSqueeze(b *Builder, a Args) []Value {
	s := a.In[0].Shape()
	drop := [MaxRank]bool{}
	if dims := a.Ints("dim"); dims == nil || len(dims) > 0 {
		drop = a.dims("dim", s.Rank())
	}
	dims := make([]int, 0, MaxRank)
	for i, n := range s.Dims() {
		if !drop[i] || n != 1 {
			dims = append(dims, n)
		}
	}
	return []Value{b.Call1(opReshape, []any{a.In[0], dims})}
}

func decomposeFlatten(b *Builder, a Args) []Value {
	s := a.In[0].Shape()
	start, end := a.Dim("start_dim", s.Rank()), a.Dim("end_dim", s.Rank())
	if start > end {
		a.Fail(ErrArg, "start_dim %d comes after end_dim %d", start, end)
	}
	in := AtLeast1D(s).Dims()
	n := 1
	for _, d := range in[start : end+1] {
		n *= d
	}
	dims := append(append(in[:start:start], n), in[end+1:]...)
	return []Value{b.Call1(opReshape, []any{a.In[0], dims})}
}

func decomposeUnflatten(b *Builder, a Args) []Value {
	s := a.In[0].Shape()
	sizes := a.Ints("sizes")
	if s.Rank() == 0 || len(sizes) == 0 {
		a.Fail(ErrShape, "rank %d cannot be unflattened to sizes %v", s.Rank(), sizes)
	}
	dim := a.Dim("dim", s.Rank())
	n, hole := 1, -1
	for i, d := range sizes {
		if d == -1 && hole < 0 {
			hole = i
		} else {
			n *= d
		}
	}
	if hole >= 0 && n != 0 {
		sizes[hole] = s.Dim(dim) / n
		n *= sizes[hole]
	}
	if n != s.Dim(dim) {
		a.Fail(ErrShape, "sizes %v do not multiply to %d, the size of dimension %d", a.Ints("sizes"), s.Dim(dim), dim)
	}
	in := s.Dims()
	dims := append(append(in[:dim:dim], sizes...), in[dim+1:]...)
	return []Value{b.Call1(opReshape, []any{a.In[0], dims})}
}

// moveDims returns the permutation that moves dimensions to new places.
func moveDims(a Args, from, to []int) []int {
	rank := a.In[0].Rank()
	if len(from) != len(to) {
		a.Fail(ErrArg, "%v and %v have different lengths", from, to)
	}
	perm := make([]int, rank)
	var moved, taken [MaxRank]bool
	for i := range from {
		s, d := a.NormDim(from[i], rank), a.NormDim(to[i], rank)
		if moved[s] || taken[d] {
			a.Fail(ErrIndex, "a dimension appears twice in %v or %v", from, to)
		}
		moved[s], taken[d] = true, true
		if rank > 0 {
			perm[d] = s
		}
	}
	s := 0
	for d := range perm {
		if taken[d] {
			continue
		}
		for moved[s] {
			s++
		}
		perm[d] = s
		s++
	}
	return perm
}

// diagonal is a use of diagonal: in the flattened matrices it is every (cols+1)-th element from start.
type diagonal struct {
	perm                     []int // puts the two dimensions last
	batch                    []int // the other dimensions
	rows, cols, start, count int
}

func newDiagonal(a Args) *diagonal {
	s := a.In[0].Shape()
	r := s.Rank()
	i, j := a.Dim("dim1", r), a.Dim("dim2", r)
	if r < 2 || i == j {
		a.Fail(ErrIndex, "dim1 %d and dim2 %d are not two dimensions of rank %d", i, j, r)
	}
	d := &diagonal{perm: moveDims(a, []int{i, j}, []int{-2, -1}), rows: s.Dim(i), cols: s.Dim(j)}
	for _, k := range d.perm[:r-2] {
		d.batch = append(d.batch, s.Dim(k))
	}
	d.batch = slices.Clip(d.batch)
	offset := a.Int("offset")
	d.count, d.start = min(d.rows, d.cols-offset), offset
	if offset < 0 {
		d.count, d.start = min(d.rows+offset, d.cols), -offset*d.cols
	}
	if d.count <= 0 {
		d.count, d.start = 0, 0
	}
	return d
}

func decomposeDiagonal(b *Builder, a Args) []Value {
	d := newDiagonal(a)
	x := b.Reshape(b.Permute(a.In[0], d.perm...), append(d.batch, d.rows*d.cols)...)
	end := d.start
	if d.count > 0 {
		end += (d.count-1)*(d.cols+1) + 1
	}
	return []Value{b.Slice(x, len(d.batch), d.start, end, d.cols+1)}
}

// UnfoldBounds resolves a use of unfold against its operand: window i of the result, for 0 <= i < windows, has
// the elements i*step to i*step+size-1 along dim. A scalar has one dimension of one element. It fails with
// ErrIndex for a bad dim, ErrShape for a size that does not fit, and ErrArg for a step that is not positive.
func UnfoldBounds(a Args) (dim, windows, size, step int) {
	s := a.In[0].Shape()
	dim, size, step = a.Dim("dimension", s.Rank()), a.Int("size"), a.Int("step")
	n := AtLeast1D(s).Dim(dim)
	switch {
	case size < 0 || size > n:
		a.Fail(ErrShape, "a window of size %d does not fit dimension %d of size %d", size, dim, n)
	case step <= 0:
		a.Fail(ErrArg, "step is %d, must be positive", step)
	}
	return dim, (n-size)/step + 1, size, step
}

func decomposeUnfold(b *Builder, a Args) []Value {
	x := a.In[0]
	s := x.Shape()
	dim, windows, size, step := UnfoldBounds(a)
	if x.Rank() == 0 {
		return []Value{b.Slice(b.Reshape(x, 1), 0, 0, size, 1)}
	}
	first := b.Call1(opArange, []any{0, windows * step, step, I64})
	index := b.Add(b.Reshape(first, windows, 1), b.Iota(size, I64))
	x = b.IndexSelect(x, dim, b.Reshape(index, windows*size))
	dims := s.Dims()
	dims = append(append(append(make([]int, 0, MaxRank+1), dims[:dim]...), windows, size), dims[dim+1:]...)
	x = b.Call1(opReshape, []any{x, dims})
	perm := countTo(len(dims))
	perm = append(append(perm[:dim+1:dim+1], perm[dim+2:]...), dim+1)
	return []Value{b.Permute(x, perm...)}
}

// stretchedTogether is how many dimensions are stretched in one view: each is two of its dimensions, and one has what
// is before them.
const stretchedTogether = (MaxRank - 1) / 2

// decomposeRepeat stretches some dimensions together, from the last on, so that any rank will do.
func decomposeRepeat(b *Builder, a Args) []Value {
	x, repeats := a.In[0], a.Ints("repeats")
	off := len(repeats) - x.Rank()
	if off < 0 {
		a.Fail(ErrShape, "repeats %v has fewer entries than self has dimensions", repeats)
	}
	dims := make([]int, len(repeats))
	for i, r := range repeats {
		if r < 0 {
			a.Fail(ErrArg, "repeats %v has a negative entry", repeats)
		}
		dims[i] = 1
		if i >= off {
			dims[i] = x.Dim(i - off)
		}
	}
	for left := len(dims); left > 0; {
		x, left = b.stretch(x, dims, repeats, left)
	}
	return []Value{b.Call1(opReshape, []any{x, dims})}
}

// stretch repeats the last dimensions among the first left ones, some that are repeated and what is beside them, and
// notes that in dims. It returns how many are left.
func (b *Builder) stretch(x Value, dims, repeats []int, left int) (Value, int) {
	inner := numelOf(dims[left:])
	var once, often []int // from the last on
	for ; left > 0; left-- {
		r := repeats[left-1]
		if r != 1 && len(once) == 2*stretchedTogether {
			break
		}
		if inner *= dims[left-1]; r != 1 {
			once, often, inner = append(once, inner, 1), append(often, inner, r), 1
			dims[left-1] *= r
		}
	}
	if once == nil {
		return x, left
	}
	inner *= numelOf(dims[:left])
	once, often = append(once, inner), append(often, inner)
	slices.Reverse(once)
	slices.Reverse(often)
	return b.Expand(b.Reshape(x, once...), often...), left
}

// repeatGradient adds up the copies of one dimension after the other, from the first on: each sum goes over what lies
// together.
func repeatGradient(b *Builder, a Args, _, grad []Value) []Value {
	g, x, repeats := grad[0], a.In[0], a.Ints("repeats")
	dims := g.Shape().Dims()
	for i, r := range repeats {
		if r == 1 {
			continue
		}
		dims[i] = 1
		if k := i - len(repeats) + x.Rank(); k >= 0 {
			dims[i] = x.Dim(k)
		}
		g = b.Sum(b.Reshape(g, numelOf(dims[:i]), r, numelOf(dims[i:])), []int{1}, false)
	}
	return []Value{b.Call1(opReshape, []any{g, x.Shape().Dims()})}
}

func decomposeRepeatInterleave(b *Builder, a Args) []Value {
	x, n := a.In[0], a.Int("repeats")
	if n < 0 {
		a.Fail(ErrArg, "repeats is %d, must not be negative", n)
	}
	dim, ok := 0, false
	if _, ok = a.OptInt("dim"); ok {
		dim = a.Dim("dim", x.Rank())
	}
	dims := []int{x.Shape().Numel()}
	if ok {
		dims = AtLeast1D(x.Shape()).Dims()
	}
	outer, inner := numelOf(dims[:dim+1]), numelOf(dims[dim+1:])
	x = b.Expand(b.Reshape(x, outer, 1, inner), outer, n, inner)
	dims[dim] *= n
	return []Value{b.Call1(opReshape, []any{x, dims})}
}
