package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	wideRegister = regexp.MustCompile(`\b[YZ][0-9]+\b`)
	toNarrow     = regexp.MustCompile(`^[A-UW-Z][A-Z0-9]*\s.*\bX[0-9]+$`)
)

// TestEncodingsAreNotMixed holds the assembly for amd64 to this: once a function has written vectors of more than 16
// bytes, no instruction of the older encoding, which keeps the rest of a register, writes one before VZEROUPPER.
// Processors take hundreds of cycles for that.
func TestEncodingsAreNotMixed(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_amd64.s") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		function, wide := "", false
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "TEXT "):
				function, wide = line, false
			case strings.HasPrefix(line, "VZEROUPPER"):
				wide = false
			case wide && toNarrow.MatchString(line):
				t.Errorf("%s:%d: %s in %s", path, i+1, line, function)
			case !strings.HasPrefix(line, "//") && wideRegister.MatchString(line):
				wide = true
			}
		}
		return nil
	})
	if err != nil || n < 10 {
		t.Fatal(n, err)
	}
}
