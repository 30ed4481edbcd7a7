package onnx_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/onnx"
	"github.com/loris-ml/loris/optim"
)

func load(t *testing.T, name string) *onnx.Model {
	t.Helper()
	m, err := onnx.Load(context.Background(), filepath.Join("testdata", "cases", name, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A loaded network has its weights under their names, takes another batch size, and learns.
func TestTrains(t *testing.T) {
	ctx := context.Background()
	m := load(t, "convnet")
	want := []string{"bn.bias", "bn.weight", "conv.bias", "conv.weight", "fc.bias", "fc.weight"}
	if got := slices.Sorted(maps.Keys(maps.Collect(m.Params()))); !slices.Equal(got, want) {
		t.Errorf("parameters %v, want %v", got, want)
	}
	if got := slices.Sorted(maps.Keys(maps.Collect(m.Buffers()))); !slices.Equal(got, []string{"bn.running_mean", "bn.running_var"}) {
		t.Errorf("buffers %v", got)
	}
	if got := m.Signature().Inputs[0].String(); got != "x: f32[batch, 1, 8, 8]" {
		t.Error(got)
	}
	x := loris.Uniform(-1, 1, 6, 1, 8, 8)
	if err := loris.Sync(ctx, x); err != nil {
		t.Fatal(err)
	}
	y := loris.FromSlice([]int64{0, 1, 2, 3, 4, 5})
	opt := optim.NewSGD(m.Params(), 0.1)
	var losses []float64
	for range 8 {
		out, err := m.Call(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		loss := out[0].CrossEntropy(y)
		opt.Minimize(loss)
		if err := loris.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
		v, err := loss.Item(ctx)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, v)
	}
	if losses[len(losses)-1] >= losses[0]*0.8 {
		t.Errorf("the loss goes %v", losses)
	}
	if s := m.Synced(); len(s) != 0 {
		t.Errorf("a network without sizes that depend on data waited at %v", s)
	}
}

func TestInputsAreChecked(t *testing.T) {
	ctx := context.Background()
	conv, att := load(t, "convnet"), load(t, "attention_block")
	mask := func(n int) *loris.Tensor { return loris.Full(true, n, n) }
	for name, c := range map[string]struct {
		model  *onnx.Model
		inputs []*loris.Tensor
		kind   error
		says   string
	}{
		"missing":    {conv, nil, loris.ErrArg, `"x"`},
		"too many":   {conv, []*loris.Tensor{mask(1), mask(1)}, loris.ErrArg, "takes 1"},
		"dtype":      {conv, []*loris.Tensor{mask(8)}, loris.ErrDType, "f32"},
		"rank":       {conv, []*loris.Tensor{loris.Zeros(8, 8)}, loris.ErrShape, "[batch, 1, 8, 8]"},
		"size":       {conv, []*loris.Tensor{loris.Zeros(2, 1, 8, 9)}, loris.ErrShape, "dimension 3 must be 8"},
		"one symbol": {att, []*loris.Tensor{loris.Zeros(2, 5, 8), mask(4)}, loris.ErrShape, `"time" is 5 in "x" and 4 in "mask"`},
	} {
		_, err := c.model.Call(ctx, c.inputs...)
		var op *loris.OpError
		if !errors.As(err, &op) || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where a branch depends on data, a call waits for it and the model says where.
func TestSyncedIsSaid(t *testing.T) {
	m := load(t, "branch_on_data")
	if _, err := m.Call(context.Background(), loris.FromSlice([]float32{1, 2, 3, 4})); err != nil {
		t.Fatal(err)
	}
	if s := m.Synced(); len(s) != 1 || !strings.HasPrefix(s[0], "If (node 2") {
		t.Errorf("%q", s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Call(ctx, loris.FromSlice([]float32{1, 2, 3, 4})); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Damaged files are errors, wherever they are cut.
func TestDamagedFiles(t *testing.T) {
	b, err := os.ReadFile("testdata/cases/convnet/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	var format *onnx.FormatError
	for _, n := range []int{0, 1, 2, 10, 100, 1000, len(b) - 1} {
		if _, err := onnx.Decode("cut.onnx", b[:n]); !errors.As(err, &format) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A loaded model is a function for loris.Compile, and one that needs data while it is recorded says so.
func TestForward(t *testing.T) {
	ctx := context.Background()
	m := load(t, "attention_block")
	f := loris.Compile(m.Forward)
	x, mask := loris.Randn(2, 5, 8), loris.Full(true, 5, 5)
	if err := loris.Sync(ctx, x, mask); err != nil {
		t.Fatal(err)
	}
	want, err := m.CallNamed(ctx, map[string]*loris.Tensor{"x": x, "mask": mask})
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(ctx, x, mask)
	if err != nil {
		t.Fatal(err)
	}
	a, err := got[0].Float32s(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b, err := want["out"].Float32s(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if d := a[i] - b[i]; d > 1e-5 || d < -1e-5 {
			t.Fatalf("element %d is %v, %v is expected", i, a[i], b[i])
		}
	}
	if _, err := m.CallNamed(ctx, map[string]*loris.Tensor{"y": x}); !errors.Is(err, loris.ErrArg) {
		t.Error(err)
	}
	branch := load(t, "branch_on_data")
	err = loris.Try(func() { branch.Forward(loris.Zeros(4)) })
	if err == nil || !strings.Contains(err.Error(), "node 2 (If)") || !strings.Contains(err.Error(), "use Call") {
		t.Error(err)
	}
	if err := m.To(ctx, loris.Ref); err != nil {
		t.Fatal(err)
	}
	x, err = x.To(ctx, loris.Ref)
	if err != nil {
		t.Fatal(err)
	}
	mask, err = mask.To(ctx, loris.Ref)
	if err != nil {
		t.Fatal(err)
	}
	outs, err := m.Call(ctx, x, mask)
	if err != nil {
		t.Fatal(err)
	}
	if outs[0].Device() != loris.Ref {
		t.Errorf("the result is on %v", outs[0].Device())
	}
	if _, err := outs[0].Float32s(ctx); err != nil {
		t.Error(err)
	}
}
