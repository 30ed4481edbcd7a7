// Package plantest holds the memory plans that backends make of Programs against files.
package plantest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/golden"
	"github.com/loris-ml/loris/internal/graph"
)

// Run compares the plans of the Programs in dir with the files that end in ext, see golden.RunAs.
// A comment "# output 0 replaces input 1" in a Program is an alias.
func Run(t *testing.T, dir, ext string, plan func(p *graph.Program, aliases []backend.Alias) (fmt.Stringer, error)) {
	t.Helper()
	golden.RunAs(t, dir, ext, func(t *testing.T, text string) string {
		p, err := graph.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var aliases []backend.Alias
		for line := range strings.Lines(text) {
			var a backend.Alias
			if n, _ := fmt.Sscanf(line, "# output %d replaces input %d", &a.Output, &a.Input); n == 2 {
				aliases = append(aliases, a)
			}
		}
		s, err := plan(p, aliases)
		if err != nil {
			t.Fatal(err)
		}
		return s.String()
	})
}
