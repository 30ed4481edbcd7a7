//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// windowEvals are the gradients of the ops that pad images.
var windowEvals = map[string]evalFunc{
	"replication_pad1d_backward": func(v values) ([]*tensor, error) { return replicationBackward(v, 1) },
	"replication_pad2d_backward": func(v values) ([]*tensor, error) { return replicationBackward(v, 2) },
	"replication_pad3d_backward": func(v values) ([]*tensor, error) { return replicationBackward(v, 3) },
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

// imagesLike gives images the order of the dimensions that self has.
func imagesLike(v values, outs []*tensor) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil || t.ndim < 4 || !channelsLast(t) {
		return all(err, outs...)
	}
	for i := range outs {
		to, err := relaid(outs[i])
		if err != nil {
			return all(err, append(outs[:i], outs[i+1:]...)...)
		}
		outs[i] = to[0]
	}
	return outs, nil
}
