// Command generate continues a text with a GPT-2 that PyTorch exported together with its cache of keys and
// values:
//
//	python examples/generate/export.py gpt2.pt2
//	go run ./examples/generate --prompt "The Rays of Light " gpt2.pt2
//
// The cache is buffers of the program: the prompt goes through the model at once, and then each byte by
// itself, with one compilation for each of the two.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/loris-ml/loris"
	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/torchexport"
)

func main() {
	prompt := flag.String("prompt", "The Rays of Light ", "what the text begins with, in ASCII")
	length := flag.Int("length", 200, "bytes to write")
	temperature := flag.Float64("temperature", 0.7, "0 takes the likeliest byte")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Stdout, flag.Args(), *prompt, *length, *temperature); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, w io.Writer, args []string, prompt string, length int, temperature float64) error {
	if len(args) != 1 {
		return errors.New("give the program that examples/generate/export.py wrote")
	}
	g, err := open(ctx, args[0], temperature)
	if err != nil {
		return err
	}
	start := time.Now()
	fmt.Fprint(w, prompt)
	if err := g.write(ctx, w, prompt, length); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n\n%.0f bytes/s\n", float64(length)/time.Since(start).Seconds())
	return nil
}

// generator is a model with the cache of one text.
type generator struct {
	model *torchexport.Model
	next  *loris.Function // numbers of bytes [1, n] -> the number of the one that follows, [1, 1]
}

func open(ctx context.Context, path string, temperature float64) (*generator, error) {
	m, err := torchexport.Load(ctx, path)
	if err != nil {
		return nil, err
	}
	return &generator{m, loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		logits := m.Forward(in[0])[0].Select(1, -1)
		return []*loris.Tensor{loris.Categorical(logits, loris.Temperature(temperature)).Unsqueeze(1)}
	})}, nil
}

// write writes the bytes that follow the prompt, which begins a new text.
func (g *generator) write(ctx context.Context, w io.Writer, prompt string, length int) error {
	room := 0
	for name, v := range g.model.Buffers() {
		if name == "keys_0" {
			room = v.Value().Dim(2)
		}
		v.Assign(v.Value().ZerosLike())
	}
	if n := len(prompt) + length - 1; prompt == "" || n > room {
		return fmt.Errorf("the model reads 1 to %d bytes, not the %d of this prompt and text", room, n)
	}
	ids := make([]int64, len(prompt))
	for i, c := range []byte(prompt) {
		ids[i] = int64(c)
	}
	x := loris.FromSlice(ids, 1, len(ids))
	for range length {
		out, err := g.next.Call(ctx, x)
		if err != nil {
			return err
		}
		x = out[0]
		code, err := x.Item(ctx)
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte{byte(code)}); err != nil {
			return err
		}
	}
	return nil
}
