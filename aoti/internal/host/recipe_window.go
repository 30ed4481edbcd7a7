//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// networkRecipes are convolutions and what resamples images.
var networkRecipes = map[string]recipeFunc{
	"convolution":                   convolutionRecipe,
	"convolution_backward":          convolutionSlopes,
	"pad":                           padRecipe,
	"cat":                           catRecipe,
	"upsample_linear1d_backward":    func(v values) (*recipe, error) { return upsampleSlopes(v, 1, linearTaps) },
	"upsample_trilinear3d_backward": func(v values) (*recipe, error) { return upsampleSlopes(v, 3, linearTaps) },
	"upsample_bicubic2d_backward":   func(v values) (*recipe, error) { return upsampleSlopes(v, 2, cubicTaps) },
	"replication_pad1d_backward":    paddingSlopes, "replication_pad2d_backward": paddingSlopes, "replication_pad3d_backward": paddingSlopes,
}

// gradient records the gradients of y by some values.
func gradient(b *ir.Builder, y, by ir.Value, wrt ...ir.Value) []ir.Value {
	return graph.Grad(b, new(graph.Walker), []ir.Value{y}, []ir.Value{b.Cast(by, y.DType())}, wrt)
}

// lastStrides are those of images with their channels innermost, if some tensor of
// the list has them so and the result is of as many dimensions.
func lastStrides(ts ...*tensor) func(int, ir.Shape) []int64 {
	last := false
	for _, t := range ts {
		last = last || channelsLast(t)
	}
	return func(_ int, s ir.Shape) []int64 {
		if n := s.Rank(); !last || n != 4 && n != 5 {
			return nil
		}
		return channelsLastStrides(s.Dims())
	}
}

// convArgs are the arguments of a convolution behind its operands, as ir has them.
func convArgs(v values, n int) []any {
	list := func(name string, otherwise int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = entry(v.ints(name), i, otherwise)
		}
		return out
	}
	return []any{
		list("stride", 1), list("padding", 0), list("dilation", 1), v.bool("transposed", false), list("output_padding", 0), v.int("groups", 1),
	}
}

func convolutionRecipe(v values) (*recipe, error) {
	in, err := v.tensors("input", "weight")
	if err != nil {
		return nil, err
	}
	if t, ok := v["bias"].(*tensor); ok {
		in = append(in, t)
	}
	args := convArgs(v, int(in[0].ndim)-2)
	return &recipe{what: fmt.Append(nil, "convolution ", args), in: in, strides: lastStrides(in[:2]...), build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		var bias any
		if len(in) > 2 {
			bias = in[2]
		}
		return b.Call(ir.OpConvolution, append([]any{in[0], in[1], bias}, args...))
	}}, nil
}

// convolutionSlopes is the gradient of a convolution by its input, weights and bias,
// as far as they are wanted.
func convolutionSlopes(v values) (*recipe, error) {
	in, err := v.tensors("input", "weight", "grad_output")
	if err != nil {
		return nil, err
	}
	wanted := v.ints("output_mask")
	if len(wanted) != 3 {
		return nil, fmt.Errorf("%w: a mask %v of three gradients", ir.ErrArg, wanted)
	}
	args := convArgs(v, int(in[0].ndim)-2)
	r := &recipe{what: fmt.Append(nil, "convolution_backward ", wanted, args), in: in, strides: lastStrides(in[:2]...), places: []int{}}
	for i, w := range wanted {
		if w != 0 {
			r.places = append(r.places, i)
		}
	}
	r.build = func(b *ir.Builder, in []ir.Value) []ir.Value {
		y := b.Call1(ir.OpConvolution, append([]any{in[0], in[1], nil}, args...))
		g := b.ExpandAs(in[2], y)
		var wrt []ir.Value
		for i, w := range wanted[:2] {
			if w != 0 {
				wrt = append(wrt, in[i])
			}
		}
		var outs []ir.Value
		if len(wrt) > 0 {
			outs = gradient(b, y, g, wrt...)
		}
		if wanted[2] != 0 {
			dims := []int{0}
			for d := 2; d < g.Rank(); d++ {
				dims = append(dims, d)
			}
			outs = append(outs, b.Sum(g, dims, false))
		}
		return outs
	}
	return r, nil
}

func padRecipe(v values) (*recipe, error) {
	r, err := recipeIR(lookup("pad"), v)
	if err == nil && channelsLast(r.in[0]) {
		r.strides = lastStrides(r.in[0])
	}
	return r, err
}

// catRecipe joins tensors as the function of the op does.
func catRecipe(v values) (*recipe, error) {
	list := catOperands(v)
	r, err := recipeIR(ir.OpCat, values{"tensors": list, "dim": v.int("dim", 0)})
	if err == nil && channelsLastAll(list) {
		r.strides = lastStrides(list...)
	}
	return r, err
}

// upsampleSlopes is the gradient of an upsampling by its input: the gradient of the
// result times a matrix for each dimension, which says how much of each pixel went
// into each of the result.
func upsampleSlopes(v values, n int, tapsOf func(s scaling, i int) []tap) (*recipe, error) {
	t, err := v.tensor("grad_output")
	if err != nil {
		return nil, err
	}
	size, to := intsOf(sizesOf(t)), intsOf(v.ints("input_size"))
	if len(size) != n+2 || len(to) != n+2 || size[0] != to[0] || size[1] != to[1] {
		return nil, fmt.Errorf("%w: a gradient %v of %v", ir.ErrShape, size, to)
	}
	factors := [3]float64{v.float("scales_d", 0), v.float("scales_h", 0), v.float("scales_w", v.float("scales", 0))}
	r := &recipe{what: fmt.Append(nil, "upsample_backward ", n, to, factors, v.bool("align_corners", false)), in: []*tensor{t}, strides: lastStrides(t)}
	for i := range n {
		from, in := size[2+i], to[2+i]
		lies := scaling{in, from, v.bool("align_corners", false), factors[3-n+i]}
		r.tables = append(r.tables, floatTable([]int{from, in}, func() []float64 {
			m := make([]float64, from*in)
			for o := range from {
				for _, a := range tapsOf(lies, o) {
					m[o*in+a.at] += a.by
				}
			}
			return m
		}))
	}
	r.build = func(b *ir.Builder, in []ir.Value) []ir.Value {
		d := wide(in[0].DType())
		x := b.Cast(in[0], d)
		for i, m := range in[1:] {
			x = b.Transpose(b.MatMul(b.Transpose(x, 2+i, -1), b.Cast(m, d)), 2+i, -1)
		}
		return []ir.Value{b.Cast(x, in[0].DType())}
	}
	return r, nil
}

// paddingSlopes is the gradient of padding by the pixels at the edges.
func paddingSlopes(v values) (*recipe, error) {
	in, err := v.tensors("grad_output", "self")
	if err != nil {
		return nil, err
	}
	pad := intsOf(v.ints("padding"))
	return simple(fmt.Sprint("replication_pad_backward ", pad), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		x := in[1]
		return gradient(b, do(b, "pad", x, pad, "replicate"), in[0], x)
	})
}
