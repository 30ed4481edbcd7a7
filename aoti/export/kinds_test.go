package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/safetensors"
)

// kind is a function of some kind of ops, with inputs.
type kind struct {
	name   string
	module nn.Module
	fn     func(in ...*loris.Tensor) []*loris.Tensor
	in     []*loris.Tensor
}

func all(list ...*loris.Tensor) []*loris.Tensor { return list }

func randn(dims ...int) *loris.Tensor { return loris.Randn(dims...) }

func randnAs(d loris.DType, dims ...int) *loris.Tensor { return loris.With(loris.As(d)).Randn(dims...) }

// ints returns integers from lo to hi-1 as a dtype.
func ints(d loris.DType, lo, hi int, dims ...int) *loris.Tensor {
	return loris.With(loris.As(loris.I64)).RandInt(lo, hi, dims...).Cast(d)
}

func upTo(n int) *loris.Tensor { return loris.With(loris.As(loris.I64)).Arange(0, n, 1) }

func kindsOfLayers() []kind {
	layer := func(name string, l nn.Layer, x *loris.Tensor) kind {
		return kind{name, l, func(in ...*loris.Tensor) []*loris.Tensor { return all(l.Forward(in[0])) }, all(x)}
	}
	return []kind{
		layer("lstm", nn.NewLSTM(8, 16, nn.Layers(2)), randn(7, 3, 8)),
		layer("gru", nn.NewGRU(8, 16), randn(7, 3, 8)),
		layer("rnn", nn.NewRNN(8, 16), randn(7, 3, 8)),
		layer("multihead attention", nn.NewMultiheadAttention(32, 4), randn(2, 9, 32)),
		layer("embedding", nn.NewEmbedding(50, 12), ints(loris.I64, 0, 50, 3, 4)),
		layer("embedding i32", nn.NewEmbedding(50, 12), ints(loris.I32, 0, 50, 3, 4)),
		layer("group norm", nn.NewGroupNorm(4, 16), randn(2, 16, 5, 5)),
		layer("instance norm", nn.NewInstanceNorm2d(8), randn(2, 8, 5, 5)),
		layer("batch norm", nn.NewBatchNorm1d(6), randn(5, 6)),
		layer("transposed convolution", nn.NewConvTranspose1d(4, 6, 5, nn.Stride(3), nn.Padding(1)), randn(2, 4, 9)),
		layer("transposed convolution 3d", nn.NewConvTranspose3d(2, 3, 3, nn.Stride(2)), randn(1, 2, 4, 4, 4)),
		layer("convolution 3d", nn.NewConv3d(2, 4, 3, nn.Padding(1)), randn(1, 2, 5, 5, 5)),
		layer("convolution 1d", nn.NewConv1d(4, 6, 5, nn.Dilation(2), nn.Groups(2)), randn(2, 4, 19)),
	}
}

