package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// text returns a function that writes s and then fails with err.
func text(s string, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		_, failed := io.WriteString(w, s)
		return errors.Join(failed, err)
	}
}

// only checks that the directory has the file alone, with the text.
func only(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s has %q, want %q", path, got, want)
	}
	all, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Errorf("the directory has %v", all)
	}
}

func TestWriteReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.pt2")
	for _, s := range []string{"first, the longer one", "second", ""} {
		if err := Write(path, text(s, nil)); err != nil {
			t.Fatal(err)
		}
		only(t, path, s)
	}
}

func TestFailureLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.pt2")
	if err := Write(path, text("old", nil)); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk is full")
	if err := Write(path, text("half of the n", full)); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
	only(t, path, "old")
}

func TestDirectoryInTheWay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "inner"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, text("x", nil)); err == nil {
		t.Error("a directory was replaced")
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 1 {
		t.Errorf("left %v, %v", all, err)
	}
}

func TestMissingDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "file")
	if err := Write(path, text("x", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
}

func TestModeIsThatOfCreate(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "atomic")
	if err := Write(path, text("x", nil)); err != nil {
		t.Fatal(err)
	}
	plain, err := os.Stat(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Mode() != plain.Mode() {
		t.Errorf("mode %v, want %v", got.Mode(), plain.Mode())
	}
}
