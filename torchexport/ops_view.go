package torchexport

import (
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// viewOps return views: what is done to them in place is done to what they view.
var viewOps = map[string]func(c *call) []any{
	"aten.view":       func(c *call) []any { return c.reshaped(c.ints("size")) },
	"aten.reshape":    func(c *call) []any { return c.viewOrCopy(c.ints("shape")) },
	"aten.view.dtype": viewDType,
	"aten.view_as":    func(c *call) []any { return c.reshaped(c.value("other").Dims()) },
	"aten.reshape_as": func(c *call) []any { return c.viewOrCopy(c.value("other").Dims()) },
	"aten.flatten":    flatten,
	"aten.ravel":      func(c *call) []any { return c.reshaped([]int{-1}) },
	"aten.unflatten":  unflatten,
	"aten.squeeze":    squeeze,
	"aten.unsqueeze": func(c *call) []any {
		dims := c.value("self").Dims()
		dim := c.dim(c.int("dim"), len(dims)+1)
		return c.sameElements(slices.Insert(dims, dim, 1))
	},
	"aten.permute": func(c *call) []any { return c.permuted(c.ints("dims")) },
	"aten.transpose": func(c *call) []any {
		return c.transposed(c.intOr("dim0", c.intOr("axis0", 0)), c.intOr("dim1", c.intOr("axis1", 1)))
	},
	"aten.t": func(c *call) []any {
		if c.value("self").Rank() < 2 {
			return aliasOf(c)
		}
		return c.transposed(0, 1)
	},
	"aten.mT": func(c *call) []any { return c.transposed(-2, -1) },
	"aten.numpy_T": func(c *call) []any {
		dims := make([]int, c.value("self").Rank())
		for i := range dims {
			dims[i] = len(dims) - 1 - i
		}
		return c.permuted(dims)
	},
	"aten.movedim": func(c *call) []any {
		from, to := c.ints("source"), c.ints("destination")
		return []any{c.tensor("self").view(func(t *loris.Tensor) *loris.Tensor { return c.do("movedim", t, from, to) },
			func(_, v *loris.Tensor) *loris.Tensor { return c.do("movedim", v, to, from) })}
	},
	"aten.expand":       func(c *call) []any { return c.expanded(c.ints("size")) },
	"aten.broadcast_to": func(c *call) []any { return c.expanded(c.ints("size")) },
	"aten.expand_as":    func(c *call) []any { return c.expanded(c.value("other").Dims()) },
	"aten.slice": func(c *call) []any {
		dim, step := c.intOr("dim", 0), c.intOr("step", 1)
		size := c.value("self").Dim(dim)
		start, end := clip(c.intOr("start", 0), size), clip(c.intOr("end", size), size)
		return []any{c.sliced(dim, start, max(start, end), step)}
	},
	"aten.narrow": func(c *call) []any {
		dim, start := c.int("dim"), c.int("start")
		if start < 0 {
			start += c.value("self").Dim(dim)
		}
		return []any{c.sliced(dim, start, start+c.int("length"), 1)}
	},
	"aten.select": func(c *call) []any { return []any{c.selected(c.int("dim"), c.int("index"))} },
	"aten.unbind": func(c *call) []any {
		dim := c.intOr("dim", 0)
		out := make([]any, c.value("self").Dim(dim))
		for i := range out {
			out[i] = c.selected(dim, i)
		}
		return []any{out}
	},
	"aten.split": func(c *call) []any {
		if v, _ := c.arg("split_size"); v != nil {
			if _, one := v.(int64); !one {
				return c.pieces(c.ints("split_size"))
			}
		}
		return c.equalPieces(c.int("split_size"))
	},
	"aten.unsafe_split":            func(c *call) []any { return c.equalPieces(c.int("split_size")) },
	"aten.split_with_sizes":        func(c *call) []any { return c.pieces(c.ints("split_sizes")) },
	"aten.unsafe_split_with_sizes": func(c *call) []any { return c.pieces(c.ints("split_sizes")) },
	"aten.split.sizes":             func(c *call) []any { return c.pieces(c.ints("split_size")) },
	"aten.chunk":                   chunk,
	"aten.unsafe_chunk":            chunk,
	"aten.diagonal":                func(c *call) []any { return c.diagonal("self", 0, 1) },
	"aten.linalg_diagonal":         func(c *call) []any { return c.diagonal("A", -2, -1) },
	"aten.as_strided": func(c *call) []any {
		size, stride := c.ints("size"), c.ints("stride")
		offset := c.intOr("storage_offset", 0)
		return []any{c.tensor("self").view(func(t *loris.Tensor) *loris.Tensor { return c.do("as_strided", t, size, stride, offset) },
			func(base, v *loris.Tensor) *loris.Tensor {
				return c.do("as_strided_scatter", base, v, size, stride, offset)
			})}
	},
	"aten.unfold": func(c *call) []any {
		dim, size, step := c.int("dimension"), c.int("size"), c.int("step")
		return []any{c.tensor("self").view(func(t *loris.Tensor) *loris.Tensor { return c.do("unfold", t, dim, size, step) }, nil)}
	},
}

// diagonal is a view of the diagonals of the matrices of dim1 and dim2.
func (c *call) diagonal(name string, dim1, dim2 int) []any {
	offset, d1, d2 := c.intOr("offset", 0), c.intOr("dim1", dim1), c.intOr("dim2", dim2)
	return []any{c.tensor(name).view(func(t *loris.Tensor) *loris.Tensor { return c.do("diagonal", t, offset, d1, d2) },
		func(base, v *loris.Tensor) *loris.Tensor { return c.do("diagonal_scatter", base, v, offset, d1, d2) })}
}

// viewDType returns the bytes of a tensor as elements of another dtype, which it waits for.
func viewDType(c *call) []any {
	t := c.value("self")
	d, dims := c.dtypeOr(t.DType()), t.Dims()
	if d == t.DType() {
		return sameTensor(c)
	}
	if from, to := t.DType().Size(), d.Size(); from != to {
		if len(dims) == 0 || dims[len(dims)-1]*from%to != 0 {
			panic(misuse(c.n.target, "%v viewed as %v", t.Shape(), d))
		}
		dims[len(dims)-1] = dims[len(dims)-1] * from / to
	}
	shape, err := ir.NewShape(d, dims)
	if err != nil {
		panic(misuse(c.n.target, "%v viewed as %v: %v", t.Shape(), d, err))
	}
	data, err := t.Bytes(c.wait())
	c.check(err)
	return one(c.maker().FromBytes(data, shape))
}

func unsupportedArgs(what string) func(c *call) []any {
	return func(c *call) []any { panic(misuse(c.n.target, "%s is not supported", what)) }
}

// clip puts an index of a slice between 0 and size; a negative one counts from the end.
func clip(i, size int) int {
	if i < 0 {
		i += size
	}
	return min(max(i, 0), size)
}

// reshaped is a view of other dimensions, one of which may be -1.
func (c *call) reshaped(dims []int) []any { return c.sameElements(c.resolved(dims)) }

// viewOrCopy is reshaped where PyTorch's tensor lies so that it can be viewed, and else a copy.
func (c *call) viewOrCopy(dims []int) []any {
	dims = c.resolved(dims)
	strides, ok := c.strides(c.n.args[0].value)
	if have := c.value("self").Dims(); !ok || viewable(have, strides, dims) {
		return c.sameElements(dims)
	}
	return one(c.value("self").Reshape(dims...))
}

// resolved returns the dimensions that a tensor is given, with -1 replaced.
func (c *call) resolved(dims []int) []int {
	out := slices.Clone(dims)
	n, open := 1, -1
	for i, d := range out {
		if d == -1 && open < 0 {
			open = i
		} else {
			n *= d
		}
	}
	if open >= 0 && n > 0 {
		out[open] = c.value("self").Numel() / n
	}
	return out
}

// viewable reports whether a tensor of the sizes and strides can be viewed with other dimensions
// without a copy: each run of dimensions that lie densely is split into some of the new ones.
func viewable(sizes, strides, dims []int) bool {
	if slices.Contains(sizes, 0) || len(sizes) == 0 {
		return true
	}
	at := len(dims) - 1
	base, run, taken := strides[len(strides)-1], 1, 1
	for i := len(sizes) - 1; i >= 0; i-- {
		run *= sizes[i]
		if i > 0 && (sizes[i-1] == 1 || strides[i-1] == run*base) {
			continue
		}
		for at >= 0 && (taken < run || dims[at] == 1) {
			taken *= dims[at]
			at--
		}
		if taken != run {
			return false
		}
		if i > 0 {
			base, run, taken = strides[i-1], 1, 1
		}
	}
	return at < 0
}

// dim returns a dimension, which may count from the end, of rank many.
func (c *call) dim(d, rank int) int {
	if d < 0 {
		d += rank
	}
	if d < 0 || d >= max(rank, 1) {
		panic(misuse(c.n.target, "dimension %d of %d", d, rank))
	}
	return d
}

func flatten(c *call) []any {
	dims := c.value("self").Dims()
	if len(dims) == 0 {
		return c.viewOrCopy([]int{1})
	}
	from, to := c.dim(c.intOr("start_dim", 0), len(dims)), c.dim(c.intOr("end_dim", -1), len(dims))
	n := 1
	for i := from; i <= to; i++ {
		n *= dims[i]
	}
	if from > to {
		panic(misuse(c.n.target, "dimensions %d to %d", from, to))
	}
	return c.viewOrCopy(slices.Concat(dims[:from], []int{n}, dims[to+1:]))
}

func unflatten(c *call) []any {
	dims := c.value("self").Dims()
	at := c.dim(c.int("dim"), len(dims))
	sizes := c.ints("sizes")
	n, open := 1, -1
	for i, s := range sizes {
		if s == -1 {
			open = i
		} else {
			n *= s
		}
	}
	if open >= 0 && n > 0 {
		sizes[open] = dims[at] / n
	}
	return c.sameElements(slices.Concat(dims[:at], sizes, dims[at+1:]))
}

func squeeze(c *call) []any {
	dims := c.value("self").Dims()
	drop := make([]bool, len(dims)+1)
	if _, ok := c.arg("dim"); ok {
		for _, d := range c.ints("dim") {
			drop[c.dim(d, len(dims))] = true
		}
	} else {
		for i := range drop {
			drop[i] = true
		}
	}
	left := dims[:0:0]
	for i, n := range dims {
		if n != 1 || !drop[i] {
			left = append(left, n)
		}
	}
	return c.sameElements(left)
}

// sameElements is a view of other dimensions.
func (c *call) sameElements(dims []int) []any {
	x, ok := c.first()
	if !ok {
		panic(misuse(c.n.target, "it has no tensor"))
	}
	return []any{x.view(func(t *loris.Tensor) *loris.Tensor { return t.Reshape(dims...) },
		func(base, v *loris.Tensor) *loris.Tensor { return v.Reshape(base.Dims()...) })}
}

func (c *call) permuted(dims []int) []any {
	back := make([]int, len(dims))
	for i, d := range dims {
		if d < 0 {
			d += len(dims)
		}
		if d < 0 || d >= len(dims) {
			panic(misuse(c.n.target, "dimensions %v", dims))
		}
		back[d] = i
	}
	return []any{c.tensor("self").view(func(t *loris.Tensor) *loris.Tensor { return t.Permute(dims...) },
		func(_, v *loris.Tensor) *loris.Tensor { return v.Permute(back...) })}
}

func (c *call) transposed(d0, d1 int) []any {
	turn := func(t *loris.Tensor) *loris.Tensor { return t.Transpose(d0, d1) }
	return []any{c.tensor("self").view(turn, func(_, v *loris.Tensor) *loris.Tensor { return turn(v) })}
}

// expanded is a view of the dimensions; -1 stands for a size that stays.
func (c *call) expanded(size []int) []any {
	x := c.tensor("self")
	have := x.value().Dims()
	dims := slices.Clone(size)
	for i := range dims {
		if j := i - len(dims) + len(have); dims[i] < 0 && j >= 0 {
			dims[i] = have[j]
		}
	}
	return []any{x.view(func(t *loris.Tensor) *loris.Tensor { return t.Expand(dims...) }, nil)}
}

// sliced is a view of the elements from start up to end along dim.
func (c *call) sliced(dim, start, end, step int) *tensor {
	x := c.tensor("self")
	if size := x.value().Dim(dim); start == 0 && end == size && step == 1 {
		return x.view(func(t *loris.Tensor) *loris.Tensor { return t }, func(_, v *loris.Tensor) *loris.Tensor { return v })
	}
	return x.view(func(t *loris.Tensor) *loris.Tensor { return c.do("slice", t, dim, start, end, step) },
		func(base, v *loris.Tensor) *loris.Tensor {
			return c.do("slice_scatter", base, v, dim, start, end, step)
		})
}

func (c *call) selected(dim, index int) *tensor {
	return c.tensor("self").view(func(t *loris.Tensor) *loris.Tensor { return c.do("select", t, dim, index) },
		func(base, v *loris.Tensor) *loris.Tensor { return c.do("select_scatter", base, v, dim, index) })
}

// pieces are views of the given sizes along the argument dim.
func (c *call) pieces(sizes []int) []any { return c.piecesAlong(c.intOr("dim", 0), sizes) }

func (c *call) piecesAlong(dim int, sizes []int) []any {
	total := 0
	for _, n := range sizes {
		if n < 0 {
			panic(misuse(c.n.target, "a piece of size %d", n))
		}
		total += n
	}
	if total != c.value("self").Dim(dim) {
		panic(misuse(c.n.target, "pieces %v of dimension %d of %v", sizes, dim, c.value("self").Shape()))
	}
	out := make([]any, len(sizes))
	at := 0
	for i, n := range sizes {
		out[i] = c.sliced(dim, at, at+n, 1)
		at += n
	}
	return []any{out}
}

func (c *call) equalPieces(n int) []any {
	size := c.value("self").Dim(c.intOr("dim", 0))
	if n <= 0 {
		if size == 0 {
			return c.pieces([]int{0})
		}
		panic(misuse(c.n.target, "pieces of size %d", n))
	}
	var sizes []int
	for at := 0; at < size || at == 0; at += n {
		sizes = append(sizes, min(n, size-at))
	}
	return c.pieces(sizes)
}

func chunk(c *call) []any {
	n := c.int("chunks")
	if n <= 0 {
		panic(misuse(c.n.target, "%d chunks", n))
	}
	size := c.value("self").Dim(c.intOr("dim", 0))
	return c.equalPieces(max((size+n-1)/n, 1))
}
