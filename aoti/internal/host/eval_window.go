//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// windowEvals are the gradients of the ops that pool and pad images, and the
// pooling with random windows.
var windowEvals = map[string]evalFunc{
	"_adaptive_avg_pool2d_backward":    func(v values) ([]*tensor, error) { return adaptiveAvgBackward(v, 2) },
	"_adaptive_avg_pool3d_backward":    func(v values) ([]*tensor, error) { return adaptiveAvgBackward(v, 3) },
	"avg_pool2d_backward":              func(v values) ([]*tensor, error) { return avgBackward(v, 2) },
	"avg_pool3d_backward":              func(v values) ([]*tensor, error) { return avgBackward(v, 3) },
	"adaptive_max_pool2d_backward":     func(v values) ([]*tensor, error) { return maxBackward(v, 2, true) },
	"adaptive_max_pool3d_backward":     func(v values) ([]*tensor, error) { return maxBackward(v, 3, false) },
	"max_pool2d_with_indices_backward": func(v values) ([]*tensor, error) { return maxBackward(v, 2, true) },
	"max_pool3d_with_indices_backward": func(v values) ([]*tensor, error) { return maxBackward(v, 3, true) },
	"fractional_max_pool2d_backward":   func(v values) ([]*tensor, error) { return maxBackward(v, 2, false) },
	"fractional_max_pool3d_backward":   func(v values) ([]*tensor, error) { return maxBackward(v, 3, false) },
	"replication_pad1d_backward":       func(v values) ([]*tensor, error) { return replicationBackward(v, 1) },
	"replication_pad2d_backward":       func(v values) ([]*tensor, error) { return replicationBackward(v, 2) },
	"replication_pad3d_backward":       func(v values) ([]*tensor, error) { return replicationBackward(v, 3) },
	"fractional_max_pool2d":            func(v values) ([]*tensor, error) { return fractionalMax(v, 2) },
	"fractional_max_pool3d":            func(v values) ([]*tensor, error) { return fractionalMax(v, 3) },
}

// box is the size of an image or a place in it, depth first; what a flat image
// lacks is 1, or 0 of a place.
type box [3]int

func (b box) volume() int { return b[0] * b[1] * b[2] }

// at returns a place's position in row-major order.
func (b box) at(p box) int { return (p[0]*b[1]+p[1])*b[2] + p[2] }

// each calls fn for every place from lo to below hi.
func each(lo, hi box, fn func(p box)) {
	for x := lo[0]; x < hi[0]; x++ {
		for y := lo[1]; y < hi[1]; y++ {
			for z := lo[2]; z < hi[2]; z++ {
				fn(box{x, y, z})
			}
		}
	}
}

// images returns how many images of n dimensions an array of the sizes holds, and
// their size.
func images(dims []int, n int) (planes int, size box, err error) {
	if len(dims) < n {
		return 0, box{}, fmt.Errorf("%w: images of %d dimensions in %v", ir.ErrShape, n, dims)
	}
	size = box{1, 1, 1}
	copy(size[3-n:], dims[len(dims)-n:])
	return product(dims[:len(dims)-n]), size, nil
}

// perAxis spreads a list of n numbers, or one for all, over a box.
func perAxis(list []int64, n, otherwise int) (box, error) {
	b := box{otherwise, otherwise, otherwise}
	if len(list) != n && len(list) != 1 {
		return b, fmt.Errorf("%w: %v for %d dimensions", ir.ErrArg, list, n)
	}
	for i := range n {
		b[3-n+i] = int(list[min(i, len(list)-1)])
	}
	return b, nil
}

// backward are the operands of a gradient over images: that of the outputs, and
// the inputs, of which the shape matters.
type backward struct {
	grad    array[float64]
	self    *tensor
	dims    []int // of self
	planes  int
	in, out box
}

