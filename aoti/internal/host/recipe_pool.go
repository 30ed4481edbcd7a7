//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// windowRecipes are the ops that pool images, and their gradients.
var windowRecipes = map[string]recipeFunc{
	"adaptive_avg_pool2d": pooled("adaptive_avg_pool2d"), "_adaptive_avg_pool2d": pooled("adaptive_avg_pool2d"),
	"adaptive_avg_pool3d": pooled("adaptive_avg_pool3d"), "_adaptive_avg_pool3d": pooled("adaptive_avg_pool3d"),
	"avg_pool2d": pooled("avg_pool2d"), "avg_pool3d": pooled("avg_pool3d"),
	"max_pool2d_with_indices": pooled("max_pool2d_with_indices"), "max_pool3d_with_indices": pooled("max_pool3d_with_indices"),
	"adaptive_max_pool2d":   func(v values) (*recipe, error) { return adaptiveMaxRecipe(v, 2) },
	"adaptive_max_pool3d":   func(v values) (*recipe, error) { return adaptiveMaxRecipe(v, 3) },
	"fractional_max_pool2d": func(v values) (*recipe, error) { return fractionalRecipe(v, 2) },
	"fractional_max_pool3d": func(v values) (*recipe, error) { return fractionalRecipe(v, 3) },
	"max_unpool2d":          func(v values) (*recipe, error) { return unpoolRecipe(v, 2) },
	"max_unpool3d":          func(v values) (*recipe, error) { return unpoolRecipe(v, 3) },

	"_adaptive_avg_pool2d_backward":    averageSlopes("adaptive_avg_pool2d", 2),
	"_adaptive_avg_pool3d_backward":    averageSlopes("adaptive_avg_pool3d", 3),
	"avg_pool2d_backward":              averageSlopes("avg_pool2d", 2),
	"avg_pool3d_backward":              averageSlopes("avg_pool3d", 3),
	"adaptive_max_pool2d_backward":     func(v values) (*recipe, error) { return maxSlopes(v, 2, true) },
	"adaptive_max_pool3d_backward":     func(v values) (*recipe, error) { return maxSlopes(v, 3, false) },
	"max_pool2d_with_indices_backward": func(v values) (*recipe, error) { return maxSlopes(v, 2, true) },
	"max_pool3d_with_indices_backward": func(v values) (*recipe, error) { return maxSlopes(v, 3, true) },
	"fractional_max_pool2d_backward":   func(v values) (*recipe, error) { return maxSlopes(v, 2, false) },
	"fractional_max_pool3d_backward":   func(v values) (*recipe, error) { return maxSlopes(v, 3, false) },
}

// pooled is an op of ir whose results have their channels innermost where the
// input's are.
func pooled(name string) recipeFunc {
	return func(v values) (*recipe, error) {
		r, err := recipeIR(lookup(name), v)
		if err == nil {
			r.strides = lastStrides(r.in[0])
		}
		return r, err
	}
}

// averageSlopes is the gradient of an average over windows.
func averageSlopes(name string, n int) recipeFunc {
	return func(v values) (*recipe, error) {
		in, err := v.tensors("grad_output", "self")
		if err != nil {
			return nil, err
		}
		args := []any{intsOf(sizesOf(in[0])[max(int(in[0].ndim)-n, 0):])}
		if v.has("kernel_size") {
			args = []any{intsOf(v.ints("kernel_size")), intsOf(v.ints("stride")), intsOf(v.ints("padding")), v.bool("ceil_mode", false), v.bool("count_include_pad", true)}
			var over any
			if v.has("divisor_override") {
				over = v.int("divisor_override", 0)
			}
			args = append(args, over)
		}
		r := &recipe{what: fmt.Append(nil, name, " backward ", args), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return gradient(b, do(b, name, append([]any{in[1]}, args...)...), in[0], in[1])
		}}
		if n == 2 {
			r.strides = lastStrides(in[1])
		}
		return r, nil
	}
}

