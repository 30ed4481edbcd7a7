// Command finetune teaches a ResNet-18 that PyTorch exported ten digits, of which it knows five:
//
//	python examples/finetune/export.py resnet18.pt2
//	go run ./examples/finetune resnet18.pt2
//
// It tests the model on 360 images before and after, and writes the weights under PyTorch's names to
// finetuned.safetensors (--out), for load_state_dict. Batch norms keep the statistics with which the model was
// exported: it was exported for evaluation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/torchexport"
)

const (
	batchSize = 32
	side      = 8 // pixels of an image, in both directions
	enlarged  = 4 // the model's images have so many times the pixels, in both directions
)

func main() {
	epochs := flag.Int("epochs", 6, "how often the training images are seen")
	rate := flag.Float64("rate", 2e-3, "learning rate")
	out := flag.String("out", "finetuned.safetensors", "where the weights go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, _, err := command(ctx, os.Stdout, flag.Args(), *out, *epochs, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "finetune:", err)
		os.Exit(1)
	}
}

// command returns how many of the 360 test images are right before and after.
func command(ctx context.Context, w io.Writer, args []string, out string, epochs int, rate float64) (before, after int, err error) {
	if len(args) != 1 {
		return 0, 0, errors.New("give the program that examples/finetune/export.py wrote")
	}
	m, err := torchexport.Load(ctx, args[0])
	if err != nil {
		return 0, 0, err
	}
	all, err := digits.Load()
	if err != nil {
		return 0, 0, err
	}
	train, test := all.Split(42)
	if before, err = right(ctx, m, test); err != nil {
		return 0, 0, err
	}
	fmt.Fprintf(w, "before    %d of %d test images right\n", before, test.Len())
	if err := finetune(ctx, w, m, train, epochs, rate); err != nil {
		return 0, 0, err
	}
	if after, err = right(ctx, m, test); err != nil {
		return 0, 0, err
	}
	fmt.Fprintf(w, "after     %d of %d test images right\n", after, test.Len())
	if err := nn.Save(ctx, out, m, nil); err != nil {
		return 0, 0, err
	}
	fmt.Fprintln(w, "weights are in", filepath.Clean(out))
	return before, after, nil
}

// finetune trains all parameters of m.
func finetune(ctx context.Context, w io.Writer, m *torchexport.Model, train *digits.Dataset, epochs int, rate float64) error {
	steps := epochs * (train.Len() / batchSize)
	opt := optim.NewAdamW(m.Params(), rate, optim.WeightDecay(0.01))
	opt.SetSchedule(optim.Cosine(rate, 0, steps))
	for epoch := range epochs {
		start, loss := time.Now(), (*loris.Tensor)(nil)
		for batch := range train.Batches(batchSize, 1, uint64(epoch)) {
			if batch.Len() < batchSize {
				continue
			}
			images, labels := tensors(batch)
			outs, err := m.Call(ctx, images)
			if err != nil {
				return err
			}
			loss = outs[0].CrossEntropy(labels).Keep()
			opt.Minimize(loss)
			if err := loris.MarkStep(ctx); err != nil {
				return err
			}
		}
		last, err := loss.Item(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "epoch %2d  loss %.4f  %v\n", epoch+1, last, time.Since(start).Round(time.Millisecond))
	}
	return nil
}

// tensors returns images as the model takes them, [n, 3, 32, 32], and their labels.
func tensors(d *digits.Dataset) (images, labels *loris.Tensor) {
	images = loris.FromSlice(d.Pixels, d.Len(), 1, side, side)
	images = images.Interpolate(loris.ScaleFactor(enlarged))
	return images.Expand(d.Len(), 3, side*enlarged, side*enlarged), loris.FromSlice(d.Labels, d.Len())
}

// right returns how many images the model tells.
func right(ctx context.Context, m *torchexport.Model, d *digits.Dataset) (int, error) {
	images, labels := tensors(d)
	outs, err := m.Call(ctx, images)
	if err != nil {
		return 0, err
	}
	n, err := outs[0].Argmax(loris.Dim(1)).Eq(labels).Sum().Item(ctx)
	return int(math.Round(n)), err
}
