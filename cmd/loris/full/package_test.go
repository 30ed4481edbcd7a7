package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/ir"
)

// What was trained is written as a package, which computes what the network of the weights does.
func TestTrainWritesAPackage(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	out := succeed(t, "train", "digits", "--epochs", "1", "--batch", "400", "--hidden", "16", "--out", dir, "--package", at("digits.pt2"))
	if !strings.Contains(out, "wrote "+at("digits.pt2")+" for PyTorch\n") {
		t.Error(out)
	}
	w, _, err := tensors.ReadFile(at("digits.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	needLoading(t, at("digits.pt2"))
	x := ir.MakeShape(ir.F32, 3, 64)
	ones := make([]byte, 0, x.Bytes())
	for range x.Numel() {
		ones = append(ones, 0, 0, 0x80, 0x3f)
	}
	if err := tensors.WriteFile(at("in"), []tensors.Tensor{{Name: "input0", Shape: x, Data: ones}}, nil); err != nil {
		t.Fatal(err)
	}
	// The same network, as a program of the weights' names.
	program := `program @digits {
  %x = parameter "input0" : f32[3,64]
  %w = parameter "0.weight" : f32[16,64]
  %b = parameter "0.bias" : f32[16]
  %v = parameter "2.weight" : f32[10,16]
  %c = parameter "2.bias" : f32[10]
  %h = relu(add(matmul(%x, permute(%w, [1,0])), %b))
  return add(matmul(%h, permute(%v, [1,0])), %c)
}
`
	all := []tensors.Tensor{{Name: "input0", Shape: x, Data: ones}}
	for name, v := range w {
		v.Name = name
		all = append(all, v)
	}
	if err := tensors.WriteFile(at("all"), all, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("digits.lir"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	succeed(t, "run", at("digits.lir"), "--in", at("all"), "--out", at("want"))
	succeed(t, "aoti", "run", at("digits.pt2"), "--in", at("in"), "--compare", at("want"))
}
