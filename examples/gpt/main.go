// Command gpt trains a small language model on the first part of Newton's Opticks (1704, in the public
// domain), byte by byte, and lets it write:
//
//	go run ./examples/gpt
//
// The loss on the tenth of the text that it has not seen goes from 4.9 to about 1.5 nats a byte.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

//go:embed opticks.txt
var opticks []byte // ASCII

const vocabulary, width, heads, depth, batchSize, window = 128, 96, 4, 3, 16, 128

func main() {
	steps := flag.Int("steps", 400, "training steps")
	length := flag.Int("length", 400, "bytes to write")
	temperature := flag.Float64("temperature", 0.7, "0 takes the likeliest byte")
	flag.Parse()
	if _, err := run(context.Background(), os.Stdout, *steps, *length, *temperature); err != nil {
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
	defer session.Close(ctx)
	m, cut := session.With(), len(opticks)*9/10
	net := newGPT(m)
	if err := train(ctx, w, session, net, opticks[:cut], steps); err != nil {
		return 0, err
	}
	net.SetTraining(false)
	if loss, err = meanLoss(net, m, opticks[cut:], rand.New(rand.NewPCG(2, 0)), 32).Item(ctx); err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "%.3f nats a byte on text that it has not seen\n\n", loss)
	return loss, write(ctx, w, m, net, []byte("The Rays of Light "), length, temperature)
}

// newGPT is a transformer that maps bytes [batch, L], i64, to logits [batch, L, vocabulary] of the byte
// behind each: rotary positions, normalisation before each layer.
func newGPT(m loris.Maker) *nn.Sequential {
	with := nn.With(m)
	layers := []nn.Layer{nn.NewEmbedding(vocabulary, width, with)}
	for range depth {
		layers = append(layers, nn.NewTransformerEncoderLayer(width, heads, 4*width, with,
			nn.NormFirst(), nn.Activation(nn.GELUTanh), nn.Causal(), nn.Rotary(10_000)))
	}
	return nn.NewSequential(append(layers, nn.NewLayerNorm([]int{width}, with), nn.NewLinear(width, vocabulary, nn.NoBias(), with))...)
}

// newCaches makes one for each block, of the last window of bytes.
func newCaches(net *nn.Sequential) (caches []*nn.KVCache) {
	for i := range depth {
		caches = append(caches, net.Layer(1+i).(*nn.TransformerEncoderLayer).SelfAttn.NewKVCache(1, window, true))
	}
	return caches
}

// decode is Forward of the next bytes of a sequence that caches hold.
func decode(net *nn.Sequential, x *loris.Tensor, caches []*nn.KVCache) *loris.Tensor {
	x = net.Layer(0).Forward(x)
	for i, c := range caches {
		x = net.Layer(1+i).(*nn.TransformerEncoderLayer).Decode(x, c)
	}
	return net.Layer(depth + 2).Forward(net.Layer(depth + 1).Forward(x))
}

// meanLoss is the mean cross entropy on n windows of a text that begin at random, in nats a byte.
func meanLoss(net *nn.Sequential, m loris.Maker, text []byte, r *rand.Rand, n int) *loris.Tensor {
	var codes []byte
	for range n {
		at := r.IntN(len(text) - window)
		codes = append(codes, text[at:at+window+1]...)
	}
	x := m.FromSlice(codes, n, window+1).Cast(loris.I64)
	return net.Forward(x.Narrow(1, 0, window)).Flatten(loris.EndDim(1)).CrossEntropy(x.Narrow(1, 1, window).Flatten())
}

// train takes steps, each on windows of the text that begin anywhere.
func train(ctx context.Context, w io.Writer, session *loris.Session, net *nn.Sequential, text []byte, steps int) error {
	r := rand.New(rand.NewPCG(1, 0))
	opt := optim.NewAdamW(net.Params(), 2e-3, optim.WeightDecay(0.05))
	opt.SetSchedule(optim.Warmup(0, steps/10+1, optim.Cosine(2e-3, 1e-4, steps-steps/10)))
	start := time.Now()
	for step := 1; step <= steps; step++ {
		loss := meanLoss(net, session.With(), text, r, batchSize).Keep()
		opt.Minimize(loss)
		if err := session.MarkStep(ctx); err != nil {
			return err
		}
		if step%100 == 0 || step == steps {
			last, err := loss.Item(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "step %4d  loss %.3f  %.0f tokens/s\n", step, last, float64(step*batchSize*window)/time.Since(start).Seconds())
		}
	}
	return nil
}

// write continues a prompt: its bytes go through the model at once, then each new one by itself, with
// one compilation for each of the two. The caches slide: no byte looks back further than a window.
func write(ctx context.Context, w io.Writer, m loris.Maker, net *nn.Sequential, prompt []byte, length int, temperature float64) error {
	caches := newCaches(net)
	next := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		logits := decode(net, in[0], caches).Select(1, -1)
		return []*loris.Tensor{loris.Categorical(logits, loris.Temperature(temperature)).Unsqueeze(1)}
	})
	x := m.FromSlice(prompt, 1, len(prompt)).Cast(loris.I64)
	fmt.Fprintf(w, "%s", prompt)
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
		fmt.Fprintf(w, "%c", byte(code))
	}
	fmt.Fprintf(w, "\n\n%.0f tokens/s\n", float64(length)/time.Since(start).Seconds())
	return nil
}
