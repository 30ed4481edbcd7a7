package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program is what `export.py gpt2.pt2 --width 40 --layers 2 --length 128 --steps 2500 --plain` writes.
var program = filepath.Join("testdata", "gpt2.pt2")

// The text is the one that PyTorch writes without a cache; the second is written over the first's cache.
func TestTextIsPyTorchs(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "gpt2.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	g, err := open(t.Context(), program, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{"The Rays of Light ", "The Rays of Light which "} {
		var text strings.Builder
		if err := g.write(t.Context(), &text, prompt, len(want)-len(prompt)); err != nil {
			t.Fatal(err)
		}
		if got := prompt + text.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestCommand(t *testing.T) {
	var out strings.Builder
	if err := command(t.Context(), &out, []string{program}, "The ", 20, 0.7); err != nil || !strings.HasPrefix(out.String(), "The ") || !strings.Contains(out.String(), "bytes/s") {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, prompt := range []string{"", strings.Repeat("x", 200)} {
		if err := command(t.Context(), &out, []string{program}, prompt, 20, 0.7); err == nil || !strings.Contains(err.Error(), "1 to 128 bytes") {
			t.Error(err)
		}
	}
	if err := command(t.Context(), &out, nil, "The ", 20, 0.7); err == nil || !strings.Contains(err.Error(), "export.py") {
		t.Error(err)
	}
}
