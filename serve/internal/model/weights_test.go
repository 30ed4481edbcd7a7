package model

import (
	"bytes"
	"context"
	"testing"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/weights"
)

// Each run says which set of weights computed it, and a roll back gives the same bits
// as before.
func TestWeights(t *testing.T) {
	ctx := context.Background()
	m := openFixture(t, "dynamic_batch", Options{Updatable: true, Golden: "none"})
	w := caseWork(t, m, openTensors(t, "dynamic_batch"), 0)
	run := func(want string) []byte {
		t.Helper()
		r, err := m.Run(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		if r.WeightVersion != want {
			t.Errorf("weights %q computed, want %q", r.WeightVersion, want)
		}
		return bytes.Clone(r.Outputs[0][0].Data)
	}
	before := run(weights.Initial)
	constants, err := m.Container().ExtractConstants(ctx, container.Active, true)
	if err != nil {
		t.Fatal(err)
	}
	var tensors []safetensors.Tensor
	for name, b := range constants {
		data, err := b.Bytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := tensorfile.Tensor(name, b.Shape(), make([]byte, len(data)))
		if !ok {
			t.Fatalf("%s is %v", name, b.Shape())
		}
		tensors = append(tensors, s)
		b.Release()
	}
	var zeros bytes.Buffer
	if err := safetensors.Write(&zeros, tensors, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Weights().Update(ctx, &zeros, weights.Update{Name: "zeros"}); err != nil {
		t.Fatal(err)
	}
	// Biases of few elements are numbers in the code: all rows are alike, not zero.
	row := int(4 * m.Outputs[0].Shape[1])
	if after := run("zeros"); bytes.Equal(after, before) || !bytes.Equal(after[row:], after[:len(after)-row]) {
		t.Errorf("without weights it computes %v", after)
	}
	if _, _, err := m.Weights().Activate(ctx, weights.Initial); err != nil {
		t.Fatal(err)
	}
	if again := run(weights.Initial); !bytes.Equal(again, before) {
		t.Error("rolled back it computes other bits than before")
	}
	if plain := openFixture(t, "dynamic_batch", Options{}); plain.Weights() != nil {
		t.Error("a model that was not opened as updatable has sets of weights")
	}
}
