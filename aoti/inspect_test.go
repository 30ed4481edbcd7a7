package aoti

import (
	"path/filepath"
	"slices"
	"testing"
)

// Inspecting tells what loading would: a model is loaded if nothing is missing,
// and refused for what is.
func TestInspect(t *testing.T) {
	r, err := Inspect(filepath.Join("testdata", "proxy_refused.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Model("")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(m.Missing, "aten::linalg_ldl_factor_ex") {
		t.Errorf("missing are %v", m.Missing)
	}
	if len(m.Inputs) != 1 || m.Inputs[0].DType != "float32" || m.Library == "" {
		t.Errorf("the model is %+v", m)
	}
	if _, err := Inspect(filepath.Join("testdata", "README.md")); err == nil {
		t.Error("a text is a package")
	}
}
