package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// A program in text has the parameters that it declares, whatever numbers an op has by default.
func TestDefaultNumbersAreNoParameters(t *testing.T) {
	// The shapes of the tensors of ops that do not take [2,2] for each.
	shapes := map[string][]string{
		"addmv": {"f32[2]", "f32[2,2]", "f32[2]"}, "addbmm": {"f32[2,2]", "f32[3,2,2]", "f32[3,2,2]"},
		"baddbmm": {"f32[3,2,2]", "f32[3,2,2]", "f32[3,2,2]"}, "addr": {"f32[2,2]", "f32[2]", "f32[2]"},
	}
	seen := 0
	for _, sp := range ir.Ops() {
		var tensors []string
		defaults := false
		for _, p := range sp.Schema.Params {
			if p.Kind == ir.KindTensor && !p.HasDef {
				tensors = append(tensors, "%"+p.Name)
			}
			defaults = defaults || p.Kind.Operand() && p.HasDef && p.Default != nil
		}
		if !defaults {
			continue
		}
		seen++
		var src strings.Builder
		src.WriteString("program @x {\n")
		for i, name := range tensors {
			s := "f32[2,2]"
			if of := shapes[sp.Name]; of != nil {
				s = of[i]
			}
			fmt.Fprintf(&src, "%s = parameter %q : %s\n", name, name, s)
		}
		fmt.Fprintf(&src, "%%r = %s(%s)\nreturn %%r\n}\n", sp.Name, strings.Join(tensors, ", "))
		p, err := graph.Parse(src.String())
		if err != nil {
			t.Errorf("%s: %v", sp.Name, err)
			continue
		}
		if len(p.Params) != len(tensors) {
			t.Errorf("%s: %d parameters, %d were declared:\n%v", sp.Name, len(p.Params), len(tensors), p)
		}
		again, err := graph.Parse(p.String())
		if err != nil || again.String() != p.String() {
			t.Errorf("%s: does not survive the text form (%v):\n%v", sp.Name, err, p)
		}
	}
	if seen < 10 {
		t.Errorf("only %d ops have numbers by default", seen)
	}
}
