package graph_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Programs that say more than they are long are errors with a position.
func TestHostilePrograms(t *testing.T) {
	nested := func(n int, left, right string) string {
		return strings.Repeat(left, n) + "%a" + strings.Repeat(right, n)
	}
	for _, c := range []struct {
		name, call string
		refused    bool
	}{
		{"nested lists", "cat(" + nested(1_000_000, "[", "]") + ")", true},
		{"nested calls", nested(1_000_000, "neg(", ")"), true},
		{"lists and calls", nested(500_000, "neg([", "])"), true},
		{"chunk", "chunk(%a, chunks=9223372036854775807)", false},
		{"chunk of nothing", "chunk(slice(%a, 0, 0, 0), chunks=9223372036854775807)", true},
		{"split", "split(expand(sum(%a), [1099511627776]), [1])", true},
		{"unbind", "unbind(expand(sum(%a), [1099511627776]))", true},
		{"adaptive_avg_pool1d", "adaptive_avg_pool1d(%a, [1099511627776])", true},
		{"adaptive_avg_pool1d to many", "adaptive_avg_pool1d(%a, [1000000007])", false},
		{"adaptive_avg_pool1d to more", "adaptive_avg_pool1d(%a, [9223372036854775806])", true},
		{"repeat", "repeat(%a, [4611686018427387904, 4611686018427387904])", true},
		{"repeat_interleave", "repeat_interleave(%a, 4611686018427387904)", true},
		{"eye", "eye(1099511627776)", true},
		{"eye of a size", "eye(1048576)", false},
		{"broadcast", "add(expand(sum(%a), [1099511627776,1]), expand(sum(%a), [1,1099511627776]))", true},
		{"cast", "cast(expand(cast(sum(%a), u8), [4611686018427387904]), f64)", true},
		{"flip", "flip(sum(%a), [0])", false},
		{"full", "full([1099511627776], 1, f32)", false},
		{"full of too much", "full([1099511627776,1099511627776], 1, f32)", true},
		{"pad", "constant_pad_nd(%a, [9223372036854775807,9223372036854775807], 0)", true},
		{"slice", "slice(%a, 0, -9223372036854775808, 9223372036854775807, 9223372036854775807)", false},
		{"roll", "roll(%a, [-9223372036854775808], [0])", false},
		{"results", strings.Repeat("%x, ", 70_000) + "%y = neg(%a)", true},
	} {
		src := "program @x {\n%a = parameter \"a\" : f32[2,3]\n"
		if c.name == "results" {
			src += c.call
		} else if c.name == "chunk" {
			src += "%r, %s = " + c.call
		} else {
			src += "%r = " + c.call
		}
		p, err := graph.Parse(src + "\nreturn %r\n}\n")
		if !c.refused {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			lowered, _ := graph.Optimize(p, graph.Options{})
			if _, err := graph.Parse(lowered.String()); err != nil {
				t.Errorf("%s: the lowered program cannot be read: %v", c.name, err)
			}
			continue
		}
		var pe *graph.ParseError
		if !errors.As(err, &pe) || pe.Line != 3 || pe.Col < 1 || len(pe.Error()) > 1000 {
			t.Errorf("%s: got %.200v", c.name, err)
		}
	}
}

// An op of many operands takes time in proportion to them, not to their square.
func TestCatOfManyOperands(t *testing.T) {
	const n = 20_000
	var src strings.Builder
	src.WriteString("program @x {\n%a = parameter \"a\" : f32[1]\n%r = cat([")
	for i := range n {
		if i > 0 {
			src.WriteString(", ")
		}
		src.WriteString("%a")
	}
	src.WriteString("])\nreturn %r\n}\n")
	p, err := graph.Parse(src.String())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Shape(p.Returns[0]), ir.MakeShape(ir.F32, n); got != want {
		t.Error(fmt.Sprint(got), "want", want)
	}
}
