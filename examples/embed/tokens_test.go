package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A tokenizer of the same kind as the model's, with a few word pieces. The
// numbers are those that the Rust library of Hugging Face gives.
func TestTokenise(t *testing.T) {
	got, err := Tokenise(filepath.Join("testdata", "tokenizer.json"), []string{"The cafés, the café", "Food"})
	if err != nil {
		t.Fatal(err)
	}
	want := []int64{
		1, 3, 4, 5, 6, 3, 4, 2,
		1, 7, 2, 0, 0, 0, 0, 0,
	}
	mask := []int64{
		1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 0, 0, 0, 0, 0,
	}
	if got.Rows != 2 || got.MaxLength != 8 || !slices.Equal(got.IDs, want) || !slices.Equal(got.Mask, mask) {
		t.Errorf("got %+v", got)
	}
}

func TestLongSentencesAreCut(t *testing.T) {
	long := ""
	for range 400 {
		long += "food "
	}
	got, err := Tokenise(filepath.Join("testdata", "tokenizer.json"), []string{long})
	if err != nil {
		t.Fatal(err)
	}
	if got.MaxLength != maxPieces || got.IDs[0] != 1 || got.IDs[maxPieces-1] != 2 {
		t.Errorf("%d pieces, the first %d, the last %d", got.MaxLength, got.IDs[0], got.IDs[got.MaxLength-1])
	}
}

func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), os.Stdout, filepath.Join(dir, "none.pt2"), "", []string{"a", "b"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no package: %v", err)
	}
	if _, err := Tokenise(filepath.Join(dir, "tokenizer.json"), []string{"a"}); err == nil {
		t.Error("no tokenizer: no error")
	}
	if err := run(t.Context(), os.Stdout, "x", "", []string{"a"}); err == nil {
		t.Error("one sentence: no error")
	}
}
