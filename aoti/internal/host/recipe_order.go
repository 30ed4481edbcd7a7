//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// orderRecipes are the ops about the order of elements, and those that go along a
// dimension.
var orderRecipes = map[string]recipeFunc{
	"sort": func(v values) (*recipe, error) {
		r, err := recipeIR(lookup("sort"), v)
		if err == nil {
			r.strides = likeStrides(r.in[0])
		}
		return r, err
	},
	"topk":      func(v values) (*recipe, error) { return recipeIR(lookup("topk"), v) },
	"kthvalue":  kthRecipe,
	"mode":      modeRecipe,
	"median":    func(v values) (*recipe, error) { return medianRecipe(v, false) },
	"nanmedian": func(v values) (*recipe, error) { return medianRecipe(v, true) },
	"cummin":    cumMinRecipe,
	"logcumsumexp": func(v values) (*recipe, error) {
		return along(v, "logcumsumexp", 0, func(b *ir.Builder, x ir.Value, dim int) []ir.Value {
			d := x.DType()
			x = b.Cast(x, wide(d))
			n := x.Dim(dim)
			least := num(b, math.Inf(-1), x)
			for step := 1; step < n; step *= 2 { // each sum takes in that of as many before
				pad := make([]int, 2*(x.Rank()-dim))
				pad[len(pad)-2] = step
				x = do(b, "logaddexp", x, b.PadConst(b.Slice(x, dim, 0, n-step, 1), pad, least))
			}
			return []ir.Value{b.Cast(x, d)}
		})
	},
}

// along is a recipe on self along a dimension. Scalars count as having one.
func along(v values, what string, otherwise int, build func(b *ir.Builder, x ir.Value, dim int) []ir.Value) (*recipe, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	dim, err := dimension(v.int("dim", otherwise), int(t.ndim))
	if err != nil {
		return nil, err
	}
	return simple(fmt.Sprint(what, " ", dim), []*tensor{t}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		if in[0].Rank() > 0 {
			return build(b, in[0], dim)
		}
		outs := build(b, b.Reshape(in[0], 1), 0)
		for i := range outs {
			outs[i] = b.Reshape(outs[i])
		}
		return outs
	})
}

// picks reads one element of each row along dim, at the places in at, which has 1
// there; keep says whether that dimension stays.
func picks(b *ir.Builder, dim int, keep bool, at ir.Value, from ...ir.Value) []ir.Value {
	out := make([]ir.Value, len(from))
	for i, x := range from {
		if out[i] = b.Gather(x, dim, at); !keep {
			out[i] = do(b, "squeeze", out[i], []int{dim})
		}
	}
	return out
}

// oneOf are the dimensions of x with 1 in the place of dim.
func oneOf(x ir.Value, dim int) []int {
	dims := x.Shape().Dims()
	dims[dim] = 1
	return dims
}

func kthRecipe(v values) (*recipe, error) {
	k, keep := v.int("k", 1), v.bool("keepdim", false)
	return along(v, fmt.Sprint("kthvalue ", k, keep), -1, func(b *ir.Builder, x ir.Value, dim int) []ir.Value {
		if k < 1 || k > x.Dim(dim) {
			panic(ir.NewOpError("kthvalue", ir.ErrArg, []ir.Value{x}, "there is no element %d", k))
		}
		vals, at := b.Sort(x, dim, false)
		return picks(b, dim, keep, b.Full(oneOf(x, dim), k-1, ir.I64), vals, at)
	})
}

// medianRecipe is the lower median. A NaN is it, unless NaN do not count.
func medianRecipe(v values, skip bool) (*recipe, error) {
	whole, keep := !v.has("dim"), v.bool("keepdim", false)
	if t, err := v.tensor("self"); err != nil || t.numel == 0 {
		return nil, orNoRecipe(err)
	}
	if whole {
		v = values{"self": v["self"]}
	}
	return along(v, fmt.Sprint("median ", whole, keep, skip), 0, func(b *ir.Builder, x ir.Value, dim int) []ir.Value {
		if whole {
			x, dim = flat(b, x), 0
		}
		vals, at := b.Sort(x, dim, false)
		k := b.Full(oneOf(x, dim), (x.Dim(dim)-1)/2, ir.I64)
		if x.DType().IsFloat() {
			nan := b.Sum(b.Cast(do(b, "isnan", x), ir.I64), []int{dim}, true)
			n, one := b.Const(x.Dim(dim), ir.I64), b.Const(1, ir.I64)
			if skip {
				k = b.Maximum(do(b, "trunc_divide", b.Sub(b.Sub(n, nan), one), b.Const(2, ir.I64)), b.Const(0, ir.I64))
			} else {
				k = b.Where(b.Gt(nan, b.Const(0, ir.I64)), b.Sub(n, nan), k) // the first NaN
			}
		}
		outs := picks(b, dim, keep, k, vals, at)
		if whole {
			return outs[:1]
		}
		return outs
	})
}

// modeRecipe is the most frequent element, the least of those, where it comes last.
func modeRecipe(v values) (*recipe, error) {
	keep := v.bool("keepdim", false)
	if t, err := v.tensor("self"); err != nil || t.numel == 0 {
		return nil, orNoRecipe(err)
	}
	return along(v, fmt.Sprint("mode ", keep), -1, func(b *ir.Builder, x ir.Value, dim int) []ir.Value {
		vals, at := b.Sort(x, dim, false)
		n := x.Dim(dim)
		dims := oneOf(x, dim)
		dims[dim] = n
		place := make([]int, x.Rank())
		for d := range place {
			place[d] = 1
		}
		place[dim] = n
		i := b.Expand(b.Reshape(b.Iota(n, ir.I64), place...), dims...)
		// A run of equal elements begins where the one before is another.
		begins := b.Full(oneOf(x, dim), 1, ir.Bool)
		if n > 1 {
			begins = b.Cat([]ir.Value{begins, b.Ne(b.Slice(vals, dim, 1, n, 1), b.Slice(vals, dim, 0, n-1, 1))}, dim)
		}
		start := b.Call(ir.OpCummax, []any{b.Where(begins, i, b.Const(0, ir.I64)), dim})[0]
		longest := b.Call1(ir.OpArgmax, []any{b.Sub(i, start), dim, true})
		return picks(b, dim, keep, longest, vals, at)
	})
}

// cumMinRecipe is the least element so far and where it was last: the largest of
// the order turned around.
func cumMinRecipe(v values) (*recipe, error) {
	return along(v, "cummin", 0, func(b *ir.Builder, x ir.Value, dim int) []ir.Value {
		turn := b.Neg
		if !x.DType().IsFloat() {
			turn = func(x ir.Value) ir.Value { return do(b, "bitwise_not", x) }
		}
		outs := b.Call(ir.OpCummax, []any{turn(x), dim})
		return []ir.Value{turn(outs[0]), outs[1]}
	})
}