func kindsOfDense() []kind {
	return []kind{
		{"masked", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			s := in[0].MatMul(in[0].Transpose(-1, -2)).Mul(0.25)
			return all(s.MaskedFill(in[1], -1e9).Softmax(-1).MatMul(in[0]))
		}, all(randn(2, 9, 16), ints(loris.Bool, 0, 2, 9, 9))},
		{"sdpa bool mask", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(loris.ScaledDotProductAttention(in[0], in[1], in[2], loris.AttnMask(in[3])))
		}, all(randn(2, 4, 9, 16), randn(2, 4, 11, 16), randn(2, 4, 11, 16), ints(loris.Bool, 0, 2, 9, 11).LogicalOr(loris.With(loris.As(loris.Bool)).Ones(9, 11).Tril()))},
		{"sdpa causal", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(loris.ScaledDotProductAttention(in[0], in[1], in[2], loris.IsCausal(true)))
		}, all(randn(2, 4, 9, 16), randn(2, 4, 9, 16), randn(2, 4, 9, 16))},
		{"sdpa gqa", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(loris.ScaledDotProductAttention(in[0], in[1], in[2], loris.EnableGQA(true)))
		}, all(randn(2, 4, 9, 16), randn(2, 2, 9, 16), randn(2, 2, 9, 16))},
		{"sdpa bf16", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(loris.ScaledDotProductAttention(in[0], in[1], in[2]))
		}, all(randnAs(loris.BF16, 2, 4, 9, 16), randnAs(loris.BF16, 2, 4, 9, 16), randnAs(loris.BF16, 2, 4, 9, 16))},
		{"conv bf16", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].Conv2d(in[1])) }, all(randnAs(loris.BF16, 1, 3, 9, 9), randnAs(loris.BF16, 4, 3, 3, 3))},
		{"conv f16", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].Conv2d(in[1])) }, all(randnAs(loris.F16, 1, 3, 9, 9), randnAs(loris.F16, 4, 3, 3, 3))},
		{"pools", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			v, i := in[0].MaxPool2dWithIndices([]int{3}, loris.Stride(2), loris.Padding(1))
			return all(v, i, in[0].AvgPool2d([]int{2}), in[0].AdaptiveAvgPool2d(3, 2), in[0].AvgPool2d([]int{3}, loris.Stride(1), loris.Padding(1), loris.CountIncludePad(false)))
		}, all(randn(2, 3, 9, 8))},
		{"maxpool1d 3d", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].MaxPool1d([]int{3}), in[1].MaxPool3d([]int{2}))
		}, all(randn(2, 3, 9), randn(1, 2, 6, 6, 6))},
		{"adaptive max", nil, func(in ...*loris.Tensor) []*loris.Tensor { v, i := in[0].AdaptiveMaxPool2d(3, 2); return all(v, i) }, all(randn(2, 3, 9, 8))},
		{"maxpool bf16", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].MaxPool2d([]int{2})) }, all(randnAs(loris.BF16, 2, 3, 8, 8))},
		{"interpolate", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Interpolate(loris.OutputSize(12, 9)), in[0].Interpolate(loris.OutputSize(12, 14), loris.InterpolateMode("bilinear")), in[0].Interpolate(loris.OutputSize(5, 5), loris.InterpolateMode("bilinear"), loris.AlignCorners(true)))
		}, all(randn(2, 3, 6, 7))},
		{"gridsample", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].GridSample(in[1].Tanh())) }, all(randn(2, 3, 6, 7), randn(2, 4, 4, 2))},
		{"pixelshuffle", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].PixelShuffle(2), in[0].ChannelShuffle(2)) }, all(randn(2, 8, 3, 4))},
		{"im2col", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Im2col([]int{2, 2}, []int{1, 1}, []int{0, 0}, 1, 1))
		}, all(randn(2, 3, 5, 5))},
		{"losses", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].CrossEntropy(in[1]), in[0].MseLoss(in[0].Mul(2)), in[0].HuberLoss(in[0].Mul(2)), in[0].LogSoftmax(1).NllLoss(in[1]), in[0].Sigmoid().BinaryCrossEntropy(in[0].Sigmoid()))
		}, all(randn(6, 4), ints(loris.I64, 0, 4, 6))},
		{"fft", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].RFFT().Abs()) }, all(randn(4, 16))},
		{"complex", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].Mul(in[0]), in[0].Real(), in[0].Abs()) }, all(loris.Complex(randn(4, 3), randn(4, 3)))},
		{"complex mm", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].MatMul(in[0])) }, all(loris.Complex(randn(4, 4), randn(4, 4)))},
		{"unary functions", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x := in[0]
			return all(x.Sin(), x.Cos(), x.Tan(), x.Atan(), x.Sinh(), x.Cosh(), x.Erf(), x.Erfc(), x.Expm1(), x.Exp2(), x.Abs().Log1p(), x.Mish(), x.Hardswish(), x.Softplus(), x.Elu(), x.Selu(), x.Celu(), x.Round(), x.Frac(), x.Sign(), x.Abs().Add(0.1).Rsqrt(), x.Abs().Pow(1.7), x.Sinc(), x.LogSigmoid(), x.Atan2(x.Add(1)), x.Hypot(x))
		}, all(randn(40))},
		{"special functions", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x := in[0]
			return all(x.Abs().Add(0.1).Lgamma(), x.Abs().Add(0.1).Digamma(), x.Polygamma(1), x.I0(), x.SpecialI1(), x.SpecialErfcx(), x.SpecialNdtr(), x.SpecialLogNdtr(), x.Abs().SpecialEntr())
		}, all(randn(40))},
		{"fake quant", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].FakeQuantizePerTensorAffine(loris.Full(0.1), loris.With(loris.As(loris.I32)).Full(3), -128, 127))
		}, all(randn(3, 9))},
		{"einsum", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(loris.Einsum("bij,bkj->bik", in), loris.Einsum("bij->ji", in[:1]))
		}, all(randn(2, 3, 4), randn(2, 5, 4))},
		{"broadcast mm", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].MatMul(in[1]), in[1].MatMul(in[2])) }, all(randn(2, 1, 3, 4), randn(5, 4, 6), randn(6))},
		{"mm of transposes", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Transpose(0, 1).MatMul(in[1].Transpose(0, 1)), in[0].MatMul(in[0].Transpose(0, 1)), in[0].Slice(loris.Dim(1), loris.SliceStep(2)).MatMul(in[1].Transpose(0, 1).Slice(loris.Dim(0), loris.SliceEnd(2)).Flip(0)))
		}, all(randn(3, 4), randn(5, 3))},
		{"mv dot", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Mv(in[1]), in[1].Dot(in[1]), in[1].Outer(in[1]))
		}, all(randn(3, 4), randn(4))},
	}
}

