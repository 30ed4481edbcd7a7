package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/data/tokenizer"
)

func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), os.Stdout, filepath.Join(dir, "none.pt2"), "", []string{"a", "b"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no package: %v", err)
	}
	model := filepath.Join(dir, "model.pt2")
	if err := os.WriteFile(model, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), os.Stdout, model, "", []string{"a", "b"}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("no tokenizer: %v", err)
	}
	if err := run(t.Context(), os.Stdout, "x", "", []string{"a"}); err == nil {
		t.Error("one sentence: no error")
	}
}

// The model of ONNX embeds sentences as PyTorch does. Its 90 MB are not here: export.py makes them.
func TestONNXEmbedsAsPyTorch(t *testing.T) {
	dir := os.Getenv("LORIS_MINILM")
	if dir == "" {
		t.Skip("LORIS_MINILM does not name the folder that examples/embed/export.py writes")
	}
	text, err := os.ReadFile(filepath.Join("testdata", "minilm.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Sentence  string
		Embedding []float64
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 2 {
		t.Fatal(len(rows), err)
	}
	tk, err := tokenizer.Open(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sentences []string
	for _, r := range rows {
		sentences = append(sentences, r.Sentence)
	}
	tokens, mask, err := tokenizer.Batch(tk, sentences, maxTokens)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Embed(t.Context(), filepath.Join(dir, "minilm.onnx"), tokens, mask)
	if err != nil || len(got) != len(rows) {
		t.Fatal(len(got), err)
	}
	worst := 0.0
	for i, r := range rows {
		if len(got[i]) != len(r.Embedding) {
			t.Fatalf("%q has %d numbers, want %d", r.Sentence, len(got[i]), len(r.Embedding))
		}
		for k, want := range r.Embedding {
			worst = max(worst, math.Abs(float64(got[i][k])-want))
		}
	}
	t.Logf("largest difference of %d embeddings: %.2g", len(rows), worst)
	if worst > 1e-6 {
		t.Errorf("off by %g", worst)
	}
}
