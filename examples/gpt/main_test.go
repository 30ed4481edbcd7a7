package main

import (
	"context"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

// After a few steps the model knows little more than which bytes are frequent (3.1 nats a byte; 4.9 for all alike).
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
	session, err := loris.New(loris.WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(context.Background())
	m := session.With()
	net := newGPT(m)
	caches, codes := newCaches(net), m.FromSlice(opticks[:12], 1, 12).Cast(loris.I64)
	parts := []*loris.Tensor{decode(net, codes.Narrow(1, 0, 8), caches)}
	for i := 8; i < 12; i++ {
		parts = append(parts, decode(net, codes.Narrow(1, i, 1), caches))
	}
	same, err := loris.Cat(parts, loris.Dim(1)).Isclose(net.Forward(codes), loris.Atol(1e-5)).All().Item(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if same != 1 {
		t.Error("decoding with caches gives other logits")
	}
}
