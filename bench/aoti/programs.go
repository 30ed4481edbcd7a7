package main

import (
	"context"
	"path/filepath"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/model"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/onnx"
	"github.com/loris-ml/loris/torchexport"
)

// program is a model that --export writes as a package. Where pointwise ops and reductions dominate
// more is asked of it.
type program struct {
	name      string
	pointwise bool
	build     func(ctx context.Context) (*built, error)
}

// built is a program with random weights and inputs.
type built struct {
	fn     func(in ...*loris.Tensor) []*loris.Tensor
	inputs []*loris.Tensor
	module nn.Module
}

// input says what a program takes: integers below a number, or floats of a normal distribution where it is 0.
type input struct {
	dtype loris.DType
	below int
	dims  []int
}

func floats(d loris.DType, dims ...int) input { return input{d, 0, dims} }
func tokens(below int, dims ...int) input     { return input{loris.I64, below, dims} }

func (in input) tensor() *loris.Tensor {
	switch {
	case in.dtype == loris.Bool: // a mask that hides nothing
		return loris.With(loris.As(in.dtype)).Zeros(in.dims...)
	case in.below > 0:
		return loris.With(loris.As(in.dtype)).RandInt(0, in.below, in.dims...)
	}
	return loris.With(loris.As(in.dtype)).Randn(in.dims...)
}

// programs lists what --export writes. Imported models are in the folders of the packages that read
// them, below the repository's root, where the command runs.
func programs() []program {
	const f32, f64, bf16 = loris.F32, loris.F64, loris.BF16
	return []program{
		{"pointwise-1M", true, function(pointwise, floats(f32, 1<<20), floats(f32, 1<<20), floats(f32, 1<<20))},
		{"softmax", true, function(softmax, floats(f32, 4096, 1024))},
		{"statistics", true, function(statistics, floats(f32, 4096, 1024))},
		{"layer-norm", true, layers(normalised, floats(f32, 4096, 1024))},
		{"rms-norm-bf16", true, layers(gated, floats(bf16, 1024, 1024))},
		{"ranking", false, function(ranking, floats(f32, 64, 512))},
		{"mlp", false, layers(perceptron, floats(f32, 128, 784))},
		{"mlp-f64", false, layers(perceptron, floats(f64, 128, 784))},
		{"mlp-bf16", false, layers(perceptron, floats(bf16, 128, 784))},
		{"digits-conv", false, layers(digitsNetwork, floats(f32, 16, 1, 8, 8))},
		{"autoencoder", false, layers(autoencoder, floats(f32, 4, 3, 32, 32))},
		{"resnet18", false, layers(resnet, floats(f32, 1, 3, 224, 224))},
		{"encoder-block", false, layers(encoder, floats(f32, 4, 128, 512))},
		{"encoder-bf16", false, layers(encoder, floats(bf16, 4, 128, 512))},
		{"gpt2-124M", false, layers(gpt, tokens(gptVocab, 1, 64))},
		{"lstm", false, layers(recurrent, floats(f32, 32, 8, 64))},
		{"scan", false, function(scan, floats(f32, 32, 16, 64), floats(f32, 16, 64), floats(f32, 64, 64), floats(f32, 64, 64))},
		{"bag-of-words", false, layers(bag, tokens(5000, 32, 40))},
		{"import-encoder", false, imported("torchexport/testdata/encoder.pt2")},
		{"import-swin", false, imported("torchexport/testdata/swin.pt2")},
		{"import-conv", false, imported("torchexport/testdata/conv_eval.pt2")},
		{"import-convnet", false, imported("onnx/testdata/cases/convnet/model.onnx")},
		{"import-attention", false, imported("onnx/testdata/cases/attention_block/model.onnx")},
	}
}

func tensors(list []input) []*loris.Tensor {
	var all []*loris.Tensor
	for _, in := range list {
		all = append(all, in.tensor())
	}
	return all
}

// function returns the build of a function without variables.
func function(fn func(in ...*loris.Tensor) []*loris.Tensor, inputs ...input) func(context.Context) (*built, error) {
	return func(context.Context) (*built, error) { return &built{fn: fn, inputs: tensors(inputs)}, nil }
}

// layers returns the build of layers behind each other, in evaluation, of the dtype of the input.
func layers(list func(m loris.Maker) []nn.Layer, in input) func(context.Context) (*built, error) {
	return func(context.Context) (*built, error) {
		m := loris.Maker{}
		if in.dtype.IsFloat() {
			m = loris.With(loris.As(in.dtype))
		}
		net := nn.NewSequential(list(m)...)
		net.SetTraining(false)
		fn := func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{net.Forward(in[0])} }
		return &built{fn, tensors([]input{in}), net}, nil
	}
}

// imported returns the build of a model of a file.
func imported(path string) func(context.Context) (*built, error) {
	return func(ctx context.Context) (*built, error) {
		var m interface {
			model.Model
			Forward(inputs ...*loris.Tensor) []*loris.Tensor
		}
		var err error
		if path := filepath.FromSlash(path); filepath.Ext(path) == ".onnx" {
			m, err = onnx.Load(ctx, path)
		} else {
			m, err = torchexport.Load(ctx, path)
		}
		if err != nil {
			return nil, err
		}
		b := &built{fn: m.Forward, module: m}
		for _, a := range m.Signature().Inputs {
			in := input{dtype: a.DType}
			if !a.DType.IsFloat() {
				in.below = 2
			}
			for _, d := range a.Dims {
				size := d.Size
				if size < 1 {
					size = openSize
				}
				in.dims = append(in.dims, size)
			}
			b.inputs = append(b.inputs, in.tensor())
		}
		return b, nil
	}
}

// openSize is the size of a dimension that an imported model leaves open.
const openSize = 4

func pointwise(in ...*loris.Tensor) []*loris.Tensor {
	x, w, b := in[0], in[1], in[2]
	return []*loris.Tensor{x.Mul(w).Add(b).Tanh().Mul(x.Sigmoid()).Add(x.Sub(w).Relu())}
}

func softmax(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{in[0].Softmax(-1)} }

func statistics(in ...*loris.Tensor) []*loris.Tensor {
	variance, mean := in[0].VarMean(loris.Dim(1))
	return []*loris.Tensor{variance, mean, in[0].Amax(loris.Dim(1)), in[0].Argmax(loris.Dim(1)), in[0].Sum(loris.Dim(0))}
}

func ranking(in ...*loris.Tensor) []*loris.Tensor {
	values, at := in[0].Sort(loris.Dim(1), loris.Descending(true))
	best, _ := in[0].Topk(8)
	return []*loris.Tensor{values, at, best, in[0].Softmax(-1).Gather(1, at).Cumsum(1)}
}

// scan is a recurrent layer as a loop of the user's.
func scan(in ...*loris.Tensor) []*loris.Tensor {
	wx, wh := in[2].Mul(0.1), in[3].Mul(0.1)
	last, states := loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
		h := x[0].MatMul(wx).Add(carry[0].MatMul(wh)).Tanh()
		return []*loris.Tensor{h}, []*loris.Tensor{h}
	}, in[1:2], in[:1])
	return append(last, states...)
}
