// Command typecheck checks that packages and their tests compile for other systems, without compiling
// them: go run ./scripts/typecheck linux/arm64 windows/amd64 -- work. Declarations of the standard
// library and of other modules are read, too, and bodies of their functions are not, so that a system
// takes seconds where `go build` takes minutes. Cgo is off. What only a linker finds, it does not.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	DepOnly         bool
	Module          *struct{ GoVersion string }
	Error           *struct{ Err string }
}

func main() {
	i := slices.Index(os.Args, "--")
	if i < 2 || i == len(os.Args)-1 {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS/GOARCH... -- PACKAGE...")
		os.Exit(2)
	}
	failed := false
	for _, target := range os.Args[1:i] {
		n, err := check(target, os.Args[i+1:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			failed = true
			continue
		}
		fmt.Printf("%s: %d packages\n", target, n)
	}
	if failed {
		os.Exit(1)
	}
}

// check returns how many of the packages, with those of their tests, it found to be right.
func check(target string, patterns []string) (int, error) {
	system, machine, ok := strings.Cut(target, "/")
	if !ok {
		return 0, errors.New("expected GOOS/GOARCH")
	}
	packages, err := list(system, machine, patterns)
	if err != nil {
		return 0, err
	}
	c := &checker{fset: token.NewFileSet(), sizes: types.SizesFor("gc", machine), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	n := 0
	for _, p := range packages {
		if p.Error != nil {
			return 0, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		if err := c.check(p); err != nil {
			return 0, err
		}
		if !p.DepOnly {
			n++
		}
	}
	return n, nil
}

// list returns the packages and all that they import, each behind what it imports.
func list(system, machine string, patterns []string) (packages []listed, err error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-test", "-e",
		"-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,Module,Error"}, patterns...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(out); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, cmd.Wait()
}

type checker struct {
	fset  *token.FileSet
	sizes types.Sizes
	done  map[string]*types.Package
}

// importer finds packages by the names that the files of one package call them.
type importer struct {
	c    *checker
	name map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if mapped, ok := i.name[path]; ok {
		path = mapped
	}
	if p := i.c.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

// check checks one package. Errors in packages of others are theirs: what counts are declarations.
func (c *checker) check(p listed) error {
	files := make([]*ast.File, len(p.GoFiles))
	var work errgroup.Group
	for i, name := range p.GoFiles {
		work.Go(func() (err error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(p.Dir, name)
			}
			files[i], err = parser.ParseFile(c.fset, name, nil, parser.SkipObjectResolution)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	var found []error
	config := types.Config{
		Importer:         importer{c, p.ImportMap},
		Sizes:            c.sizes,
		IgnoreFuncBodies: p.DepOnly,
		Error:            func(err error) { found = append(found, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	// The import path of a test's form of a package has the test's name behind a space.
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.done[p.ImportPath], _ = config.Check(path, c.fset, files, nil)
	if p.DepOnly {
		return nil
	}
	return errors.Join(found...)
}
