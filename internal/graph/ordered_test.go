package graph

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// ops returns the ops of a Program's instructions that have the given prefix of attributes' text.
func reductionsOf(p *Program) (out []string) {
	for i := range p.Instrs {
		if in := &p.Instrs[i]; in.Op.Spec().Ordered {
			out = append(out, p.Args(in).Str("group"))
		}
	}
	return out
}

// Rewrites fold what surrounds collectives, which stay: all of them, once each, in their order.
func TestOptimizeKeepsOrderedOps(t *testing.T) {
	p, err := Parse(`program @step {
  %x = parameter "x" : f32[4]
  %y = parameter "y" : f32[4]
  %a = all_reduce(%x, reduction="sum", group="a")
  %b = all_reduce(%y, reduction="sum", group="b")
  %c = all_reduce(%y, reduction="sum", group="c")
  %d = all_reduce(%y, reduction="sum", group="c")
  %unused = cast(cast(%a, dtype=f64), dtype=f32)
  %e = add(mul(%d, 1.0), %unused)
  return %e, %c, %b
}`)
	if err != nil {
		t.Fatal(err)
	}
	// The roots alone would bring c and d before b: the walk begins at the last of them.
	slices.Reverse(p.Returns)
	want := reductionsOf(p)
	if len(want) != 4 {
		t.Fatalf("the Program has %v", want)
	}
	for _, rules := range []bool{false, true} {
		out, _ := Optimize(p, Options{NoRules: rules})
		if got := reductionsOf(out); !slices.Equal(got, want) {
			t.Errorf("collectives of groups %v became %v:\n%s", want, got, out)
		}
	}
	// One whose result a rewrite drops.
	dropped := &Program{}
	*dropped = *p
	dropped.Returns = p.Returns[:1:1]
	if got, _ := Optimize(dropped, Options{}); !slices.Equal(reductionsOf(got), want) {
		t.Errorf("collectives of groups %v became %v", want, reductionsOf(got))
	}
}

// A collective that depends on what a loop carries cannot be part of its body.
func TestLoopsTakeNoOrderedOps(t *testing.T) {
	b := &ir.Builder{}
	x := ir.NewLeaf(&ParamLeaf{}, ir.MakeShape(ir.F32, 2), ir.Device{}).Out(0)
	op, _ := ir.Lookup("all_reduce")
	y := b.Call1(op, []any{x, "sum", "g"})
	defer func() {
		if e, ok := recover().(*ir.OpError); !ok || e.Op != "all_reduce" {
			t.Errorf("the body was cut: %v", e)
		}
	}()
	CutLoop(new(Walker), []ir.Value{x}, []ir.Value{y})
}
