// Package aten names ops as variables, for the packages that treat some ops unlike others: aten.Add is
// the op of the row "add". Ops that a program names are looked up with ir.Lookup.
package aten

import "github.com/loris-ml/loris/internal/ir"

// The composites that some backends have kernels for, the op that runs a model, and the loop.
var (
	Attention             = op("scaled_dot_product_attention")
	AttentionBackward     = op("_scaled_dot_product_attention_backward")
	AttentionMaskBackward = op("_scaled_dot_product_attention_mask_backward")
	CallModel             = op("call_model")
	Scan                  = op("scan")
	IntMM                 = op("_int_mm")
	ScaledMM              = op("_scaled_mm")
	Topk                  = op("topk")
	Kthvalue              = op("kthvalue")
	Median                = op("median")
	Nanmedian             = op("nanmedian")
	Mode                  = op("mode")
	Searchsorted          = op("searchsorted")
	Bucketize             = op("bucketize")
	SegmentReduce         = op("segment_reduce")
	SegmentGradient       = op("_segment_reduce_backward")
	Bincount              = op("bincount")
	Histc                 = op("histc")
	NonzeroStatic         = op("nonzero_static")
	Randperm              = op("randperm")
	LSTM                  = op("lstm")
	GRU                   = op("gru")
	RNNTanh               = op("rnn_tanh")
	RNNReLU               = op("rnn_relu")
	Cummin                = op("cummin")
	CumprodGradient       = op("cumprod_backward")
	LinearScan            = op("_linear_scan")
	ProductsOfOthers      = op("_products_of_others")
	TrilIndices           = op("tril_indices")
	TriuIndices           = op("triu_indices")
	AdaptiveMaxPool1d     = op("adaptive_max_pool1d")
	AdaptiveMaxPool2d     = op("adaptive_max_pool2d")
	AdaptiveMaxPool3d     = op("adaptive_max_pool3d")
	AdaptiveMean          = op("_adaptive_mean")
	AdaptiveMeanBackward  = op("_adaptive_mean_backward")
	FractionalMaxPool2d   = op("fractional_max_pool2d")
	FractionalMaxPool3d   = op("fractional_max_pool3d")
	Col2im                = op("col2im")
	EmbeddingBag          = op("_embedding_bag")
	RowDistances          = op("_row_distances")
	PairDistances         = op("_pair_distances")
	RowDifferences        = op("_row_differences")
	TakeElements          = op("_take_elements")
	SamplePixels          = op("_sample_pixels")
	SpreadPixels          = op("_spread_pixels")
	PixelProducts         = op("_pixel_products")
	FftC2c                = op("_fft_c2c")
	FftR2c                = op("_fft_r2c")
	StftFrames            = op("_stft_frames")
	FftC2r                = op("_fft_c2r")
	Unfold                = op("unfold")
	PadEdges              = op("_pad_edges")
	LinalgLUSolve         = op("linalg_lu_solve")
	LinalgDet             = op("_linalg_det")
)

// op returns the op of a row that there is.
func op(name string) ir.Op {
	op, ok := ir.Lookup(name)
	if !ok {
		panic("aten: no op is named " + name)
	}
	return op
}