// planes returns images as [planes, pixels].
func planes(b *ir.Builder, x ir.Value, n int) ir.Value {
	dims, pixels := x.Shape().Dims(), 1
	for _, d := range dims[len(dims)-n:] {
		pixels *= d
	}
	count := 1
	for _, d := range dims[:len(dims)-n] {
		count *= d
	}
	return b.Reshape(x, count, pixels)
}

// maxSlopes gives each gradient to where the largest element was.
func maxSlopes(v values, n int, like bool) (*recipe, error) {
	in, err := v.tensors("grad_output", "self", "indices")
	if err != nil {
		return nil, err
	}
	if int(in[1].ndim) < n || in[2].numel != in[0].numel {
		return nil, fmt.Errorf("%w: %d indices for a gradient %v", ir.ErrShape, in[2].numel, sizesOf(in[0]))
	}
	r := &recipe{what: fmt.Append(nil, "max_pool_backward ", n), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		to := planes(b, in[1], n)
		none := b.Full(to.Shape().Dims(), 0, in[0].DType())
		sum := b.ScatterReduce(none, 1, planes(b, in[2], n), planes(b, in[0], n), "sum")
		return []ir.Value{b.Reshape(sum, in[1].Shape().Dims()...)}
	}}
	if like {
		r.strides = lastStrides(in[1])
	}
	return r, nil
}

// unpoolRecipe puts the elements back to where they were the largest.
func unpoolRecipe(v values, n int) (*recipe, error) {
	in, err := v.tensors("self", "indices")
	if err != nil {
		return nil, err
	}
	size := intsOf(v.ints("output_size"))
	if len(size) != n || int(in[0].ndim) < n+1 || in[0].numel != in[1].numel {
		return nil, fmt.Errorf("%w: unpooling of %v to %v", ir.ErrShape, sizesOf(in[0]), size)
	}
	return &recipe{what: fmt.Append(nil, "max_unpool ", size), in: in, strides: lastStrides(in[0]), build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		x := planes(b, in[0], n)
		none := b.Full([]int{x.Dim(0), product(size)}, 0, x.DType())
		out := b.Scatter(none, 1, planes(b, in[1], n), x)
		dims := in[0].Shape().Dims()
		return []ir.Value{b.Reshape(out, append(dims[:len(dims)-n], size...)...)}
	}}, nil
}

// largestOf finds the largest element among windows [.., cells, window] of flat
// places in images x [planes, pixels], and where it is.
func largestOf(b *ir.Builder, x, at ir.Value) (largest, where ir.Value) {
	cells, window := at.Dim(-2), at.Dim(-1)
	count := x.Dim(0)
	flat := b.Reshape(b.Expand(at, count, cells, window), count, cells*window)
	seen := b.Reshape(b.Gather(x, 1, flat), count, cells, window)
	k := b.Call1(ir.OpArgmax, []any{seen, 2, true})
	pick := func(from ir.Value) ir.Value { return b.Reshape(b.Gather(from, 2, k), count, cells) }
	return pick(seen), pick(b.Expand(at, count, cells, window))
}

// shaped gives [planes, cells] the dimensions of self with the last n replaced.
func shaped(b *ir.Builder, x, self ir.Value, out []int) ir.Value {
	dims := self.Shape().Dims()
	return b.Reshape(x, append(dims[:len(dims)-len(out)], out...)...)
}

