package pt2

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Real packages, made by PyTorch, are read whole: every input is known, every
// symbol has a class, and the private copy asks for nothing under its old name.
func TestFixtures(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "aoti", "testdata", "*.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skip("no packages in aoti/testdata")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, err := Open(path)
			if filepath.Base(path) == "exported.pt2" {
				if err == nil || !strings.Contains(err.Error(), "torch.export.save") {
					t.Errorf("a package without compiled code: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := p.Verify(); err != nil {
				t.Error(err)
			}
			for _, m := range p.Models() {
				checkFixture(t, m)
			}
		})
	}
}

func checkFixture(t *testing.T, m *Model) {
	t.Helper()
	s, err := m.Spec()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := m.Library()
	if err != nil {
		t.Fatal(err)
	}
	old := lib.Generation().Version == "2.6" // tells shapes only if compiled for debugging
	for i := range s.Inputs {
		if in := &s.Inputs[i]; !old && (!in.Known || in.TypeName == "" || in.Device == "") {
			t.Errorf("%s: input %d is not known: %s", m.Name, i, in)
		}
	}
	if m.SourceFile != "" && len(s.Outputs) == 0 {
		t.Errorf("%s: no outputs", m.Name)
	}
	for _, c := range s.Constants {
		if c.Name == "" || c.TypeName == "" || len(c.Sizes) != len(c.Strides) {
			t.Errorf("%s: constant %+v", m.Name, c)
		}
	}
	if m.Metadata.Device() == "" {
		t.Errorf("%s: no metadata", m.Name)
	}
	if lib.Generation().Version == "" {
		t.Errorf("%s: generation %v", m.Name, lib.Generation())
	}
	if runtime.GOOS != "linux" {
		return
	}
	priv, err := m.Private(context.Background(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer priv.Close()
	after, err := ReadLibrary(priv.File(), lib.Size)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range after.Undefined {
		if HostName(s.Name) != s.Name {
			t.Errorf("%s: the copy asks for %s", m.Name, s.Name)
		}
	}
	for _, name := range after.Needed {
		if replacedLibrary(name) {
			t.Errorf("%s: the copy needs %s", m.Name, name)
		}
	}
}
