//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/quant"
)

func qconvPointwiseTensor(c call) error {
	// X act_scale act_zero_point W W_scales W_zero_points B stride. padding.
	// dilation. groups output_scale output_zero_point output_dtype attr scalars.
	// algorithm ret0
	q := quantizedConvolution{quantizedLayer: quantizedLayer{step: c.float(14), zero: c.int(15)}}
	if err := q.read(c, 6, 16); err != nil {
		return err
	}
	q.shape = convolution{stride: c.ints(7), padding: c.ints(9), dilation: c.ints(11), groups: c.int(13)}
	var err error
	if q.act, err = c.activation(17, 18, 20); err != nil {
		return err
	}
	return q.give(c, 21, q.run)
}

func qconv2dPointwiseBinaryTensor(c call) error {
	// X act_scale act_zero_point W W_scales W_zero_points accum B stride. padding.
	// dilation. groups output_scale output_zero_point output_dtype accum_scale
	// accum_zero_point binary alpha unary scalars. algorithm ret0
	q := quantizedConvolution{quantizedLayer: quantizedLayer{
		step: c.float(15), zero: c.int(16), other: c.tensor(6), otherScale: c.float(18), otherZero: c.int(19),
	}}
	if err := q.read(c, 7, 17); err != nil {
		return err
	}
	q.shape = convolution{stride: c.ints(8), padding: c.ints(10), dilation: c.ints(12), groups: c.int(14)}
	alpha, ok := c.optFloat(21)
	if !ok {
		alpha = 1
	}
	if err := q.binary(c.text(20), alpha); err != nil {
		return err
	}
	var err error
	if q.act, err = c.activation(22, 23, 25); err != nil {
		return err
	}
	return q.give(c, 26, q.run)
}

// quantizedConvolution is one call of a convolution of 8-bit integers.
type quantizedConvolution struct {
	quantizedLayer
	shape convolution // strides, padding and groups
}

func (q *quantizedConvolution) run() error {
	if q.other != nil && !q.inPlace {
		return fmt.Errorf("%w: a quantized convolution that adds to another tensor and keeps it", errUnimplemented)
	}
	xs, line := slices.Clone(sizesOf(q.x)), q.x.ndim == 3
	if line {
		// Filters of one dimension come as those of two.
		xs = slices.Insert(xs, 2, 1)
		s := &q.shape
		s.stride, s.padding, s.dilation = []int64{1, last(s.stride, 1)}, []int64{0, last(s.padding, 0)}, []int64{1, last(s.dilation, 1)}
	}
	if int(q.w.ndim) != len(xs) {
		return fmt.Errorf("%w: a quantized convolution of %v with filters %v", ir.ErrShape, sizesOf(q.x), sizesOf(q.w))
	}
	f, err := q.filters(len(xs))
	if err != nil {
		return err
	}
	g, dims, err := q.shape.geometryOf(xs, f.dims)
	if err != nil {
		return err
	}
	strides := channelsLastStrides(dims)
	if line {
		dims, strides = slices.Delete(dims, 2, 3), slices.Delete(strides, 2, 3)
	}
	if err := q.result(dims, strides); err != nil {
		return err
	}
	w, err := q.packed(f, g)
	if err != nil {
		return err
	}
	finish, free, err := q.finish(g.COut * g.Groups)
	if err != nil {
		return err
	}
	defer free()
	l := imageOf(q.x)
	if q.x.dtype == C.LORI_U8 {
		quant.Convolve(g, elements[uint8](q.x), l, q.xZero, w, finish)
	} else {
		quant.Convolve(g, elements[int8](q.x), l, q.xZero, w, finish)
	}
	return nil
}

// last returns the last number of a list.
func last(list []int64, otherwise int64) int64 {
	if len(list) == 0 {
		return otherwise
	}
	return list[len(list)-1]
}

// filters returns the filters as values; the image has the given rank.
func (q *quantizedConvolution) filters(rank int) (filters[int8], error) {
	if q.w.layout == C.LORI_MKLDNN {
		d, src, err := blockedOf[int8](q.w)
		if err != nil {
			return filters[int8]{}, err
		}
		q.together = d.older
		return unpackFilters(d, src, rank, q.shape.groups, false)
	}
	return stridedFilters[int8](q.w), nil
}

type packedFilters struct {
	w   *quant.Filters
	err error
}

// filtersKey is what packed 8-bit filters depend on besides their contents.
type filtersKey weightsKey

func (q *quantizedConvolution) packed(f filters[int8], g conv.Geometry) (*quant.Filters, error) {
	g.N, g.In, g.Out = 1, [3]int{}, [3]int{}
	key := filtersKey{g, conv.Plain, f.strides, int64(q.w.offset), int32(q.w.dtype)}
	p := kept(q.w, key, func() packedFilters {
		data, err := f.data()
		if err != nil {
			return packedFilters{err: err}
		}
		return packedFilters{w: quant.PackFilters(data, f.strides, g)}
	})
	return p.w, p.err
}