// adaptiveMaxRecipe is the largest element of each of nearly equal windows. Those
// that are smaller than the largest repeat their last element.
func adaptiveMaxRecipe(v values, n int) (*recipe, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	_, in, err := images(intsOf(sizesOf(t)), n)
	if err != nil {
		return nil, err
	}
	out, err := perAxis(v.ints("output_size"), n, 1)
	if err != nil {
		return nil, err
	}
	size, most := append([]int(nil), out[3-n:]...), box{}
	for d := range most {
		for i := range out[d] {
			var o box
			o[d] = i
			lo, hi := adaptiveWindow(o, in, out)
			most[d] = max(most[d], hi[d]-lo[d])
		}
	}
	windows := func() (at []int64) {
		each(box{}, out, func(o box) {
			lo, hi := adaptiveWindow(o, in, out)
			each(box{}, most, func(k box) {
				var p box
				for d := range p {
					p[d] = min(lo[d]+k[d], hi[d]-1)
				}
				at = append(at, int64(in.at(p)))
			})
		})
		return at
	}
	return &recipe{
		what: fmt.Append(nil, "adaptive_max_pool ", size), in: []*tensor{t}, strides: lastStrides(t),
		tables: []table{intTable([]int{1, out.volume(), most.volume()}, windows)},
		build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			largest, where := largestOf(b, planes(b, in[0], n), in[1])
			return []ir.Value{shaped(b, largest, in[0], size), shaped(b, where, in[0], size)}
		},
	}, nil
}

// fractionalRecipe is the largest element of windows that lie at random distances;
// samples says how.
func fractionalRecipe(v values, n int) (*recipe, error) {
	in, err := v.tensors("self", "random_samples")
	if err != nil {
		return nil, err
	}
	_, size, err := images(intsOf(sizesOf(in[0])), n)
	if err != nil {
		return nil, err
	}
	kernel, err := perAxis(v.ints("kernel_size"), n, 1)
	if err != nil {
		return nil, err
	}
	out, err := perAxis(v.ints("output_size"), n, 1)
	if err != nil {
		return nil, err
	}
	for d := range size {
		if out[d] < 1 || kernel[d] < 1 || out[d]+kernel[d]-1 > size[d] {
			return nil, fmt.Errorf("%w: %d windows of %d in %d", ir.ErrArg, out[d], kernel[d], size[d])
		}
	}
	return simple(fmt.Sprint("fractional_max_pool ", n, kernel, out), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		x := planes(b, in[0], n)
		count := x.Dim(0)
		samples := b.Slice(b.Reshape(in[1], in[1].Shape().Numel()/n, n), 0, 0, count, 1)
		if in[0].DType() != ir.F64 {
			samples = b.Cast(samples, ir.F32)
		}
		// at is the flat place of each pixel of a window, [planes, out…, kernel…].
		at := b.Full([]int{1}, 0, ir.I64)
		for i := range n {
			d := 3 - n + i
			k := i
			if n == 2 { // here the samples are of the width first
				k = 1 - i
			}
			starts := startsOf(b, samples, k, size[d], out[d], kernel[d])
			dims := make([]int, 1+2*n)
			for j := range dims {
				dims[j] = 1
			}
			dims[0], dims[1+i] = count, out[d]
			starts = b.Reshape(starts, dims...)
			dims[0], dims[1+i], dims[1+n+i] = 1, 1, kernel[d]
			along := b.Add(starts, b.Reshape(b.Iota(kernel[d], ir.I64), dims...))
			at = b.Add(b.Mul(at, b.Const(size[d], ir.I64)), along)
		}
		largest, where := largestOf(b, x, b.Reshape(at, count, out.volume(), kernel.volume()))
		dims := append([]int(nil), out[3-n:]...)
		return []ir.Value{shaped(b, largest, in[0], dims), shaped(b, where, in[0], dims)}
	})
}

// startsOf is where the windows along one dimension begin, [planes, out].
func startsOf(b *ir.Builder, samples ir.Value, k, in, out, kernel int) ir.Value {
	s := b.Slice(samples, 1, k, k+1, 1)
	last := b.Full([]int{s.Dim(0), 1}, in-kernel, ir.I64)
	if out == 1 {
		return last
	}
	alpha := b.Div(num(b, float64(in-kernel), s), num(b, float64(out-1), s))
	whole := func(x ir.Value) ir.Value { return b.Cast(b.Trunc(b.Mul(x, alpha)), ir.I64) }
	starts := b.Sub(whole(b.Add(b.Iota(out-1, s.DType()), s)), whole(s))
	return b.Cat([]ir.Value{starts, last}, 1)
}
