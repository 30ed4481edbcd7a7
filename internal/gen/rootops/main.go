// Rootops writes the root package's functions and methods, one per row of the op
// table, and the list of ops in the documentation. It runs in the module's root:
//
//	go run ./internal/gen/rootops
//
// With -check it only reports whether the files are what it would write.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(".", *check); err != nil {
		fmt.Fprintln(os.Stderr, "rootops:", err)
		os.Exit(1)
	}
}

// run writes or compares the generated files under the module's root.
func run(root string, check bool) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, want := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		have, err := os.ReadFile(path)
		if err == nil && bytes.Equal(have, want) {
			continue
		}
		if check {
			return fmt.Errorf("%s is out of date: run go generate", path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			return err
		}
	}
	return nil
}
