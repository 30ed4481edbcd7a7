// Notices prints the licences of all modules that a program is built of, with their texts, as
// distributing the program asks for: go run ./scripts/notices ./cmd/loris/full. It fails if a module has no
// licence that it knows.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

type module struct {
	Path, Version, Dir string
	Main               bool
	licence            string // of a file that is part of a program and no module's
}

// licences has words by which each is known, in the order in which they are looked for.
var licences = []struct{ name, words string }{
	{"CC-BY-4.0", "Creative Commons Attribution 4.0"},
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License"},
	{"BSD-3-Clause", "Neither the name"},
	{"BSD-2-Clause", "Redistributions in binary form"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"ISC", "Permission to use, copy, modify, and"},
	{"FTL", "FreeType"},
	{"OFL-1.1", "SIL OPEN FONT LICENSE"},
}

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, packages []string) error {
	if len(packages) == 0 {
		return errors.New("usage: go run ./scripts/notices PACKAGES")
	}
	modules, err := modulesOf(packages)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	texts := map[string][]byte{}
	for _, m := range modules {
		name, text, err := licenceOf(m)
		if err != nil {
			return err
		}
		texts[m.Path] = text
		fmt.Fprintf(out, "%s %s: %s\n", m.Path, m.Version, name)
	}
	for _, m := range modules {
		fmt.Fprintf(out, "\n%s\n%s %s\n\n%s\n", strings.Repeat("-", 80), m.Path, m.Version, bytes.TrimSpace(texts[m.Path]))
	}
	return out.Flush()
}

// modulesOf returns the modules of others whose packages are built into programs, and the files of
// others that are: one NAME-VERSION.LICENSE stands for each of those.
func modulesOf(packages []string) ([]module, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module,Dir,EmbedFiles"}, packages...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	seen := map[string]module{}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var p struct {
			Module     *module
			Dir        string
			EmbedFiles []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		if p.Module != nil && !p.Module.Main {
			seen[p.Module.Path] = *p.Module
			continue
		}
		for _, file := range p.EmbedFiles {
			if name, ok := strings.CutSuffix(filepath.Base(file), ".LICENSE"); ok {
				name, version, _ := strings.Cut(name, "-")
				seen[name] = module{Path: name, Version: version, licence: filepath.Join(p.Dir, file)}
			}
		}
	}
	var modules []module
	for _, m := range seen {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// licenceOf returns the name and the texts of a module's licence, with its notice, if it has one.
func licenceOf(m module) (name string, text []byte, err error) {
	patterns := []string{filepath.Join(m.Dir, "LICEN[CS]E*"), filepath.Join(m.Dir, "COPYING*"), filepath.Join(m.Dir, "NOTICE*")}
	if m.licence != "" {
		patterns = []string{m.licence}
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return "", nil, err
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return "", nil, err
			}
			text = append(append(text, bytes.TrimSpace(b)...), "\n\n"...)
		}
	}
	for _, l := range licences {
		if bytes.Contains(text, []byte(l.words)) {
			return l.name, text, nil
		}
	}
	return "", nil, fmt.Errorf("%s %s has no licence that is known here", m.Path, m.Version)
}
