package hostile

import (
	"os"
	"slices"
	"testing"
)

// Readers whose packages have no fuzz target of their own, or one of a part only.

func FuzzCacheEntry(f *testing.F) { fuzz(f, "cache entry") }
func FuzzCheckpoint(f *testing.F) { fuzz(f, "checkpoint") }
func FuzzConfig(f *testing.F)     { fuzz(f, "config") }
func FuzzTokenizer(f *testing.F)  { fuzz(f, "tokenizer") }
func FuzzImage(f *testing.F)      { fuzz(f, "image") }
func FuzzRun(f *testing.F)        { fuzz(f, "program run") }

// fuzz feeds a target, with its whole files as corpus.
func fuzz(f *testing.F, name string) {
	all, err := Targets(os.DirFS("../../.."))
	if err != nil {
		f.Fatal(err)
	}
	target := all[slices.IndexFunc(all, func(t Target) bool { return t.Name == name })]
	for _, seed := range target.Seeds {
		f.Add(seed)
	}
	w, err := newWorkspace(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, why := target.try(w, b); why != "" {
			t.Fatal(why)
		}
	})
}
