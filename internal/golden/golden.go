// Package golden holds texts that a stage of the compiler makes of Programs against files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what golden tests get into their .txt files")

// Run calls fn with the text of each dir/*.lir, as a subtest named after the file, and compares
// what it returns with the .txt file beside it. `go test -update` writes these files instead; the
// change is then read in the diff. It fails if dir has no .lir file.
func Run(t *testing.T, dir string, fn func(t *testing.T, program string) string) {
	t.Helper()
	RunAs(t, dir, ".txt", fn)
}

// RunAs is Run on files that end in ext instead of .txt, where several tests make texts of the
// same Programs.
func RunAs(t *testing.T, dir, ext string, fn func(t *testing.T, program string) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.lir"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no .lir file (%v)", dir, err)
	}
	for _, file := range files {
		base := strings.TrimSuffix(file, ".lir")
		t.Run(filepath.Base(base), func(t *testing.T) {
			program, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, base+ext, fn(t, string(program)))
		})
	}
}

// compare holds got against a file, or writes the file.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test -update rewrites it. It is now:\n%s", file, got)
	}
}
