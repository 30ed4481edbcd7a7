// Count prints the figures of a checkout that are kept small: lines of Go written
// by hand, exported identifiers outside the root package, and the files that name
// one pointwise op. The checkout is the present directory unless one is given:
//
//	go run ./scripts/count [dir]
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(dir); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	cmd := exec.Command("git", "-C", dir, "ls-files", "*.go")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	lines, files := 0, 0
	var naming []string
	exported := map[string]map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		generated := isGenerated(src)
		if !generated && bytes.Contains(bytes.ToLower(src), []byte("erfinv")) {
			naming = append(naming, name)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if !generated && !beside(name) && !strings.Contains(path.Base(name), "stub") {
			files++
			lines += bytes.Count(src, []byte("\n"))
		}
		if err := collect(exported, name, src); err != nil {
			return err
		}
	}
	fmt.Printf("lines written by hand: %d in %d files\n", lines, files)
	printExported(exported)
	fmt.Printf("files written by hand that name erfinv: %d\n", len(naming))
	for _, name := range naming {
		fmt.Println("  " + name)
	}
	return nil
}

// isGenerated reports whether a file has Go's mark of generated files.
func isGenerated(src []byte) bool {
	for line := range bytes.Lines(src) {
		if bytes.HasPrefix(line, []byte("package ")) {
			return false
		}
		if bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(bytes.TrimSpace(line), []byte(" DO NOT EDIT.")) {
			return true
		}
	}
	return false
}

// beside reports whether a file is beside the library: it measures, shows or
// makes something of it.
func beside(name string) bool {
	for _, dir := range []string{"bench/", "examples/", "scripts/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return strings.Contains(name, "testdata/")
}

// collect adds what a file of a public package exports, by package.
func collect(exported map[string]map[string]bool, name string, src []byte) error {
	pkg := path.Dir(name)
	inside := slices.ContainsFunc(strings.Split(pkg, "/"), func(s string) bool { return s == "internal" || strings.HasPrefix(s, "_") })
	if pkg == "." || inside || beside(name) {
		return nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if f.Name.Name == "main" {
		return nil
	}
	if exported[pkg] == nil {
		exported[pkg] = map[string]bool{}
	}
	for _, d := range f.Decls {
		for _, id := range identifiers(d) {
			exported[pkg][id] = true
		}
	}
	return nil
}

// identifiers returns the exported names that a declaration adds: of the package,
// of methods, and of the fields of structs and methods of interfaces.
func identifiers(d ast.Decl) (ids []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		id := d.Name.Name
		if d.Recv != nil {
			recv := receiver(d.Recv.List[0].Type)
			if !ast.IsExported(recv) {
				return nil
			}
			id = recv + "." + id
		}
		if d.Name.IsExported() {
			ids = append(ids, id)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						ids = append(ids, n.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					ids = append(append(ids, s.Name.Name), members(s)...)
				}
			}
		}
	}
	return ids
}

// members returns the exported fields or methods of a type.
func members(s *ast.TypeSpec) (ids []string) {
	var list *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, n := range field.Names {
			if n.IsExported() {
				ids = append(ids, s.Name.Name+"."+n.Name)
			}
		}
	}
	return ids
}

// receiver returns the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func printExported(exported map[string]map[string]bool) {
	total := 0
	for _, ids := range exported {
		total += len(ids)
	}
	fmt.Printf("exported identifiers outside the root package: %d\n", total)
	for _, pkg := range slices.Sorted(maps.Keys(exported)) {
		if n := len(exported[pkg]); n > 0 {
			fmt.Printf("  %-24s %d\n", pkg, n)
		}
	}
}