func backwardOf(v values, n int) (b backward, err error) {
	g, self, err := v.two("grad_output", "self")
	if err != nil {
		return b, err
	}
	s, err := shapeOf(self)
	if err != nil {
		return b, err
	}
	b.self, b.dims = self, s.Dims()
	if b.grad, err = load[float64](g); err != nil {
		return b, err
	}
	if b.planes, b.in, err = images(b.dims, n); err != nil {
		return b, err
	}
	planes, out, err := images(b.grad.dims, n)
	if err == nil && planes != b.planes {
		err = fmt.Errorf("%w: a gradient %v for %v", ir.ErrShape, b.grad.dims, b.dims)
	}
	b.out = out
	return b, err
}

// spread adds the gradient of each output to the inputs: fn says where. The
// result has its channels innermost where self has and like says so.
func (b *backward) spread(like bool, fn func(plane, cell int, at box, g float64, in []float64)) ([]*tensor, error) {
	res := array[float64]{make([]float64, b.planes*b.in.volume()), b.dims}
	for p := range b.planes {
		in := res.data[p*b.in.volume():][:b.in.volume()]
		each(box{}, b.out, func(at box) {
			cell := p*b.out.volume() + b.out.at(at)
			fn(p, cell, at, b.grad.data[cell], in)
		})
	}
	outs, err := one(save(res, dtypeOf(b.self)))
	if err != nil || !like {
		return outs, err
	}
	return imagesLike(values{"self": b.self}, outs)
}

func adaptiveAvgBackward(v values, n int) ([]*tensor, error) {
	b, err := backwardOf(v, n)
	if err != nil {
		return nil, err
	}
	return b.spread(n == 2, func(_, _ int, at box, g float64, in []float64) {
		lo, hi := adaptiveWindow(at, b.in, b.out)
		g /= float64((hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]))
		each(lo, hi, func(p box) { in[b.in.at(p)] += g })
	})
}

// adaptiveWindow is the window that an output of adaptive pooling sees.
func adaptiveWindow(at, in, out box) (lo, hi box) {
	for d := range lo {
		lo[d], hi[d] = at[d]*in[d]/out[d], ((at[d]+1)*in[d]+out[d]-1)/out[d]
	}
	return lo, hi
}

func avgBackward(v values, n int) ([]*tensor, error) {
	b, err := backwardOf(v, n)
	if err != nil {
		return nil, err
	}
	kernel, err := perAxis(v.ints("kernel_size"), n, 1)
	if err != nil {
		return nil, err
	}
	stride := kernel
	if s := v.ints("stride"); len(s) > 0 {
		if stride, err = perAxis(s, n, 1); err != nil {
			return nil, err
		}
	}
	pad, err := perAxis(v.ints("padding"), n, 0)
	if err != nil {
		return nil, err
	}
	padded, fixed := v.bool("count_include_pad", true), v.int("divisor_override", 0)
	return b.spread(n == 2, func(_, _ int, at box, g float64, in []float64) {
		var lo, hi box
		whole, inside := 1, 1
		for d := range lo {
			lo[d] = at[d]*stride[d] - pad[d]
			hi[d] = min(lo[d]+kernel[d], b.in[d]+pad[d])
			whole *= hi[d] - lo[d]
			lo[d], hi[d] = max(lo[d], 0), min(hi[d], b.in[d])
			inside *= max(hi[d]-lo[d], 0)
		}
		switch {
		case fixed != 0:
			g /= float64(fixed)
		case padded:
			g /= float64(whole)
		default:
			g /= float64(inside)
		}
		each(lo, hi, func(p box) { in[b.in.at(p)] += g })
	})
}

// maxBackward gives each gradient to where the largest element was.
func maxBackward(v values, n int, like bool) ([]*tensor, error) {
	b, err := backwardOf(v, n)
	if err != nil {
		return nil, err
	}
	t, err := v.tensor("indices")
	if err != nil {
		return nil, err
	}
	idx, err := load[int64](t)
	if err != nil {
		return nil, err
	}
	if len(idx.data) != len(b.grad.data) {
		return nil, fmt.Errorf("%w: %d indices for %d gradients", ir.ErrShape, len(idx.data), len(b.grad.data))
	}
	for _, k := range idx.data {
		if k < 0 || k >= int64(b.in.volume()) {
			return nil, fmt.Errorf("%w: index %d in an image of %v", ir.ErrShape, k, b.in)
		}
	}
	return b.spread(like, func(_, cell int, _ box, g float64, in []float64) { in[idx.data[cell]] += g })
}

