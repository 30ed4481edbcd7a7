package main

import (
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/longtest"
)

// In short form the network is not good yet, but has learned; the long one is what the command does.
func TestTrain(t *testing.T) {
	epochs, least := 2, 324 // 90 %
	if longtest.Enabled() {
		epochs, least = 20, 358 // 99.4 %
	}
	var out strings.Builder
	r, err := train(t.Context(), &out, epochs, 1, 42)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if r.tested != 360 || r.right < least {
		t.Errorf("%d of %d images are right, want %d", r.right, r.tested, least)
	}
	if n := 1437 / batchSize * epochs; r.stats.Batches != n {
		t.Errorf("%d training steps, want %d", r.stats.Batches, n)
	}
}