func kindsOfIndices() []kind {
	return []kind{
		{"gather scatter", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Gather(1, in[1]), in[0].Scatter(1, in[1], in[2]), in[0].ScatterAdd(1, in[1], in[2]), in[0].ScatterReduce(0, in[1], in[2], "amax"), in[0].TakeAlongDim(in[1], loris.Dim(1)))
		}, all(randn(5, 6), ints(loris.I64, 0, 5, 5, 3), randn(5, 3))},
		{"index", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Index([]*loris.Tensor{in[1]}), in[0].IndexPut([]*loris.Tensor{in[1]}, in[2]), in[0].IndexAdd(0, in[1], in[2]), in[0].IndexCopy(0, upTo(4), in[2]), in[0].Take(in[1]))
		}, all(randn(5, 6), ints(loris.I64, 0, 5, 4), randn(4, 6))},
		{"index put accumulate", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].IndexPut([]*loris.Tensor{in[1]}, in[2], loris.Accumulate(true)))
		}, all(randn(5, 6), ints(loris.I64, 0, 5, 4), randn(4, 6))},
		{"index bool", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].MaskedScatter(in[0].Gt(0), in[1])) }, all(randn(5, 6), randn(30))},
		{"sort", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			v, i := in[0].Sort(loris.Dim(0))
			a, b := in[0].Topk(3)
			c, d := in[0].Topk(2, loris.Largest(false), loris.Dim(0))
			return all(v, i, a, b, c, d, in[0].Argsort())
		}, all(randn(7, 9))},
		{"sort ints", nil, func(in ...*loris.Tensor) []*loris.Tensor { v, i := in[0].Sort(loris.Dim(0)); return all(v, i) }, all(ints(loris.I32, -50, 50, 40))},
		{"sort bool", nil, func(in ...*loris.Tensor) []*loris.Tensor { v, i := in[0].Sort(loris.Dim(0)); return all(v, i) }, all(ints(loris.Bool, 0, 2, 40))},
		{"kth median mode", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			v, i := in[0].Kthvalue(3)
			a, b := in[0].Median(loris.Dim(1))
			return all(v, i, a, b)
		}, all(randn(7, 9))},
		{"mode", nil, func(in ...*loris.Tensor) []*loris.Tensor { v, i := in[0].Mode(); return all(v, i) }, all(ints(loris.I64, 0, 3, 7, 9))},
		{"views", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x := in[0]
			return all(x.Flip(0, 1), x.Roll([]int{1}, loris.Dim(1)), x.Unfold(1, 3, 2), x.Diagonal(), x.Tril(), x.Slice(loris.Dim(1), loris.SliceStep(2)), x.Repeat(2, 3), x.Expand(2, 6, 6), x.Rot90(), x.RepeatInterleave(2, loris.Dim(0)), x.AsStrided([]int{3, 3}, []int{7, 1}))
		}, all(randn(6, 6))},
		{"pad", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Pad([]int{1, 2}), in[0].Pad([]int{1, 1, 1, 1}, loris.PadMode("reflect")), in[0].Pad([]int{2, 1, 0, 1}, loris.PadMode("replicate")), in[0].Pad([]int{-1, 2}))
		}, all(randn(2, 3, 6, 6))},
		{"scans", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			v, i := in[0].Cummax(1)
			return all(v, i, in[0].Cumprod(0), in[0].Logcumsumexp(1), in[0].Diff())
		}, all(randn(6, 4))},
		{"onehot bucket", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].OneHot(7), in[1].Bucketize(in[2]), loris.Searchsorted(in[2], in[1]), in[0].Bincount(loris.Minlength(7)))
		}, all(ints(loris.I64, 0, 7, 9), randn(4, 5), upTo(5).Cast(loris.F32))},
		{"nonzero static", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].NonzeroStatic(8)) }, all(ints(loris.I64, 0, 2, 4, 5))},
	}
}

