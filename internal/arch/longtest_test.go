package arch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongSuitesAreListed checks that scripts/long-tests.sh runs every package whose tests have
// a long form. Those behind the build tag cuda are run with that tag by continuous integration,
// and tests of backendtest by the backends that call it.
func TestLongSuitesAreListed(t *testing.T) {
	root := filepath.Join("..", "..")
	script, err := os.ReadFile(filepath.Join(root, "scripts", "long-tests.sh"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(script)) {
		listed[strings.TrimSuffix(strings.TrimSpace(line), ` \`)] = true
	}
	elsewhere := map[string]bool{"./backend/cuda": true, "./internal/backendtest": true}
	found := 0
	goFiles(t, func(path string, src []byte) {
		if !bytes.Contains(src, []byte("/internal/longtest\"")) {
			return
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		name := "."
		if rel != "." {
			name = "./" + filepath.ToSlash(rel)
		}
		found++
		if !listed[name] && !elsewhere[name] && name != "./internal/arch" {
			t.Errorf("%s has a long form, but scripts/long-tests.sh does not list %s", path, name)
		}
	})
	if found < 10 {
		t.Errorf("only %d files ask for long suites", found)
	}
}
