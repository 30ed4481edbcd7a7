//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// bagRecipes are the ops on bags of embeddings. Bags of which the largest is taken
// have none.
var bagRecipes = map[string]recipeFunc{
	"_embedding_bag":                             bagRecipe,
	"_embedding_bag_dense_backward":              bagSlopes,
	"_embedding_bag_per_sample_weights_backward": bagWeightSlopes,
}

// counted is a vector of n zeros with the elements of x added at their places.
func counted(b *ir.Builder, n int, at, x ir.Value) ir.Value {
	dims := x.Shape().Dims()
	dims[0] = n
	return b.IndexAdd(b.Full(dims, 0, x.DType()), 0, at, x)
}

func bagRecipe(v values) (*recipe, error) {
	in, err := v.tensors("weight", "indices", "offsets")
	if err != nil {
		return nil, err
	}
	mode, padding := v.int("mode", bagSum), v.int("padding_idx", -1)
	n := int(in[2].numel)
	if v.bool("include_last_offset", false) {
		n--
	}
	if mode == bagMax || n < 1 || in[1].numel == 0 {
		return nil, errNoRecipe
	}
	scales, scaled := v["per_sample_weights"].(*tensor)
	if scaled {
		in = append(in, scales)
	}
	return simple(fmt.Sprint("_embedding_bag ", mode, padding, n, scaled), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		d, at := wide(in[0].DType()), b.Cast(in[1], ir.I64)
		count := at.Dim(0)
		one := b.Const(1, ir.I64)
		bag := b.Sub(behind(b, b.Slice(b.Cast(in[2], ir.I64), 0, 0, n, 1), b.Iota(count, ir.I64)), one)
		counts := b.Expand(one, count)
		if padding >= 0 {
			counts = b.Cast(b.Ne(at, b.Const(padding, ir.I64)), ir.I64)
		}
		if in[2].Dim(0) > n { // what is behind the last bag belongs to none
			last := b.Slice(b.Cast(in[2], ir.I64), 0, n, n+1, 1)
			counts = b.Mul(counts, b.Cast(b.Lt(b.Iota(count, ir.I64), last), ir.I64))
		}
		rows := b.Cast(b.IndexSelect(in[0], 0, at), d)
		if scaled {
			rows = b.Mul(rows, b.Cast(b.Unsqueeze(in[3], 1), d))
		}
		rows = b.Where(b.Unsqueeze(b.Ne(counts, b.Const(0, ir.I64)), 1), rows, num(b, 0, rows))
		out, sizes := counted(b, n, bag, rows), counted(b, n, bag, counts)
		if mode == bagMean {
			out = b.Div(out, b.Cast(b.Unsqueeze(b.Maximum(sizes, one), 1), d))
		}
		i := in[1].DType()
		return []ir.Value{b.Cast(out, in[0].DType()), b.Cast(bag, i), b.Cast(sizes, i), b.Full([]int{n}, 0, i)}
	})
}

func bagSlopes(v values) (*recipe, error) {
	in, err := v.tensors("grad", "indices", "offset2bag", "bag_size")
	if err != nil {
		return nil, err
	}
	mode, padding, rows := v.int("mode", bagSum), v.int("padding_idx", -1), v.int("num_weights", 0)
	if mode == bagMax || in[1].numel != in[2].numel {
		return nil, errNoRecipe
	}
	often := v.bool("scale_grad_by_freq", false)
	scales, scaled := v["per_sample_weights"].(*tensor)
	if scaled {
		in = append(in, scales)
	}
	return simple(fmt.Sprint("_embedding_bag_dense_backward ", mode, padding, rows, often, scaled), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		d, at, bag := wide(in[0].DType()), b.Cast(in[1], ir.I64), b.Cast(in[2], ir.I64)
		factor := b.Full([]int{at.Dim(0)}, 1, d)
		if scaled {
			factor = b.Cast(in[4], d)
		}
		if often {
			count := counted(b, rows, at, b.Full([]int{at.Dim(0)}, 1, d))
			factor = b.Div(factor, b.IndexSelect(count, 0, at))
		}
		if mode == bagMean {
			factor = b.Div(factor, b.IndexSelect(b.Cast(in[3], d), 0, bag))
		}
		if padding >= 0 {
			factor = b.Where(b.Eq(at, b.Const(padding, ir.I64)), num(b, 0, factor), factor)
		}
		g := b.Mul(b.IndexSelect(b.Cast(in[0], d), 0, bag), b.Unsqueeze(factor, 1))
		return []ir.Value{b.Cast(counted(b, rows, at, g), in[0].DType())}
	})
}

func bagWeightSlopes(v values) (*recipe, error) {
	in, err := v.tensors("grad", "weight", "indices", "offset2bag")
	if err != nil {
		return nil, err
	}
	if in[2].numel != in[3].numel {
		return nil, errNoRecipe
	}
	padding := v.int("padding_idx", -1)
	return simple(fmt.Sprint("_embedding_bag_per_sample_weights_backward ", padding), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		d, at := wide(in[0].DType()), b.Cast(in[2], ir.I64)
		g := b.IndexSelect(b.Cast(in[0], d), 0, b.Cast(in[3], ir.I64))
		out := b.Sum(b.Mul(g, b.IndexSelect(b.Cast(in[1], d), 0, at)), []int{1}, false)
		if padding >= 0 {
			out = b.Where(b.Eq(at, b.Const(padding, ir.I64)), num(b, 0, out), out)
		}
		return []ir.Value{b.Cast(out, in[0].DType())}
	})
}
