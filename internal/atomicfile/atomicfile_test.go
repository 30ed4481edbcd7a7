package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/filelock"
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

// What killed processes left goes with the next file; what others write, what is young and
// what only looks like it stays.
func TestLeftoversGo(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	make1 := func(name string, at time.Time) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = os.Chtimes(f.Name(), at, at)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	left, used, young := tempName("left"), tempName("used"), tempName("young")
	make1(left, old).Close()
	make1(young, time.Now()).Close()
	if _, err := filelock.Try(make1(used, old)); err != nil {
		t.Fatal(err)
	}
	others := []string{".x.tmp", "x.ABCDEFGHIJKL.tmp", ".x.ABCDEFGHIJ1L.tmp", ".x.ABCDEFGHIJKL.tmp2", ".xABCDEFGHIJKL.tmp", ".ABCDEFGHIJKL.tmp"}
	for _, name := range others {
		make1(name, old).Close()
	}
	if err := Write(filepath.Join(dir, "file"), text("x", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, left)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", left, err)
	}
	for _, name := range append(others, young, "file", used) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// A file of the longest name there can be is written, too.
func TestLongName(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", maxName))
	if err := Write(path, text("x", nil)); err != nil {
		t.Fatal(err)
	}
	only(t, path, "x")
}
