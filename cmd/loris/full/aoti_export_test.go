package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// A program in text form becomes a package, which computes what the program does.
func TestAOTIExport(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join("..", "..", "..", "aoti", "export", "testdata", "mlp.lir")
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	p, err := graph.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var all, weights, in []tensors.Tensor
	for _, q := range p.Params {
		x := tensors.Random(q.Name, q.Shape, r)
		if all = append(all, x); strings.HasPrefix(q.Name, "w") {
			weights = append(weights, x)
		} else {
			in = append(in, x)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, list := range map[string][]tensors.Tensor{"all": all, "weights": weights, "in": in} {
		if err := tensors.WriteFile(at(name), list, nil); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, "run", program, "--in", at("all"), "--out", at("want"))
	out := succeed(t, "aoti", "export", program, "--weights", at("weights"), "-o", at("m.pt2"), "--model", "net")
	if !strings.Contains(out, "with 1 inputs and 4 constants") {
		t.Error(out)
	}
	if out := succeed(t, "aoti", "inspect", at("m.pt2")); !strings.Contains(out, "x: float32[32, 64] on cpu") || !strings.Contains(out, "PyTorch 2.15 (47") {
		t.Error(out)
	}
	code, _, errOut := invoke(t, "", "aoti", "export", program, "--weights", at("all"), "-o", at("n.pt2"), "--torch", "1.9")
	if code == 0 || !strings.Contains(errOut, "1.9") {
		t.Error(code, errOut)
	}
	needLoading(t, at("m.pt2"))
	succeed(t, "aoti", "run", at("m.pt2"), "--in", at("in"), "--compare", at("want"))
}

// Sizes of --dynamic-shapes vary, in a program's package and in an imported model's.
func TestAOTIExportOfSizesThatVary(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	root := filepath.Join("..", "..", "..")
	program, imported := at("p.lir"), filepath.Join(root, "onnx", "testdata", "cases", "convnet", "model.onnx")
	text := "program @p {\n  %x = parameter \"x\" : f32[4,8]\n  return softmax(relu(%x), -1)\n}\n"
	if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{program, "--dynamic-shapes", "x:0"}, "INPUT:DIMENSION=NAME[MIN:MAX]"},
		{[]string{program, "--dynamic-shapes", "y:0=batch[1:4]"}, "the inputs are x"},
		{[]string{program, "--dynamic-shapes", "x:2=batch[1:4]"}, "no dimension 2"},
		{[]string{program, "--dynamic-shapes", "x:0=batch[5:6]"}, "is 4"},
		{[]string{program, "--size", "n=4"}, "leaves no size open"},
		{[]string{imported, "--weights", "w"}, "has its weights itself"},
		{[]string{imported, "--assign", "nobody=0"}, "the inputs are"},
	} {
		if code, _, errOut := invoke(t, "", append([]string{"aoti", "export", "-o", at("no.pt2")}, c.args...)...); code == 0 || !strings.Contains(errOut, c.want) {
			t.Errorf("%v: %d, %s", c.args, code, errOut)
		}
	}
	if _, err := os.Stat(at("no.pt2")); err == nil {
		t.Error("a package that failed is there")
	}
	succeed(t, "aoti", "export", program, "-o", at("p.pt2"), "--dynamic-shapes", "x:0=batch[1:16]")
	succeed(t, "aoti", "export", imported, "-o", at("m.pt2"))
	needLoading(t, at("p.pt2"))
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 16} {
		one := at("one.lir")
		if err := os.WriteFile(one, []byte(strings.Replace(text, "[4,8]", fmt.Sprintf("[%d,8]", n), 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		x := tensors.Random("x", ir.MakeShape(ir.F32, n, 8), r)
		if err := tensors.WriteFile(at("in"), []tensors.Tensor{x}, nil); err != nil {
			t.Fatal(err)
		}
		succeed(t, "run", one, "--in", at("in"), "--out", at("want"))
		succeed(t, "aoti", "run", at("p.pt2"), "--in", at("in"), "--compare", at("want"))
	}
	succeed(t, "run", imported, "--random-inputs", "--seed", "7", "--out", at("want"))
	succeed(t, "aoti", "run", at("m.pt2"), "--random-inputs", "--seed", "7", "--out", at("got"))
	want, _, err := tensors.ReadFile(at("want"))
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := tensors.ReadFile(at("got"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || len(want) != 1 {
		t.Fatalf("%d outputs, want %d", len(got), len(want))
	}
	for name := range got { // the package's, where the model has another
		for _, x := range want {
			x.Name = name
			if err := tensors.WriteFile(at("renamed"), []tensors.Tensor{x}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	succeed(t, "aoti", "run", at("m.pt2"), "--random-inputs", "--seed", "7", "--compare", at("renamed"))
}
