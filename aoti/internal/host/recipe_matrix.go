//go:build linux && cgo

package host

import (
	"fmt"
	"maps"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/ir"
)

// errNoRecipe says that what an op is called with has no recipe.
var errNoRecipe = fmt.Errorf("%w: it has no Program", backend.ErrUnsupported)

// orNoRecipe is err, or errNoRecipe if that is nil.
func orNoRecipe(err error) error {
	if err == nil {
		return errNoRecipe
	}
	return err
}

// matrixRecipes are the products.
var matrixRecipes = map[string]recipeFunc{
	"mm": multiplied("self", "mat2"), "bmm": multiplied("self", "mat2"),
	"addmm": addedProduct("mat1", "mat2"), "baddbmm": addedProduct("batch1", "batch2"), "addmv": addedProduct("mat", "vec"),
	"mm_dtype": func(v values) (*recipe, error) {
		in, err := v.tensors("self", "mat2")
		d := outDType(v, ir.F32)
		return &recipe{what: fmt.Append(nil, "mm ", d), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{b.MatMul(b.Cast(in[0], d), b.Cast(in[1], d))}
		}}, err
	},
	"_mm_plus_mm": func(v values) (*recipe, error) {
		in, err := v.tensors("a", "b", "c", "d")
		return &recipe{what: []byte("_mm_plus_mm"), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{b.Add(b.MatMul(in[0], in[1]), b.MatMul(in[2], in[3]))}
		}}, err
	},
	"_weight_int8pack_mm": func(v values) (*recipe, error) {
		in, err := v.tensors("self", "mat2", "scales")
		return &recipe{what: []byte("_weight_int8pack_mm"), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			p := b.MatMul(b.Cast(in[0], ir.F32), b.Transpose(b.Cast(in[1], ir.F32), 0, 1))
			return []ir.Value{b.Cast(b.Mul(p, b.Cast(in[2], ir.F32)), in[0].DType())}
		}}, err
	},
	"addbmm": func(v values) (*recipe, error) {
		in, err := v.tensors("self", "batch1", "batch2")
		beta, alpha := v.float("beta", 1), v.float("alpha", 1)
		return &recipe{what: fmt.Append(nil, "addbmm ", beta, alpha), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{weighted(b, in[0], beta, b.Sum(b.MatMul(in[1], in[2]), []int{0}, false), alpha)}
		}}, err
	},
	"_addmm_activation": func(v values) (*recipe, error) {
		in, err := v.tensors("self", "mat1", "mat2")
		beta, alpha, gelu := v.float("beta", 1), v.float("alpha", 1), v.bool("use_gelu", false)
		return &recipe{what: fmt.Append(nil, "_addmm_activation ", beta, alpha, gelu), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			s := weighted(b, in[0], beta, b.MatMul(in[1], in[2]), alpha)
			if gelu {
				return b.Call(lookup("gelu"), []any{s}, ir.A("approximate", "tanh"))
			}
			return []ir.Value{b.Relu(s)}
		}}, err
	},
	"_fused_rms_norm": func(v values) (*recipe, error) {
		t, err := v.tensor("input")
		if err != nil {
			return nil, err
		}
		in := []*tensor{t}
		if w, ok := v["weight"].(*tensor); ok {
			in = append(in, w)
		}
		n := len(v.ints("normalized_shape"))
		eps := v.float("eps", 0x1p-23)
		if !v.has("eps") && dtypeOf(t) == ir.F64 {
			eps = 0x1p-52
		}
		return simple(fmt.Sprint("_fused_rms_norm ", n, " ", eps), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return rmsNorm(b, in, n, eps)
		})
	},
	"_trilinear":         trilinear,
	"_scaled_mm_amax":    scaledLargest,
	"_grouped_mm":        groupedRecipe,
	"_scaled_grouped_mm": groupedRecipe,
}

// multiplied is the product of two operands.
func multiplied(a, b string) recipeFunc {
	return func(v values) (*recipe, error) {
		in, err := v.tensors(a, b)
		return &recipe{what: []byte("mm"), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{b.MatMul(in[0], in[1])}
		}}, err
	}
}

// addedProduct is beta·self + alpha times a product.
func addedProduct(x, y string) recipeFunc {
	return func(v values) (*recipe, error) {
		in, err := v.tensors("self", x, y)
		beta, alpha := v.float("beta", 1), v.float("alpha", 1)
		return &recipe{what: fmt.Append(nil, "addmm ", beta, " ", alpha), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{weighted(b, in[0], beta, b.MatMul(in[1], in[2]), alpha)}
		}}, err
	}
}

// weighted is beta·x + alpha·y.
func weighted(b *ir.Builder, x ir.Value, beta float64, y ir.Value, alpha float64) ir.Value {
	times := func(x ir.Value, by float64) ir.Value {
		switch {
		case by == 1:
			return x
		case x.DType().IsFloat():
			return b.Call1(ir.OpMul, []any{x, b.WrappedConst(by)})
		}
		return b.Call1(ir.OpMul, []any{x, b.WrappedConst(int(by))})
	}
	if beta == 0 {
		return times(y, alpha)
	}
	return b.Call1(ir.OpAdd, []any{times(x, beta), times(y, alpha)})
}

