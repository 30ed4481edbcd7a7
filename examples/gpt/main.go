// Command gpt trains a small language model on the first part of Newton's Opticks (1704, in the public
// domain), byte by byte, and lets it write:
//
//	go run ./examples/gpt
//
// The loss on the tenth of the text that it has not seen goes from 4.3 to about 1.5 nats a byte.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/optim"
)

//go:embed opticks.txt.gz
var opticks []byte

const (
	width, heads, depth = 96, 4, 3
	batchSize, window   = 16, 128
)

func main() {
	steps := flag.Int("steps", 400, "training steps")
	length := flag.Int("length", 400, "bytes to write")
	temperature := flag.Float64("temperature", 0.7, "0 takes the likeliest byte")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, err := run(ctx, os.Stdout, *steps, *length, *temperature); err != nil {
		fmt.Fprintln(os.Stderr, "gpt:", err)
		os.Exit(1)
	}
}

// run trains, tests, writes, and returns the loss on text that was not trained on.
func run(ctx context.Context, w io.Writer, steps, length int, temperature float64) (loss float64, err error) {
	session, err := loris.New(loris.WithSeed(1))
	if err != nil {
		return 0, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	text, err := readText()
	if err != nil {
		return 0, err
	}
	m := session.With()
	net := newGPT(m, text.vocabulary())
	train, test := text.split(0.9)
	if err := net.train(ctx, w, session, train, steps); err != nil {
		return 0, err
	}
	net.SetTraining(false)
	x, y := test.windows(m, rand.New(rand.NewPCG(2, 0)), 32)
	if loss, err = net.loss(x, y).Item(ctx); err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "%.3f nats a byte on text that it has not seen\n\n", loss)
	return loss, net.write(ctx, w, m, text, "The Rays of Light ", length, temperature)
}

// train takes steps, each on windows of the text that begin anywhere.
func (g *gpt) train(ctx context.Context, w io.Writer, session *loris.Session, text *text, steps int) error {
	m, r := session.With(), rand.New(rand.NewPCG(1, 0))
	opt := optim.NewAdamW(g.Params(), 2e-3, optim.WeightDecay(0.05))
	opt.SetSchedule(optim.Warmup(0, steps/10+1, optim.Cosine(2e-3, 1e-4, steps-steps/10)))
	start, from := time.Now(), 0
	for step := 1; step <= steps; step++ {
		x, y := text.windows(m, r, batchSize)
		loss := g.loss(x, y).Keep()
		opt.Minimize(loss)
		if err := session.MarkStep(ctx); err != nil {
			return err
		}
		if step%100 != 0 && step != steps {
			continue
		}
		last, err := loss.Item(ctx)
		if err != nil {
			return err
		}
		rate := float64((step-from)*batchSize*window) / time.Since(start).Seconds()
		fmt.Fprintf(w, "step %4d  loss %.3f  %.0f tokens/s\n", step, last, rate)
		start, from = time.Now(), step
	}
	return nil
}

// write continues a prompt: its bytes go through the model at once, then each new one by itself, over
// caches of keys and values, with one compilation for each of the two. The caches slide: no byte looks
// back further than a window, as in training.
func (g *gpt) write(ctx context.Context, w io.Writer, m loris.Maker, text *text, prompt string, length int, temperature float64) error {
	caches := g.caches(1)
	next := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		logits := g.decode(in[0], caches).Select(1, -1)
		return []*loris.Tensor{loris.Categorical(logits, loris.Temperature(temperature)).Unsqueeze(1)}
	})
	x := m.FromSlice(text.codes([]byte(prompt)), 1, len(prompt))
	fmt.Fprint(w, prompt)
	start := time.Now()
	for range length {
		out, err := next.Call(ctx, x)
		if err != nil {
			return err
		}
		x = out[0]
		code, err := x.Item(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%c", text.alphabet[int(code)])
	}
	fmt.Fprintf(w, "\n\n%.0f tokens/s\n", float64(length)/time.Since(start).Seconds())
	return nil
}

func readText() (*text, error) {
	z, err := gzip.NewReader(bytes.NewReader(opticks))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	return newText(all), nil
}
