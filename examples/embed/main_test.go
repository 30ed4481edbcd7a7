package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), os.Stdout, filepath.Join(dir, "none.pt2"), "", []string{"a", "b"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no package: %v", err)
	}
	model := filepath.Join(dir, "model.pt2")
	if err := os.WriteFile(model, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), os.Stdout, model, "", []string{"a", "b"}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("no tokenizer: %v", err)
	}
	if err := run(t.Context(), os.Stdout, "x", "", []string{"a"}); err == nil {
		t.Error("one sentence: no error")
	}
}