func replicationBackward(v values, n int) ([]*tensor, error) {
	b, err := backwardOf(v, n)
	if err != nil {
		return nil, err
	}
	pad := v.ints("padding")
	if len(pad) != 2*n {
		return nil, fmt.Errorf("%w: padding %v of %d dimensions", ir.ErrArg, pad, n)
	}
	var before box
	for i := range n { // the last dimension comes first
		before[2-i] = int(pad[2*i])
		if b.out[2-i] != b.in[2-i]+int(pad[2*i]+pad[2*i+1]) {
			return nil, fmt.Errorf("%w: a gradient %v of %v padded by %v", ir.ErrShape, b.grad.dims, b.dims, pad)
		}
	}
	return b.spread(false, func(_, _ int, at box, g float64, in []float64) {
		for d := range at {
			at[d] = min(max(at[d]-before[d], 0), b.in[d]-1)
		}
		in[b.in.at(at)] += g
	})
}

// fractionalMax is the largest element of windows that lie at random distances;
// samples says how.
func fractionalMax(v values, n int) ([]*tensor, error) {
	t, s, err := v.two("self", "random_samples")
	if err != nil {
		return nil, err
	}
	a, err := load[float64](t)
	if err != nil {
		return nil, err
	}
	samples, err := load[float64](s)
	if err != nil {
		return nil, err
	}
	planes, in, err := images(a.dims, n)
	if err != nil {
		return nil, err
	}
	kernel, err := perAxis(v.ints("kernel_size"), n, 1)
	if err != nil {
		return nil, err
	}
	size := v.ints("output_size")
	out, err := perAxis(size, n, 1)
	if err != nil {
		return nil, err
	}
	for d := range in {
		if out[d] < 1 || kernel[d] < 1 || out[d]+kernel[d]-1 > in[d] {
			return nil, fmt.Errorf("%w: %d windows of %d in %d", ir.ErrArg, out[d], kernel[d], in[d])
		}
	}
	if len(samples.data) < planes*n {
		return nil, fmt.Errorf("%w: %d samples for %d images", ir.ErrShape, len(samples.data), planes)
	}
	dims := append([]int(nil), a.dims...)
	copy(dims[len(dims)-n:], out[3-n:])
	vals, at := array[float64]{make([]float64, planes*out.volume()), dims}, array[int64]{make([]int64, planes*out.volume()), dims}
	single := dtypeOf(t) != ir.F64
	for p := range planes {
		img := a.data[p*in.volume():][:in.volume()]
		var starts [3][]int
		for d := range starts {
			starts[d] = []int{0}
		}
		for i := range n { // in two dimensions the samples are of the width first
			d := 3 - n + i
			k := i
			if n == 2 {
				k = 1 - i
			}
			starts[d] = windowStarts(samples.data[p*n+k], in[d], out[d], kernel[d], single)
		}
		each(box{}, out, func(o box) {
			lo := box{starts[0][o[0]], starts[1][o[1]], starts[2][o[2]]}
			best := -1
			each(lo, box{lo[0] + kernel[0], lo[1] + kernel[1], lo[2] + kernel[2]}, func(q box) {
				if k := in.at(q); best < 0 || img[k] > img[best] || isNaN(img[k]) {
					best = k
				}
			})
			i := p*out.volume() + out.at(o)
			vals.data[i], at.data[i] = img[best], int64(best)
		})
	}
	return saveBoth(vals, dtypeOf(t), at)
}

// windowStarts is where the windows along one dimension begin.
func windowStarts(sample float64, in, out, kernel int, single bool) []int {
	starts := make([]int, out)
	if out > 1 {
		alpha := float64(in-kernel) / float64(out-1)
		for i := range out - 1 {
			if single {
				a, s := float32(in-kernel)/float32(out-1), float32(sample)
				starts[i] = int((float32(i)+s)*a) - int(s*a)
			} else {
				starts[i] = int((float64(i)+sample)*alpha) - int(sample*alpha)
			}
		}
	}
	starts[out-1] = in - kernel
	return starts
}