func kindsOfOthers() []kind {
	return []kind{
		{"int graph", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x, y := in[0], in[1]
			return all(x.Mul(3).Add(y), x.BitwiseAnd(7).BitwiseXor(y), x.FloorDivide(y.Abs().Add(1)), x.Remainder(5), x.Sum(), x.Amax(loris.Dim(0)), x.Prod(loris.Dim(1)), x.Gt(y).Any(), x.Cumsum(1), x.Cast(loris.F32).Mean(), x.BitwiseLeftShift(2), x.Argmax(loris.Dim(1)))
		}, all(ints(loris.I64, -9, 9, 4, 5), ints(loris.I64, -9, 9, 4, 5))},
		{"int8 graph", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x, y := in[0], in[1]
			return all(x.Mul(3).Add(y), x.BitwiseAnd(7), x.Sum(), x.Amax(loris.Dim(0)), x.Gt(y).Any(), x.Cast(loris.I32).MatMul(y.Cast(loris.I32).Transpose(0, 1)))
		}, all(ints(loris.I8, -9, 9, 4, 5), ints(loris.I8, -9, 9, 4, 5))},
		{"u8 graph", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x := in[0]
			return all(x.Cast(loris.F32).Div(255), x.FloorDivide(3), x.BitwiseNot(), x.Amin(), x.Sum(loris.Dim(0)))
		}, all(ints(loris.U8, 0, 255, 4, 5))},
		{"i16 i32", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Add(in[1]), in[0].Mul(in[0]), in[1].MatMul(in[1].Transpose(0, 1)))
		}, all(ints(loris.I16, -100, 100, 4, 5), ints(loris.I32, -1000, 1000, 4, 5))},
		{"bool graph", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x, y := in[0], in[1]
			return all(x.LogicalAnd(y), x.LogicalXor(y).All(), x.BitwiseOr(y), x.LogicalNot().Any(loris.Dim(1)), x.Sum(), x.Cast(loris.F32), loris.Where(x, y, x.LogicalNot()), x.Cumsum(0))
		}, all(ints(loris.Bool, 0, 2, 4, 5), ints(loris.Bool, 0, 2, 4, 5))},
		{"bf16", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].MatMul(in[1]).Gelu().Softmax(-1), in[0].Sum(), in[0].Cumsum(1), in[0].Std(loris.Dim(0)))
		}, all(randnAs(loris.BF16, 9, 17), randnAs(loris.BF16, 17, 5))},
		{"f16", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].MatMul(in[1]).Gelu().Softmax(-1), in[0].Sum(), in[0].Cumsum(1))
		}, all(randnAs(loris.F16, 9, 17), randnAs(loris.F16, 17, 5))},
		{"f64", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].MatMul(in[1]).Gelu().Softmax(-1), in[0].Lgamma(), in[0].Digamma())
		}, all(randnAs(loris.F64, 9, 17), randnAs(loris.F64, 17, 5))},
		{"aliases", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0], in[0].Reshape(20), in[0].Transpose(0, 1), in[0].Select(0, 1), in[1], in[1])
		}, all(randn(4, 5), randn())},
		{"scalars", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Mul(in[1]).Add(in[2]), in[2].Mul(in[2]), in[1].Cast(loris.F32).Sqrt())
		}, all(randn(4, 5), ints(loris.I64, 1, 9), randn())},
		{"empty", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Mul(2), in[0].Sum(), in[0].Sum(loris.Dim(0)), loris.Cat([]*loris.Tensor{in[0], in[1]}, loris.Dim(0)), in[0].MatMul(in[2]))
		}, all(randn(0, 5), randn(3, 5), randn(5, 2))},
		{"empty inner", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(in[0].MatMul(in[1]), in[0].Sum(loris.Dim(1))) }, all(randn(3, 0), randn(0, 2))},
		{"empty sort", nil, func(in ...*loris.Tensor) []*loris.Tensor { v, i := in[0].Sort(); return all(v, i, in[0].Cumsum(0)) }, all(randn(0, 5))},
		{"constant result", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(loris.Ones(3), upTo(5), in[0]) }, all(randn(2))},
		{"no inputs used", nil, func(in ...*loris.Tensor) []*loris.Tensor { return all(loris.Full(3.5, 2, 2)) }, all(randn(2))},
		{"reductions", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			v, m := in[0].VarMean(loris.Dim(0))
			return all(v, m, in[0].Norm(), in[0].LogSumExp([]int{1}), in[0].Std(), in[0].CountNonzero(), in[0].Prod(), in[0].All(), in[0].Amin(loris.Dim(0, 1)), in[0].Argmin(), in[0].Mean(loris.Keepdim(true), loris.Dim(0)))
		}, all(randn(6, 4))},
		{"nan", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x := in[0].Log()
			return all(x, x.NanToNum(), x.Amax(), x.IsNaN(), x.Maximum(0), x.Sum())
		}, all(randn(6, 4))},
		{"many outputs", nil, func(in ...*loris.Tensor) []*loris.Tensor { return in[0].Unbind() }, all(randn(40, 3))},
		{"many inputs", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			s := in[0]
			for _, x := range in[1:] {
				s = s.Add(x)
			}
			return all(s)
		}, func() (l []*loris.Tensor) {
			for range 60 {
				l = append(l, randn(5))
			}
			return
		}()},
		{"large concat", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			var l []*loris.Tensor
			for i := range 50 {
				l = append(l, in[0].Mul(float64(i)))
			}
			return all(loris.Cat(l, loris.Dim(1)))
		}, all(randn(3, 2))},
		{"rank 6", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			return all(in[0].Permute(5, 3, 1, 0, 2, 4).Sum(loris.Dim(1, 4)), in[0].Permute(5, 3, 1, 0, 2, 4).Softmax(2))
		}, all(randn(2, 3, 2, 3, 2, 3))},
		{"apart", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x := in[0]
			v, m := x.VarMean(loris.Dim(0, 2))
			return all(x.Sum(loris.Dim(0, 2)), v, m, x.Amax(loris.Dim(0, 2)), x.Sub(x.Mean(loris.Dim(0, 2), loris.Keepdim(true))).Relu(), x.Gt(0).Any(loris.Dim(0, 2)), x.Cast(loris.BF16).Sum(loris.Dim(0, 2)), x.Prod(loris.Dim(0)), x.Cast(loris.I64).Sum(loris.Dim(0, 2)))
		}, all(randn(3, 4, 5, 6))},
		{"empty reductions", nil, func(in ...*loris.Tensor) []*loris.Tensor {
			x := in[0]
			return all(x.Prod(), x.Gt(0).All(), x.Gt(0).Any(), x.Mean(), x.Sum(loris.Dim(0)), x.Amax(loris.Dim(1)), x.Cast(loris.I64).Sum(), x.Softmax(1), x.Softmax(0), x.Var(loris.Dim(1)))
		}, all(randn(0, 6))},
	}
}

