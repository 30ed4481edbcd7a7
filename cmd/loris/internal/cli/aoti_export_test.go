package cli

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/graph"
)

// A program in text form becomes a package, which computes what the program does.
func TestAOTIExport(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join("..", "..", "..", "..", "aoti", "export", "testdata", "mlp.lir")
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
