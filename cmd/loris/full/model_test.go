package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/commandtest"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
)

const convnet = "../../../onnx/testdata/cases/convnet/model.onnx"

func TestRunModel(t *testing.T) {
	x := f32s("x", []int{1, 1, 8, 8}, make([]float32, 64)...)
	file := filepath.Join(t.TempDir(), "out.safetensors")
	succeed(t, "run", convnet, "--in", inputsFile(t, x), "--out", file)
	outs, _, err := tensors.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if y := outs["logits"]; len(outs) != 1 || y.Shape.String() != "f32[1,10]" {
		t.Errorf("%v", outs)
	}
	if out := succeed(t, "run", convnet, "--random-inputs", "--size", "batch=3"); !strings.HasPrefix(out, "logits: f32[3,10]\n") {
		t.Error(out)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run", convnet}, "missing input x: f32[batch, 1, 8, 8]"},
		{[]string{"run", convnet, "--in", inputsFile(t, f32s("y", []int{1}, 1))}, "missing input"},
		{[]string{"run", convnet, "--in", inputsFile(t, f32s("x", []int{1}, 1))}, "[batch, 1, 8, 8]"},
		{[]string{"run", convnet, "--random-inputs", "--size", "batch=-3"}, "is no size"},
		{[]string{"run", convnet, "--random-inputs", "--size", "n=3"}, "--size n: the sizes of the model that vary are batch"},
		{[]string{"run", commandtest.Write(t, "affine.lir", commandtest.Affine), "--random-inputs", "--size", "n=3"}, "no size of a program in text form varies"},
		{[]string{"run", commandtest.Write(t, "bad.onnx", "no model")}, "byte 0"},
	} {
		code, _, errOut := invoke(t, "", c.args...)
		if code == command.ExitOK || !strings.Contains(errOut, c.says) {
			t.Errorf("loris %s: %d, %s", strings.Join(c.args, " "), code, errOut)
		}
	}
}

func TestInspectModel(t *testing.T) {
	out := succeed(t, "inspect", convnet)
	for _, want := range []string{"model of ONNX, opset 22, written by make_onnx_cases", "x: f32[batch, 1, 8, 8]", "logits: f32[batch, 10]", "conv.weight: f32[4,1,3,3]", "bn.running_var: f32[4] (buffer)", "trainable  698"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out := succeed(t, "inspect", commandtest.Write(t, "affine.lir", commandtest.Affine), "--json"); !strings.Contains(out, `"out1: bool[2]"`) {
		t.Error(out)
	}
}