// rmsNorm returns the norm over the last n dimensions and the factor of each row.
func rmsNorm(b *ir.Builder, in []ir.Value, n int, eps float64) []ir.Value {
	x := in[0]
	d := x.DType()
	wide := x
	if d == ir.F16 || d == ir.BF16 {
		wide = b.Cast(x, ir.F32)
	}
	var dims []int
	for i := range n {
		dims = append(dims, x.Rank()-n+i)
	}
	square := b.Call1(ir.OpMul, []any{wide, wide})
	r := b.Call1(lookup("rsqrt"), []any{b.Call1(ir.OpAdd, []any{b.Mean(square, dims, true), b.WrappedConst(eps)})})
	y := b.Call1(ir.OpMul, []any{wide, r})
	if len(in) > 1 {
		y = b.Call1(ir.OpMul, []any{y, in[1]})
	}
	return []ir.Value{b.Cast(y, d), r}
}

// trilinear is a sum over products of three tensors.
func trilinear(v values) (*recipe, error) {
	in, err := v.tensors("i1", "i2", "i3")
	what := fmt.Append(nil, "_trilinear ", v.ints("expand1"), v.ints("expand2"), v.ints("expand3"), v.ints("sumdim"))
	expand := [][]int{intsOf(v.ints("expand1")), intsOf(v.ints("expand2")), intsOf(v.ints("expand3"))}
	dims := intsOf(v.ints("sumdim"))
	return &recipe{what: what, in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		var p ir.Value
		for i, x := range in {
			for _, d := range expand[i] {
				x = b.Unsqueeze(x, d)
			}
			if i > 0 {
				x = b.Mul(p, x)
			}
			p = x
		}
		if len(dims) > 0 {
			p = b.Sum(p, dims, false)
		}
		return []ir.Value{p}
	}}, err
}

// scaledLargest also returns the largest magnitude before the result was scaled, as
// PyTorch did until it was version 2.5.
func scaledLargest(v values) (*recipe, error) {
	plain := maps.Clone(v)
	plain["out_dtype"] = ir.F32
	delete(plain, "scale_result")
	x, err := recipeIR(ir.OpScaledMM, v)
	if err != nil {
		return nil, err
	}
	y, err := recipeIR(ir.OpScaledMM, plain)
	if err != nil {
		return nil, err
	}
	n := len(x.in)
	return simple(fmt.Sprint("_scaled_mm_amax ", string(x.what)), append(x.in, y.in...), func(b *ir.Builder, in []ir.Value) []ir.Value {
		return append(x.build(b, in[:n]), b.Amax(b.Abs(y.build(b, in[n:])[0]), nil, false))
	})
}

// groupedRecipe multiplies groups of matrices. Where an operand has two dimensions,
// the groups lie side by side, and offs says where they end: rows and columns of
// other groups are taken for 0, which computes each group over the whole.
func groupedRecipe(v values) (*recipe, error) {
	in, err := v.tensors("self", "mat2")
	if err != nil {
		return nil, err
	}
	if v.has("bias") || v.has("scale_result") {
		return nil, errNoRecipe
	}
	scaled := v.has("scale_a")
	if scaled {
		scales, err := v.tensors("scale_a", "scale_b")
		if err != nil {
			return nil, err
		}
		in = append(in, scales...)
	}
	flat := [2]bool{in[0].ndim == 2, in[1].ndim == 2}
	if scaled && flat != [2]bool{true, false} {
		return nil, errNoRecipe
	}
	if flat[0] || flat[1] {
		offs, err := v.tensor("offs")
		if err != nil {
			return nil, err
		}
		in = append(in, offs)
	} else if in[0].ndim != 3 || in[1].ndim != 3 {
		return nil, fmt.Errorf("%w: products of %v and %v", ir.ErrShape, sizesOf(in[0]), sizesOf(in[1]))
	}
	d := outDType(v, dtypeOf(in[0]))
	return simple(fmt.Sprint("_grouped_mm ", scaled, d), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		x, y := in[0], in[1]
		if scaled {
			x, y = b.Cast(x, ir.F32), b.Cast(y, ir.F32)
			x = b.Mul(x, b.Reshape(in[2], x.Dim(0), 1))
			y = b.Mul(y, b.Reshape(in[3], y.Dim(0), 1, y.Dim(2)))
		}
		return []ir.Value{b.Cast(grouped(b, x, y, flat, in[len(in)-1]), d)}
	})
}

// grouped multiplies the groups.
func grouped(b *ir.Builder, x, y ir.Value, flat [2]bool, ends ir.Value) ir.Value {
	if flat == [2]bool{} {
		return b.MatMul(x, y)
	}
	groups := ends.Dim(0)
	ends = b.Reshape(b.Cast(ends, ir.I64), groups, 1)
	starts := b.Cat([]ir.Value{b.Full([]int{1, 1}, 0, ir.I64), b.Slice(ends, 0, 0, groups-1, 1)}, 0)
	// only keeps of x what belongs to the group along dim, whose size is n, with the
	// groups in front.
	only := func(x ir.Value, n, dim int) ir.Value {
		i := b.Iota(n, ir.I64)
		mine := b.Call1(ir.OpLogicalAnd, []any{b.Ge(i, starts), b.Lt(i, ends)})
		return b.Where(b.Unsqueeze(mine, 3-dim), x, num(b, 0, x))
	}
	switch flat {
	case [2]bool{true, false}: // rows of x
		return b.Sum(only(b.MatMul(x, y), x.Dim(0), 1), []int{0}, false)
	case [2]bool{false, true}: // columns of y
		return b.Sum(only(b.MatMul(x, y), y.Dim(1), 2), []int{0}, false)
	}
	return b.MatMul(only(x, x.Dim(1), 2), only(y, x.Dim(1), 1)) // both: of what is added up
}
