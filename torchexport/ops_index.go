package torchexport

import (
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// indexOps read and write elements by their places.
var indexOps = map[string]func(c *call) []any{
	"aten.index":                func(c *call) []any { return one(c.indexed()) },
	"aten.index_put":            func(c *call) []any { return one(c.indexPut()) },
	"aten.scatter.value":        scatterValue("scatter"),
	"aten.scatter.reduce":       scatterReduce,
	"aten.scatter.value_reduce": unsupportedArgs("a reduction of one number"),
	"aten.index_fill":           indexFill,
	"aten.index_add":            indexAdd,
	"aten._unsafe_masked_index": maskedIndex,
	"aten.repeat_interleave.self_int": func(c *call) []any {
		if _, ok := c.arg("dim"); !ok {
			return one(c.do("repeat_interleave", c.value("self").Reshape(-1), c.int("repeats"), 0))
		}
		return one(c.do("repeat_interleave", c.value("self"), c.int("repeats"), c.int("dim")))
	},
	"aten.embedding": func(c *call) []any {
		return one(c.do("embedding", c.value("weight"), c.value("indices"), c.intOr("padding_idx", -1)))
	},
	"aten.sort": func(c *call) []any {
		return many(c.all("sort", []any{c.value("self"), c.intOr("dim", -1), c.boolOr("descending", false)})...)
	},
	"aten.argsort": func(c *call) []any {
		return one(c.do("argsort", c.value("self"), c.intOr("dim", -1), c.boolOr("descending", false)))
	},
	"aten.one_hot": func(c *call) []any { return one(c.do("one_hot", c.value("self"), c.int("num_classes"))) },
	"aten.roll":    roll,
	"aten.cat":     func(c *call) []any { return one(c.do("cat", c.joined(), c.intOr("dim", 0))) },
	"aten.stack":   func(c *call) []any { return one(c.do("stack", c.joined(), c.intOr("dim", 0))) },
	"aten.masked_fill": func(c *call) []any {
		return one(c.do("masked_fill", c.value("self"), c.value("mask"), c.operand("value")))
	},
	"aten.searchsorted.Scalar": unsupportedArgs("a number to search for"),
	"aten.take_along_dim": func(c *call) []any {
		if _, ok := c.arg("dim"); !ok {
			return one(c.do("take_along_dim", c.value("self"), c.value("indices")))
		}
		return one(c.do("take_along_dim", c.value("self"), c.value("indices"), c.int("dim")))
	},
}

// indices returns the list of index tensors, and how many dimensions come before the first; the
// others have all elements.
func (c *call) indices() (list []*loris.Tensor, at []int) {
	v, _ := c.arg("indices")
	items, ok := v.([]any)
	if !ok {
		panic(c.wrong("indices", "a list of tensors", v))
	}
	for i, item := range items {
		if item == nil {
			continue
		}
		x, ok := item.(*tensor)
		if !ok {
			panic(c.wrong("indices", "a list of tensors", v))
		}
		list, at = append(list, x.value()), append(at, i)
	}
	if list == nil {
		panic(misuse(c.n.target, "no index is given"))
	}
	return list, at
}

// front moves the dimensions that are indexed to the front and returns the permutation.
func front(rank int, at []int) []int {
	perm := append([]int(nil), at...)
	for i := range rank {
		indexed := false
		for _, a := range at {
			indexed = indexed || a == i
		}
		if !indexed {
			perm = append(perm, i)
		}
	}
	return perm
}

func inverse(perm []int) []int {
	back := make([]int, len(perm))
	for i, p := range perm {
		back[p] = i
	}
	return back
}

// isFront reports whether the indexed dimensions are the first ones.
func isFront(at []int) bool { return at[len(at)-1] == len(at)-1 }

// adjacent reports whether the indexed dimensions lie side by side, so that the result has the
// index's dimensions in their place; otherwise it has them in front.
func adjacent(at []int) bool { return at[len(at)-1]-at[0] == len(at)-1 }

// expandMask replaces an index of truth values by the places that are true, of which there is one
// index for each of the mask's dimensions.
func (c *call) expandMasks(list []*loris.Tensor, at []int) ([]*loris.Tensor, []int) {
	var ts []*loris.Tensor
	var where []int
	shift := 0
	for i, t := range list {
		if t.DType() != ir.Bool && t.DType() != ir.U8 {
			ts, where = append(ts, t), append(where, at[i]+shift)
			continue
		}
		places := c.nonzero(t)
		for j, p := range places.Unbind(loris.Dim(1)) {
			ts, where = append(ts, p), append(where, at[i]+shift+j)
		}
		shift += t.Rank() - 1
	}
	return ts, where
}

func (c *call) indexed() *loris.Tensor {
	x := c.value("self")
	list, at := c.indices()
	list, at = c.expandMasks(list, at)
	if isFront(at) {
		return c.do("index", x, list)
	}
	if len(list) == 1 {
		return c.selectAlong(x, at[0], list[0])
	}
	rank := x.Rank()
	out := c.do("index", x.Permute(front(rank, at)...), list)
	if !adjacent(at) {
		return out
	}
	// The index's dimensions go behind those that came before them.
	n := out.Rank() - (rank - len(at))
	perm := make([]int, 0, out.Rank())
	for i := range at[0] {
		perm = append(perm, n+i)
	}
	for i := range n {
		perm = append(perm, i)
	}
	for i := n + at[0]; i < out.Rank(); i++ {
		perm = append(perm, i)
	}
	return out.Permute(perm...)
}

// selectAlong indexes one dimension, which need not become the first for that.
func (c *call) selectAlong(x *loris.Tensor, dim int, index *loris.Tensor) *loris.Tensor {
	at := castTo(index, ir.I64).Reshape(-1)
	at = loris.Where(at.Lt(0), at.Add(x.Dim(dim)), at)
	dims := slices.Concat(x.Dims()[:dim], index.Dims(), x.Dims()[dim+1:])
	return x.IndexSelect(dim, at).Reshape(dims...)
}

func (c *call) indexPut() *loris.Tensor {
	x, values, accumulate := c.value("self"), c.value("values"), c.boolOr("accumulate", false)
	values = castTo(values, x.DType())
	list, at := c.indices()
	if len(list) == 1 && at[0] == 0 && list[0].DType() == ir.Bool && values.Numel() == 1 && !accumulate {
		mask := list[0]
		dims := append(mask.Dims(), ones(x.Rank()-mask.Rank())...)
		return loris.Where(mask.Reshape(dims...), values.Reshape(ones(x.Rank())...), x)
	}
	list, at = c.expandMasks(list, at)
	if isFront(at) {
		return c.do("index_put", x, list, values, accumulate)
	}
	perm := front(x.Rank(), at)
	if adjacent(at) {
		values = c.valuesInFront(x, values, list, at)
	}
	return c.do("index_put", x.Permute(perm...), list, values, accumulate).Permute(inverse(perm)...)
}

// valuesInFront moves the index's dimensions of values to the front, as index_put of a permuted tensor
// takes them.
func (c *call) valuesInFront(x, values *loris.Tensor, list []*loris.Tensor, at []int) *loris.Tensor {
	n := 0 // dimensions of the index
	for _, t := range list {
		n = max(n, t.Rank())
	}
	rank := n + x.Rank() - len(at)
	if values.Rank() > rank {
		panic(misuse(c.n.target, "values %v for an index of %d dimensions of %v", values.Shape(), n, x.Shape()))
	}
	values = values.Reshape(append(ones(rank-values.Rank()), values.Dims()...)...)
	perm := make([]int, 0, rank)
	for i := range n {
		perm = append(perm, at[0]+i)
	}
	for i := range rank {
		if i < at[0] || i >= at[0]+n {
			perm = append(perm, i)
		}
	}
	return values.Permute(perm...)
}

func ones(n int) []int {
	out := make([]int, max(n, 0))
	for i := range out {
		out[i] = 1
	}
	return out
}

func scatterValue(op string) func(c *call) []any {
	return func(c *call) []any {
		x, index := c.value("self"), c.value("index")
		src := c.filledLike(x, index.Dims(), c.operand("value"))
		return one(c.do(op, x, c.int("dim"), index, src))
	}
}

// filledLike returns a tensor of x's dtype of one number.
func (c *call) filledLike(x *loris.Tensor, dims []int, v any) *loris.Tensor {
	if t, ok := v.(*loris.Tensor); ok {
		return castTo(t, x.DType()).Expand(dims...)
	}
	return c.do("full", dims, numberFor(v, x.DType()), x.DType())
}

func scatterReduce(c *call) []any {
	op := map[string]string{"add": "sum", "multiply": "prod"}[c.stringOr("reduce", "")]
	if op == "" {
		panic(misuse(c.n.target, "the reduction %q is not known", c.stringOr("reduce", "")))
	}
	return one(c.do("scatter_reduce", c.value("self"), c.int("dim"), c.value("index"), c.value("src"), op))
}

func indexFill(c *call) []any {
	x, index := c.value("self"), c.value("index")
	dims := x.Dims()
	dim := c.dim(c.int("dim"), len(dims))
	if len(dims) == 0 {
		return one(c.filledLike(x, dims, c.operand("value")))
	}
	dims[dim] = index.Numel()
	return one(c.do("index_copy", x, dim, index.Reshape(-1), c.filledLike(x, dims, c.operand("value"))))
}

func indexAdd(c *call) []any {
	source := c.value("source")
	if alpha, ok := c.alpha(); ok {
		source = c.do("mul", source, alpha)
	}
	return one(c.do("index_add", c.value("self"), c.int("dim"), c.value("index"), source))
}

// joined returns the tensors of a list without empty ones of rank 1 beside others, which PyTorch's cat
// ignores.
func (c *call) joined() []*loris.Tensor {
	all := c.tensors("tensors")
	if !slices.ContainsFunc(all, func(t *loris.Tensor) bool { return t.Rank() != 1 }) {
		return all
	}
	return slices.DeleteFunc(all, func(t *loris.Tensor) bool { return t.Rank() == 1 && t.Numel() == 0 })
}

func roll(c *call) []any {
	x, shifts, dims := c.value("self"), c.ints("shifts"), c.intsOr("dims", nil)
	if len(dims) == 0 {
		return one(c.do("roll", x.Reshape(-1), shifts, []int{0}).Reshape(x.Dims()...))
	}
	return one(c.do("roll", x, shifts, dims))
}

// embeddingRenorm scales the rows of a table that the indices name to a norm of at most max_norm.
func embeddingRenorm(c *call) []any {
	x := c.tensor("self")
	table := x.value()
	index := c.value("indices").Reshape(-1)
	used := c.do("index_put", c.do("full", []int{table.Dim(0), 1}, 0, ir.Bool), []*loris.Tensor{index}, c.do("full", []int{1}, 1, ir.Bool), false)
	c.assign(x, c.renormed(table, c.floatOr("norm_type", 2), 0, c.floatOr("max_norm", 1), used))
	return []any{x}
}

// maskedIndex is index in which places may lie outside where the mask is false; fill stands there.
func maskedIndex(c *call) []any {
	x := c.value("self")
	list, at := c.indices()
	for i, t := range list {
		list[i] = c.do("clamp", t, 0, max(x.Dim(at[i])-1, 0))
	}
	with := *c
	items := make([]any, at[len(at)-1]+1)
	for i, t := range list {
		items[at[i]] = newTensor(t)
	}
	with.args = []argument{{"self", newTensor(x)}, {"indices", items}}
	return one(c.do("where", c.value("mask"), with.indexed(), c.operand("fill")))
}
