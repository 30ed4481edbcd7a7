package torchexport

import (
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// matrixOps are products, factorisations and arrangements that ATen makes of others.
var matrixOps = map[string]func(c *call) []any{
	"aten.diag_embed": func(c *call) []any {
		return one(c.diagEmbed(c.value("self"), c.intOr("offset", 0), c.intOr("dim1", -2), c.intOr("dim2", -1)))
	},
	"aten.diag": func(c *call) []any {
		x, offset := c.value("self"), c.intOr("diagonal", 0)
		if x.Rank() == 1 {
			return one(c.diagEmbed(x, offset, 0, 1))
		}
		return one(c.do("diagonal", x, offset, 0, 1))
	},
	"aten.diagflat": func(c *call) []any { return one(c.diagEmbed(c.value("self").Reshape(-1), c.intOr("offset", 0), 0, 1)) },
	"aten.fliplr":   func(c *call) []any { return one(c.do("flip", c.value("self"), []int{1})) },
	"aten.flipud":   func(c *call) []any { return one(c.do("flip", c.value("self"), []int{0})) },
	"aten.column_stack": func(c *call) []any {
		return one(loris.Cat(reshapeAll(c.tensors("tensors"), func(dims []int) []int {
			if len(dims) < 2 {
				return []int{-1, 1}
			}
			return dims
		}), loris.Dim(1)))
	},
	"aten.hstack": func(c *call) []any {
		ts := reshapeAll(c.tensors("tensors"), func(dims []int) []int { return padDims(dims, 1) })
		return one(loris.Cat(ts, loris.Dim(min(ts[0].Rank()-1, 1))))
	},
	"aten.vstack": func(c *call) []any {
		return one(loris.Cat(reshapeAll(c.tensors("tensors"), func(dims []int) []int { return padDims(dims, 2) }), loris.Dim(0)))
	},
	"aten.dstack":            func(c *call) []any { return one(loris.Cat(reshapeAll(c.tensors("tensors"), atLeast3D), loris.Dim(2))) },
	"aten.broadcast_tensors": broadcastTensors,
	"aten.sum_to_size":       func(c *call) []any { return one(sumToSize(c)) },
	"aten.cartesian_prod":    cartesianProduct,
	"aten.combinations":      combinations,
	"aten.kron":              func(c *call) []any { return one(kron(c.value("self"), c.value("other"))) },
	"aten.cross":             cross,
	"aten.vdot":              func(c *call) []any { return one(c.do("dot", c.do("conj", c.value("self")), c.value("other"))) },
	"aten.chain_matmul":      func(c *call) []any { return one(c.do("linalg_multi_dot", c.tensors("matrices"))) },
	"aten.pinverse": func(c *call) []any {
		return one(c.all("linalg_pinv", []any{c.value("self")}, ir.A("rtol", c.floatOr("rcond", 1e-15)))[0])
	},
	"aten.logdet": func(c *call) []any {
		return one(c.do("log", c.do("linalg_det", c.value("self"))))
	},
	"aten.svd": svd,
	"aten.lu_solve": func(c *call) []any {
		return one(c.do("linalg_lu_solve", c.value("LU_data"), c.value("LU_pivots"), c.value("self")))
	},
	"aten._lu_with_info": func(c *call) []any {
		return many(c.all("linalg_lu_factor_ex", []any{c.value("self")}, ir.A("pivot", c.boolOr("pivot", true)))...)
	},
	"aten.argwhere": func(c *call) []any { return one(c.nonzero(c.value("self"))) },
	"aten.put":      put,
}

// reshapeAll returns tensors of the dimensions that are made of their own.
func reshapeAll(ts []*loris.Tensor, dims func(have []int) []int) []*loris.Tensor {
	out := make([]*loris.Tensor, len(ts))
	for i, t := range ts {
		out[i] = t.Reshape(dims(t.Dims())...)
	}
	return out
}

// diagEmbed puts the last dimension on the diagonal of a matrix of dimensions d1 and d2 of the result.
func (c *call) diagEmbed(x *loris.Tensor, offset, d1, d2 int) *loris.Tensor {
	rank := x.Rank() + 1
	d1, d2 = c.dim(d1, rank), c.dim(d2, rank)
	if x.Rank() == 0 || d1 == d2 {
		panic(misuse(c.n.target, "dimensions %d and %d of %v", d1, d2, x.Shape()))
	}
	size := x.Dim(-1) + max(offset, -offset)
	dims := x.Dims()[:x.Rank()-1]
	dims = slices.Insert(dims, min(d1, d2), size)
	dims = slices.Insert(dims, max(d1, d2), size)
	return c.do("diagonal_scatter", c.do("full", dims, 0, x.DType()), x, offset, d1, d2)
}

func broadcastTensors(c *call) []any {
	ts := c.tensors("tensors")
	var dims []int
	for _, t := range ts {
		dims = commonDims(dims, t.Dims())
	}
	out := make([]*loris.Tensor, len(ts))
	for i, t := range ts {
		out[i] = t.Expand(dims...)
	}
	return []any{many(out...)}
}

// sumToSize sums over what broadcasting to the tensor's dimensions would repeat.
func sumToSize(c *call) *loris.Tensor {
	x, size := c.value("self"), c.ints("size")
	lead := x.Rank() - len(size)
	var over []int
	for i, n := range x.Dims() {
		if i < lead || size[i-lead] == 1 && n != 1 {
			over = append(over, i)
		}
	}
	if over == nil {
		return x
	}
	return c.do("sum", x, over, true).Reshape(size...)
}

// grid returns each tensor's elements along a dimension of their own of the common grid.
func grid(ts []*loris.Tensor) []*loris.Tensor {
	dims := make([]int, len(ts))
	for i, t := range ts {
		dims[i] = t.Numel()
	}
	out := make([]*loris.Tensor, len(ts))
	for i, t := range ts {
		own := ones(len(ts))
		own[i] = dims[i]
		out[i] = t.Reshape(own...).Expand(dims...).Reshape(-1)
	}
	return out
}

func cartesianProduct(c *call) []any {
	ts := c.tensors("tensors")
	if len(ts) == 1 {
		return one(ts[0])
	}
	return one(loris.Stack(grid(ts), loris.Dim(1)))
}

// combinations are the choices of r of the elements, in the order of their places.
func combinations(c *call) []any {
	x, r := c.value("self"), c.intOr("r", 2)
	n, again := x.Numel(), c.boolOr("with_replacement", false)
	if r < 0 || r > 8 {
		panic(misuse(c.n.target, "choices of %d elements are not supported", r))
	}
	if r == 0 {
		return one(c.do("full", []int{0}, 0, x.DType()))
	}
	var places []int64
	var choose func(from int, taken []int64)
	choose = func(from int, taken []int64) {
		if len(taken) == r {
			if len(places) > 1<<26 {
				panic(misuse(c.n.target, "too many choices of %d of %d elements", r, n))
			}
			places = append(places, taken...)
			return
		}
		for i := from; i < n; i++ {
			next := i + 1
			if again {
				next = i
			}
			choose(next, append(taken, int64(i)))
		}
	}
	choose(0, make([]int64, 0, r))
	count := len(places) / r
	return one(x.IndexSelect(0, c.maker().FromSlice(places, len(places))).Reshape(count, r))
}

// kron is the product of each element of a with all of b.
func kron(a, b *loris.Tensor) *loris.Tensor {
	rank := max(a.Rank(), b.Rank())
	da, db := padDims(a.Dims(), rank), padDims(b.Dims(), rank)
	ra, rb, out := make([]int, 0, 2*rank), make([]int, 0, 2*rank), make([]int, rank)
	for i := range rank {
		ra, rb, out[i] = append(ra, da[i], 1), append(rb, 1, db[i]), da[i]*db[i]
	}
	return a.Reshape(ra...).Mul(b.Reshape(rb...)).Reshape(out...)
}

// cross is linalg_cross along the first dimension of size 3 unless one is given.
func cross(c *call) []any {
	a, b := c.value("self"), c.value("other")
	dim, ok := 0, false
	if _, given := c.arg("dim"); given {
		dim, ok = c.int("dim"), true
	} else {
		dim = slices.Index(commonDims(a.Dims(), b.Dims()), 3)
		ok = dim >= 0
	}
	if !ok {
		panic(misuse(c.n.target, "no dimension of %v has size 3", a.Shape()))
	}
	return one(c.all("linalg_cross", []any{a, b}, ir.A("dim", dim))[0])
}

// svd returns V where linalg_svd has its adjoint, and zeros in place of vectors that are not asked for.
func svd(c *call) []any {
	x, vectors := c.value("self"), c.boolOr("compute_uv", true)
	outs := c.all("linalg_svd", []any{x, !vectors || !c.boolOr("some", true)})
	u, s, v := outs[0], outs[1], c.do("conj", outs[2]).Transpose(-2, -1)
	if !vectors {
		u, v = u.ZerosLike(), v.ZerosLike()
	}
	return many(u, s, v)
}

// put writes elements by their places in the flat tensor.
func put(c *call) []any {
	x := c.value("self")
	flat := c.do("index_put", x.Reshape(-1), []*loris.Tensor{c.value("index").Reshape(-1)}, c.value("source").Reshape(-1), c.boolOr("accumulate", false))
	return one(flat.Reshape(x.Dims()...))
}
