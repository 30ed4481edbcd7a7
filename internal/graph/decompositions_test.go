package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// What is kept of a use whose operands are one value serves no use whose operands differ: in a first
// step the weight and the running variance of a batch norm are the same ones.
func TestKeptDecompositionsTellOperandsApart(t *testing.T) {
	const same = `program @p {
  %x = parameter "x" : f32[2,3]
  return layer_norm(%x, [3], sum(%x, dim=[0]), sum(%x, dim=[0]))
}`
	const different = `program @p {
  %x = parameter "x" : f32[2,3]
  %w = parameter "w" : f32[3]
  %b = parameter "b" : f32[3]
  return layer_norm(%x, [3], %w, %b)
}`
	kept := ir.NewDecompositions()
	for _, text := range []string{same, different, same} {
		p, err := graph.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := graph.Optimize(p, graph.Options{})
		got, _ := graph.Optimize(p, graph.Options{Decompositions: kept})
		if got.String() != want.String() {
			t.Errorf("%s\nwith what is kept:\n%s\nwithout:\n%s", text, got, want)
		}
	}
}

// So it is where there are more operands than a byte counts: the last of 257 is the first one again, or
// another.
func TestKeptDecompositionsTellManyOperandsApart(t *testing.T) {
	text := func(last string) string {
		var b strings.Builder
		b.WriteString("program @p {\n")
		for i := range 257 {
			fmt.Fprintf(&b, "  %%x%d = parameter \"x%d\" : f32[2]\n", i, i)
		}
		b.WriteString("  return stack([")
		for i := range 256 {
			fmt.Fprintf(&b, "%%x%d, ", i)
		}
		return b.String() + last + "])\n}"
	}
	kept := ir.NewDecompositions()
	for _, last := range []string{"%x0", "%x256"} {
		p, err := graph.Parse(text(last))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := graph.Optimize(p, graph.Options{})
		got, _ := graph.Optimize(p, graph.Options{Decompositions: kept})
		if got.String() != want.String() {
			t.Errorf("the last operand %s is another with what is kept", last)
		}
	}
}
