//go:build linux && cgo

package host

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// channelsLike names, by op, the operands that results are laid out like: if the channels of
// one of them lie innermost, those of results that are images do, as PyTorch's kernels have them.
// Results of other ops are row-major.
var channelsLike = map[string][]string{
	"adaptive_avg_pool2d": {"self"}, "adaptive_avg_pool3d": {"self"}, "_adaptive_avg_pool2d": {"self"}, "_adaptive_avg_pool3d": {"self"},
	"avg_pool2d": {"self"}, "avg_pool3d": {"self"}, "max_pool2d_with_indices": {"self"}, "max_pool3d_with_indices": {"self"},
	"adaptive_max_pool2d": {"self"}, "adaptive_max_pool3d": {"self"}, "max_unpool2d": {"self"}, "max_unpool3d": {"self"},

	"convolution": {"input", "weight"}, "convolution_backward": {"input", "weight"}, "pad": {"self"},
	"grid_sampler_2d": {"input"}, "grid_sampler_3d": {"input"},
	"upsample_linear1d_backward": {"grad_output"}, "upsample_bilinear2d_backward": {"grad_output"},
	"upsample_trilinear3d_backward": {"grad_output"}, "upsample_bicubic2d_backward": {"grad_output"},

	"_adaptive_avg_pool2d_backward": {"self"}, "avg_pool2d_backward": {"self"}, "adaptive_max_pool2d_backward": {"self"},
	"max_pool2d_with_indices_backward": {"self"}, "max_pool3d_with_indices_backward": {"self"},
}

// columnMajor names, by op, the results whose matrices lie column by column, as LAPACK leaves them.
var columnMajor = map[string][]int{
	"linalg_inv_ex": {0}, "_linalg_det": {1}, "_linalg_slogdet": {2}, "linalg_lu_factor_ex": {0}, "linalg_lu_solve": {0},
	"_linalg_solve_ex": {0, 1}, "linalg_solve_triangular": {0}, "linalg_cholesky_ex": {0}, "linalg_qr": {0, 1},
	"linalg_householder_product": {0}, "_linalg_eigh": {1}, "_linalg_svd": {0, 2}, "cholesky_solve": {0},
	"cholesky_inverse": {0}, "triangular_solve": {0, 1}, "geqrf": {0}, "ormqr": {0},
}

// laidOutLike has, by op, the number of the operand that results of its size are laid out like.
var laidOutLike = map[string]int{"sort": 0, "index_reduce": 0, "soft_margin_loss_backward": 1}

// byColumns returns the strides of matrices that lie column by column.
func byColumns(s ir.Shape) []int64 {
	strides := rowMajor(int64s(s.Dims()))
	if n := len(strides); n >= 2 {
		strides[n-2], strides[n-1] = 1, int64(max(s.Dim(-2), 1))
	}
	return strides
}

// layoutOf returns the strides of the results of an op of ir; nil for row-major ones.
func layoutOf(sp *ir.Spec, v values, in []*tensor) func(i int, s ir.Shape) []int64 {
	var like []*tensor
	for _, name := range channelsLike[sp.Name] {
		if t, ok := v[name].(*tensor); ok {
			like = append(like, t)
		}
	}
	switch {
	case slices.ContainsFunc(like, channelsLast):
		return lastStrides(like...)
	case sp.Name == "_grouped_mm" || sp.Name == "_scaled_grouped_mm":
		return alignedRows
	}
	if columns := columnMajor[sp.Name]; columns != nil {
		return func(i int, s ir.Shape) []int64 {
			if !slices.Contains(columns, i) || sp.Name == "_linalg_solve_ex" && i == 0 && !v.bool("left", true) {
				return nil
			}
			return byColumns(s)
		}
	}
	if i, ok := laidOutLike[sp.Name]; ok {
		return likeStrides(in[i])
	}
	return stridesFrom(sp, in)
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

// alignedRows are strides of matrices whose rows begin at multiples of 16 bytes, as PyTorch's
// grouped products have them.
func alignedRows(_ int, s ir.Shape) []int64 {
	align := max(16/s.DType().Size(), 1)
	dims := s.Dims()
	dims[len(dims)-1] = (dims[len(dims)-1] + align - 1) / align * align
	return rowMajor(int64s(dims))
}
