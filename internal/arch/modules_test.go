package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// required matches a line of a go.mod that requires a module.
var required = regexp.MustCompile(`(?m)^(?:require )?\t?(\S+\.\S+/\S+) (v\S+)`)

// TestModulesRequireTheSame checks that every module requires what the library does in the library's
// version. What is built in go.work and outside of it is then the same, and is built once.
func TestModulesRequireTheSame(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(path string) map[string]string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, m := range required.FindAllStringSubmatch(string(text), -1) {
			versions[m[1]] = m[2]
		}
		return versions
	}
	library := read(filepath.Join(root, "go.mod"))
	if len(library) < 5 {
		t.Fatalf("the library requires %v", library)
	}
	others := 0
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			others++
			for module, version := range read(file) {
				if want, ok := library[module]; ok && version != want {
					t.Errorf("%s requires %s %s, the library %s: make them one", file, module, version, want)
				}
			}
		}
	}
	if others < 8 {
		t.Errorf("only %d other modules", others)
	}
}
