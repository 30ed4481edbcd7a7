// Sbom prints what a Go program was built of, as its build information says, in the form of CycloneDX
// 1.5: go run ./scripts/sbom PROGRAM VERSION.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

type document struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// PURL is the package URL, by which databases of vulnerabilities know a module.
	PURL string `json:"purl,omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: go run ./scripts/sbom PROGRAM VERSION")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	doc := document{Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: metadata{component{Type: "application", Name: filepath.Base(args[0]), Version: args[1]}},
		Components: []component{{Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
			PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version == "(devel)" { // a module of this repository, of the program's version
			m.Version = args[1]
		}
		doc.Components = append(doc.Components, component{Type: "library", Name: m.Path, Version: m.Version,
			PURL: "pkg:golang/" + m.Path + "@" + m.Version})
	}
	w := json.NewEncoder(os.Stdout)
	w.SetIndent("", "  ")
	return w.Encode(doc)
}
