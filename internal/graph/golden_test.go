package graph_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/golden"
	"github.com/loris-ml/loris/internal/graph"
)

// TestRewriteGoldens shows what Optimize makes of Programs, and how often it used which rule.
func TestRewriteGoldens(t *testing.T) {
	golden.Run(t, "testdata/rewrite", func(t *testing.T, text string) string {
		p, err := graph.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		optimized, stats := graph.Optimize(p, graph.Options{})
		var b strings.Builder
		for _, rule := range slices.Sorted(maps.Keys(stats.Applied)) {
			fmt.Fprintf(&b, "# %s: %d\n", rule, stats.Applied[rule])
		}
		fmt.Fprintf(&b, "# instructions: %d, before %d\n%s", stats.After, stats.Before, optimized)
		return b.String()
	})
}

// TestEveryRuleHasAGolden checks that the Programs of TestRewriteGoldens use all rules.
func TestEveryRuleHasAGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/rewrite/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, r := range graph.Rules() {
		if !strings.Contains(all.String(), "# "+r.Name+": ") {
			t.Errorf("no Program in testdata/rewrite uses the rule %s", r.Name)
		}
	}
}
