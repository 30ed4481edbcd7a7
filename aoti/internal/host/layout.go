//go:build linux && cgo

package host

import (
	"slices"

	"github.com/loris-ml/loris/ir"
)

// channelsLike names, by op, the operands that results are laid out like: if the channels of
// one of them lie innermost, those of results that are images do, as PyTorch's kernels have them.
// Results of other ops are row-major.
var channelsLike = map[string][]string{
	"adaptive_avg_pool2d": {"self"}, "adaptive_avg_pool3d": {"self"}, "_adaptive_avg_pool2d": {"self"}, "_adaptive_avg_pool3d": {"self"},
	"avg_pool2d": {"self"}, "avg_pool3d": {"self"}, "max_pool2d_with_indices": {"self"}, "max_pool3d_with_indices": {"self"},
	"adaptive_max_pool2d": {"self"}, "adaptive_max_pool3d": {"self"}, "max_unpool2d": {"self"}, "max_unpool3d": {"self"},

	"_adaptive_avg_pool2d_backward": {"self"}, "avg_pool2d_backward": {"self"}, "adaptive_max_pool2d_backward": {"self"},
	"max_pool2d_with_indices_backward": {"self"}, "max_pool3d_with_indices_backward": {"self"},
}

// layoutOf returns the strides of the results of an op of ir; nil for row-major ones.
func layoutOf(sp *ir.Spec, v values, in []*tensor) func(i int, s ir.Shape) []int64 {
	var like []*tensor
	for _, name := range channelsLike[sp.Name] {
		if t, ok := v[name].(*tensor); ok {
			like = append(like, t)
		}
	}
	if slices.ContainsFunc(like, channelsLast) {
		return lastStrides(like...)
	}
	return stridesFrom(sp, in)
}
