package main

import (
	"context"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

// After a few steps the model knows little more than which bytes are frequent (3.1 nats a byte; 4.3 for all alike).
// It writes more than it looks back to.
func TestRun(t *testing.T) {
	var out strings.Builder
	loss, err := run(t.Context(), &out, 8, window+20, 0.7)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if loss > 3.7 {
		t.Errorf("%.3f nats a byte, want at most 3.7", loss)
	}
}

// What is written with caches is what the model makes of the whole text at once.
func TestDecodeIsForward(t *testing.T) {
	text, err := readText()
	if err != nil {
		t.Fatal(err)
	}
	session, err := loris.New(loris.WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(context.Background())
	m := session.With()
	net := newGPT(m, text.vocabulary())
	codes := text.data[:12]
	caches := net.caches(1)
	prompt := net.decode(m.FromSlice(codes[:8], 1, 8), caches)
	parts := []*loris.Tensor{prompt}
	for i := 8; i < len(codes); i++ {
		parts = append(parts, net.decode(m.FromSlice(codes[i:i+1], 1, 1), caches))
	}
	whole := net.Forward(m.FromSlice(codes, 1, len(codes)))
	same, err := loris.Cat(parts, loris.Dim(1)).Isclose(whole, loris.Atol(1e-5)).All().Item(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if same != 1 {
		t.Error("decoding with caches gives other logits")
	}
}