// Programs of all kinds compute in packages what they do here. Where LORIS_KEEP_PACKAGES is a folder the
// packages stay there, with their inputs and results, for scripts/aoti_export.py --packages.
func TestProgramsOfAllKinds(t *testing.T) {
	ctx := context.Background()
	loris.SetSeed(21)
	for _, c := range slices.Concat(kindsOfLayers(), kindsOfDense(), kindsOfIndices(), kindsOfOthers()) {
		t.Run(c.name, func(t *testing.T) {
			if c.module != nil {
				c.module.SetTraining(false)
			}
			if err := loris.MarkStep(ctx); err != nil {
				t.Fatal(err)
			}
			var pkg bytes.Buffer
			if err := export.Function(ctx, &pkg, c.fn, c.in, export.Options{Module: c.module}); err != nil {
				t.Fatal(err)
			}
			in, want, got := runBoth(t, load(t, pkg.Bytes()), c.fn, c.in...)
			keep(t, c.name, pkg.Bytes(), in, want)
			within(t, got, want, 4) // recurrent layers have kernels here and are products and loops there
		})
	}
}

// keep writes a package, its inputs and what they give to the folder of LORIS_KEEP_PACKAGES.
func keep(t *testing.T, name string, pkg []byte, in, out []backend.Buffer) {
	t.Helper()
	folder := os.Getenv("LORIS_KEEP_PACKAGES")
	if folder == "" {
		return
	}
	var tensors []safetensors.Tensor
	for prefix, list := range map[string][]backend.Buffer{"in": in, "out": out} {
		for i, b := range list {
			data, err := b.Bytes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			x := safetensors.Tensor{Name: fmt.Sprint(prefix, i), DType: safetensors.DType(strings.ToUpper(b.Shape().DType().String())), Data: data}
			for _, d := range b.Shape().Dims() {
				x.Shape = append(x.Shape, int64(d))
			}
			tensors = append(tensors, x)
		}
	}
	stem := filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
	if err := errors.Join(os.WriteFile(stem+".pt2", pkg, 0o600), safetensors.WriteFile(stem+".safetensors", tensors, nil)); err != nil {
		t.Fatal(err)
	}
}
