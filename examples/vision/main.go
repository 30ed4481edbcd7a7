// Command vision trains a small convolutional network on 1,437 handwritten digits, with random turns,
// shifts and scales of each image, and tests it once, at the end, on the 360 others:
//
//	go run ./examples/vision
//
// 359 or 360 of them are right (99.7 or 100 %), for each of four random splits and two seeds. The
// same people wrote the digits of both parts of a split; those of strangers are harder.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
	"github.com/loris-ml/loris/data/images"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

const (
	batchSize = 48
	rate      = 3e-3
	side      = 8 // pixels of an image, in both directions
)

// result is how a training run went.
type result struct {
	right, tested int
	stats         data.Stats
}

func main() {
	epochs := flag.Int("epochs", 20, "how often the training images are seen")
	seed := flag.Uint64("seed", 1, "of weights, order and augmentation")
	split := flag.Uint64("split", 42, "seed of the division into training and test images")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := train(ctx, os.Stdout, *epochs, *seed, *split); err != nil {
		fmt.Fprintln(os.Stderr, "vision:", err)
		os.Exit(1)
	}
}

// network returns the layers, whose variables m makes: two convolutions at 8 by 8 pixels, two at 4
// by 4, and a linear layer.
func network(m loris.Maker) *nn.Sequential {
	var layers []nn.Layer
	block := func(in, out int) {
		layers = append(layers, nn.NewConv2d(in, out, 3, nn.Padding(1), nn.NoBias(), nn.With(m)),
			nn.NewBatchNorm2d(out, nn.With(m)), nn.Func(nn.ReLU))
	}
	block(1, 32)
	block(32, 32)
	layers = append(layers, nn.MaxPool2d(2))
	block(32, 64)
	block(64, 64)
	layers = append(layers, nn.MaxPool2d(2), nn.Func(nn.Flatten), nn.NewDropout(0.3), nn.NewLinear(64*2*2, digits.Classes, nn.With(m)))
	return nn.NewSequential(layers...)
}

// loaders returns the training images, drawn at random and augmented, and the test images as they are.
func loaders(seed, split uint64) (train, test *data.Loader[data.Sample, data.Sample], err error) {
	all, err := digits.Load()
	if err != nil {
		return nil, nil, err
	}
	trainPart, testPart := all.Split(split)
	dataset := func(d *digits.Dataset) (data.Dataset[images.Labeled], error) {
		return images.FromArray(data.Of(d.Pixels, d.Len(), side, side), data.Of(d.Labels))
	}
	trainSet, err := dataset(trainPart)
	if err != nil {
		return nil, nil, err
	}
	testSet, err := dataset(testPart)
	if err != nil {
		return nil, nil, err
	}
	augmented := data.Augment(trainSet, images.ToSample(images.CHW, images.RandomAffine(12, 0.1, 0.12)))
	train = data.NewLoader(augmented, batchSize, data.Stack, data.Shuffle(seed), data.DropLast())
	test = data.NewLoader(data.Augment(testSet, images.ToSample(images.CHW)), digits.TestPerClass, data.Stack)
	return train, test, nil
}

// train trains for a number of epochs, tests once and writes what happens to w.
func train(ctx context.Context, w io.Writer, epochs int, seed, split uint64) (r result, err error) {
	session, err := loris.New(loris.WithSeed(seed), loris.WithFlushDenormals())
	if err != nil {
		return r, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	batches, test, err := loaders(seed, split)
	if err != nil {
		return r, err
	}
	defer batches.Close()
	defer test.Close()
	m := session.With()
	net := network(m)
	steps := epochs * batches.Batches()
	opt := optim.NewAdamW(net.Params(), rate, optim.WeightDecay(0.02))
	opt.SetSchedule(optim.Warmup(0, steps/20, optim.Cosine(rate, 0, steps-steps/20)))
	for epoch := range epochs {
		start, loss := time.Now(), (*loris.Tensor)(nil)
		for batch, err := range batches.Epoch(ctx) {
			if err != nil {
				return r, err
			}
			t := batch.Tensors(m)
			loss = net.Forward(t[0]).CrossEntropy(t[1], loris.LabelSmoothing(0.1)).Keep()
			opt.Minimize(loss)
			if err := session.MarkStep(ctx); err != nil {
				return r, err
			}
		}
		last, err := loss.Item(ctx)
		if err != nil {
			return r, err
		}
		fmt.Fprintf(w, "epoch %2d  loss %.4f  %v\n", epoch+1, last, time.Since(start).Round(time.Millisecond))
	}
	r.stats = batches.Stats()
	net.SetTraining(false)
	for batch, err := range test.Epoch(ctx) {
		if err != nil {
			return r, err
		}
		t := batch.Tensors(m)
		right, err := net.Forward(t[0]).Argmax(loris.Dim(1)).Eq(t[1]).Sum().Item(ctx)
		if err != nil {
			return r, err
		}
		r.right, r.tested = r.right+int(math.Round(right)), r.tested+batch.Len()
	}
	fmt.Fprintf(w, "%d of %d test images right: %.2f %%. The training waited %.2f %% of its time for data.\n",
		r.right, r.tested, 100*float64(r.right)/float64(r.tested), 100*r.stats.WaitShare())
	return r, nil
}
