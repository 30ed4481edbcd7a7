package data_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
	"github.com/loris-ml/loris/data/images"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

// BenchmarkTraining trains two networks on batches of a loader and reports which part of the time
// they waited for them: a perceptron, whose steps are short, and a convolution over images of 32 by
// 32 pixels that are turned, shifted and scaled at random.
func BenchmarkTraining(b *testing.B) {
	const n, classes = 4096, 10
	r := rand.New(rand.NewPCG(1, 2))
	pixels := make([]float32, n*32*32)
	for i := range pixels {
		pixels[i] = r.Float32()
	}
	labels := make([]int64, n)
	for i := range labels {
		labels[i] = r.Int64N(classes)
	}
	rows, err := data.Rows(data.Of(pixels, n, 32*32), data.Of(labels))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("perceptron", func(b *testing.B) {
		train(b, rows, func(m loris.Maker) nn.Layer {
			return nn.NewSequential(nn.NewLinear(32*32, 128, nn.With(m)), nn.Func(nn.ReLU), nn.NewLinear(128, classes, nn.With(m)))
		})
	})
	ds, err := images.FromArray(data.Of(pixels, n, 1, 32, 32), data.Of(labels))
	if err != nil {
		b.Fatal(err)
	}
	turned := data.Augment(ds, images.ToSample(images.CHW, images.RandomAffine(10, 0.1, 0.1)))
	b.Run("convolution", func(b *testing.B) {
		train(b, turned, func(m loris.Maker) nn.Layer {
			return nn.NewSequential(nn.NewConv2d(1, 32, 3, nn.Padding(1), nn.With(m)), nn.Func(nn.ReLU), nn.MaxPool2d(2),
				nn.NewConv2d(32, 64, 3, nn.Padding(1), nn.With(m)), nn.Func(nn.ReLU), nn.MaxPool2d(2), nn.Func(nn.Flatten),
				nn.NewLinear(64*8*8, classes, nn.With(m)))
		})
	})
}

// train runs a step for each iteration, on batches of 64.
func train(b *testing.B, ds data.Dataset[data.Sample], network func(m loris.Maker) nn.Layer) {
	session, err := loris.New(loris.WithSeed(1))
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close(b.Context())
	m := session.With()
	net := network(m)
	opt := optim.NewAdam(net.Params(), 1e-3)
	l := data.NewLoader(ds, 64, data.Stack, data.Shuffle(1), data.DropLast())
	defer l.Close()
	step := func(batch data.Sample) {
		t := batch.Tensors(m)
		opt.Minimize(net.Forward(t[0]).CrossEntropy(t[1]))
		if err := session.MarkStep(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		batch, err := l.Next(b.Context())
		if err != nil { // the end of an epoch
			batch, err = l.Next(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		step(batch)
	}
	if err := session.WaitDeviceOps(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(100*l.Stats().WaitShare(), "wait%")
}

// BenchmarkLoader is what a loader costs by itself, for each batch of 64 rows of 64 numbers.
func BenchmarkLoader(b *testing.B) {
	rows, err := data.Rows(data.Of(make([]float32, 4096*64), 4096, 64), data.Of(make([]int64, 4096)))
	if err != nil {
		b.Fatal(err)
	}
	l := data.NewLoader(rows, 64, data.Stack, data.Shuffle(1))
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l.Next(b.Context()) // io.EOF at the end of an epoch
	}
}
