// Command embed compares sentences with all-MiniLM-L6-v2, a model that PyTorch
// compiled or wrote as ONNX: it prints the matrix of their cosines.
//
//	go run ./examples/embed "A man is eating food." "Someone has a meal." "The sky is blue."
//
// The package and its tokenizer are made once with PyTorch, as docs/export.md
// says (python scripts/aoti_fixtures.py --large --only minilm --out models);
// running them takes neither Python nor libtorch. examples/embed/export.py makes models/minilm.onnx,
// which --model takes, too, and which needs no cgo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"

	"github.com/loris-ml/loris/data/tokenizer"
)

func main() {
	model := flag.String("model", filepath.Join("models", "minilm.pt2"), "package of the model, or its ONNX form (.onnx)")
	tokens := flag.String("tokenizer", "", "tokenizer.json (default: the one beside the package)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *model, *tokens, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// maxTokens is the length to which the model was trained; the rest of a longer sentence is cut off, as
// the published model does.
const maxTokens = 256

func run(ctx context.Context, w io.Writer, model, tokeniser string, sentences []string) error {
	if len(sentences) < 2 {
		return errors.New(`give two sentences or more: go run ./examples/embed "a" "b"`)
	}
	if tokeniser == "" {
		tokeniser = filepath.Join(filepath.Dir(model), "tokenizer.json")
	}
	if _, err := os.Stat(model); err != nil {
		return fmt.Errorf("%w: make it with python scripts/aoti_fixtures.py --large --only minilm --out %s", err, filepath.Dir(model))
	}
	tk, err := tokenizer.Open(tokeniser)
	if err != nil {
		return err
	}
	tokens, mask, err := tokenizer.Batch(tk, sentences, maxTokens)
	if err != nil {
		return err
	}
	vectors, err := Embed(ctx, model, tokens, mask)
	if err != nil {
		return err
	}
	return matrix(w, vectors, sentences)
}

// matrix prints the cosine of each pair; the vectors have unit length.
func matrix(w io.Writer, vectors [][]float32, sentences []string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, a := range vectors {
		for _, b := range vectors {
			fmt.Fprintf(tw, "%.6f\t", cosine(a, b))
		}
		fmt.Fprintln(tw, sentences[i])
	}
	return tw.Flush()
}

func cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
