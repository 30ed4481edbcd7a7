//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// poolEvals are the ops that pool images. Results have their channels innermost
// where the input's are.
var poolEvals = map[string]evalFunc{
	"adaptive_avg_pool2d":     pool("adaptive_avg_pool2d"),
	"adaptive_avg_pool3d":     pool("adaptive_avg_pool3d"),
	"_adaptive_avg_pool2d":    pool("adaptive_avg_pool2d"),
	"_adaptive_avg_pool3d":    pool("adaptive_avg_pool3d"),
	"avg_pool2d":              pool("avg_pool2d"),
	"avg_pool3d":              pool("avg_pool3d"),
	"max_pool2d_with_indices": pool("max_pool2d_with_indices"),
	"max_pool3d_with_indices": pool("max_pool3d_with_indices"),
	"adaptive_max_pool2d":     func(v values) ([]*tensor, error) { return adaptiveMax(v, 2) },
	"adaptive_max_pool3d":     func(v values) ([]*tensor, error) { return adaptiveMax(v, 3) },
	"max_unpool2d":            func(v values) ([]*tensor, error) { return unpool(v, 2) },
	"max_unpool3d":            func(v values) ([]*tensor, error) { return unpool(v, 3) },
}

func pool(name string) evalFunc {
	return func(v values) ([]*tensor, error) {
		outs, err := evalIR(lookup(name), v)
		if err != nil {
			return nil, err
		}
		return imagesLike(v, outs)
	}
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

// adaptiveMax is the largest element of each of nearly equal windows, and where
// it is in its plane.
func adaptiveMax(v values, n int) ([]*tensor, error) {
	t, a, err := argument[float64](v, "self")
	if err != nil {
		return nil, err
	}
	planes, in, err := images(a.dims, n)
	if err != nil {
		return nil, err
	}
	out, err := perAxis(v.ints("output_size"), n, 1)
	if err != nil {
		return nil, err
	}
	dims := append([]int(nil), a.dims...)
	copy(dims[len(dims)-n:], out[3-n:])
	cells := out.volume()
	vals, at := array[float64]{make([]float64, planes*cells), dims}, array[int64]{make([]int64, planes*cells), dims}
	for p := range planes {
		img := a.data[p*in.volume():][:in.volume()]
		each(box{}, out, func(o box) {
			lo, hi := adaptiveWindow(o, in, out)
			best := -1
			each(lo, hi, func(q box) {
				if k := in.at(q); best < 0 || img[k] > img[best] || isNaN(img[k]) {
					best = k
				}
			})
			i := p*cells + out.at(o)
			vals.data[i], at.data[i] = img[best], int64(best)
		})
	}
	outs, err := saveBoth(vals, dtypeOf(t), at)
	if err != nil {
		return nil, err
	}
	return imagesLike(v, outs)
}

// unpool puts the elements back to where they were the largest.
func unpool(v values, n int) ([]*tensor, error) {
	t, idx, err := v.two("self", "indices")
	if err != nil {
		return nil, err
	}
	a, err := load[float64](t)
	if err != nil {
		return nil, err
	}
	at, err := load[int64](idx)
	if err != nil {
		return nil, err
	}
	size, rank := v.ints("output_size"), len(a.dims)
	if len(size) != n || rank < n+1 || len(at.data) != len(a.data) {
		return nil, fmt.Errorf("%w: unpooling of %v to %v", ir.ErrShape, a.dims, size)
	}
	dims, cells, plane, planes := append([]int(nil), a.dims[:rank-n]...), 1, 1, 1
	for i, s := range size {
		dims = append(dims, int(s))
		plane *= int(s)
		cells *= a.dims[rank-n+i]
	}
	for _, d := range a.dims[:rank-n] {
		planes *= d
	}
	out := array[float64]{make([]float64, planes*plane), dims}
	for i, x := range a.data {
		k := at.data[i]
		if k < 0 || k >= int64(plane) {
			return nil, fmt.Errorf("%w: unpooling to index %d of %d", ir.ErrShape, k, plane)
		}
		out.data[i/cells*plane+int(k)] = x
	}
	outs, err := one(save(out, dtypeOf(t)))
	if err != nil {
		return nil, err
	}
	return imagesLike(v, outs)
}
