package graph_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
)

func leaf(dt ir.DType, dims ...int) ir.Value {
	return ir.NewLeaf(&graph.ParamLeaf{Name: "x"}, ir.MakeShape(dt, dims...), ir.Device{}).Out(0)
}

func hashOf(roots ...ir.Value) ir.Hash {
	var w graph.Walker
	po := w.Walk(roots)
	return w.Hash(&po, ir.Device{})
}

// The Merkle hashes of these pairs are equal; the graph hash must tell the
// connections apart.
func TestHashTellsConnectionsApart(t *testing.T) {
	b := &ir.Builder{}
	x, y, z, w := leaf(ir.F32, 4), leaf(ir.F32, 4), leaf(ir.F32, 4), leaf(ir.F32, 4)
	xy, zw := b.Add(x, y), b.Add(z, w)
	cases := []struct {
		name string
		a, b []ir.Value
	}{
		{"x+x against x+y", []ir.Value{b.Add(x, x)}, []ir.Value{b.Add(x, y)}},
		{"(x+y)*(y+x) against (x+y)*(x+y)", []ir.Value{b.Mul(b.Add(x, y), b.Add(y, x))}, []ir.Value{b.Mul(b.Add(x, y), b.Add(x, y))}},
		{"f(a,a,b) against f(a,b,b)", []ir.Value{b.Mul(b.Mul(xy, xy), zw)}, []ir.Value{b.Mul(b.Mul(xy, zw), zw)}},
		{"order of the roots", []ir.Value{xy, zw}, []ir.Value{zw, b.Add(x, y)}},
	}
	for _, c := range cases {
		if c.a[0].Hash() != c.b[0].Hash() {
			t.Errorf("%s: the Merkle hashes differ, so the case shows nothing", c.name)
		}
		if c.name == "order of the roots" {
			// Both leaves orders are a renaming of parameters: the same computation.
			if hashOf(c.a...) != hashOf(c.b...) {
				t.Errorf("%s: a renaming of parameters changed the hash", c.name)
			}
			continue
		}
		if hashOf(c.a...) == hashOf(c.b...) {
			t.Errorf("%s: equal hashes", c.name)
		}
	}
}

func TestRecorderRemembersHashesNotNodes(t *testing.T) {
	b := ir.NewRecorder()
	var hashes []ir.Hash
	var nodes []*ir.Node
	for range 3 {
		x := leaf(ir.F32, 2, 3)
		v := b.Exp(b.Add(x, x))
		hashes, nodes = append(hashes, hashOf(v)), append(nodes, v.Node)
		b.NextStep()
	}
	if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
		t.Errorf("the same step hashed differently: %v", hashes)
	}
	if nodes[0] == nodes[1] {
		t.Error("a node of an earlier step came back")
	}
}

// A chain of a million nodes overflows the stack of any recursive walk.
func TestMillionNodeChain(t *testing.T) {
	n := 1_000_000
	if !longtest.Enabled() {
		n = 100_000
	}
	b := &ir.Builder{Lines: ir.LinesOff}
	v := leaf(ir.F32, 4)
	for range n {
		v = b.Neg(v)
	}
	var w graph.Walker
	po := w.Walk([]ir.Value{v})
	if len(po.Nodes) != n+1 {
		t.Fatalf("%d nodes, want %d", len(po.Nodes), n+1)
	}
	p, leaves := graph.FromPostOrder("chain", &po)
	if len(p.Instrs) != n || len(leaves) != 1 {
		t.Fatalf("%d instructions, %d leaves", len(p.Instrs), len(leaves))
	}
	opt, st := graph.Optimize(p, graph.Options{})
	if len(opt.Instrs) != 0 || st.Applied["involution"] == 0 {
		t.Errorf("an even number of neg left %d instructions", len(opt.Instrs))
	}
	g := graph.Grad(b, &w, []ir.Value{v}, nil, []ir.Value{po.Nodes[0].Out(0)})
	if g[0].Shape() != v.Shape() {
		t.Errorf("gradient of shape %v", g[0].Shape())
	}
}

const designExample = `
program @step {
  %x = parameter "x" : f32[8,64]
  %w = parameter "w" : f32[64,10]
  %0 = matmul(%x, %w) : f32[8,10]
  %1 = sum(%0, dim=[1], keepdim=true)
  %2, %3 = cummax(%0, dim=-1)
  %4 = full(size=[8,1], value=0.5, dtype=f32)
  %5 = where(gt(%1, %4), %1, %4)          # operands may nest
  return %5, %2
}`

func TestTextRoundTrip(t *testing.T) {
	for _, src := range []string{
		designExample,
		"program @a { %x = parameter \"x\" : i64[3]\n %y = add(%x, 2.5) : f32[3]\n return %y, %x }",
		"program @b { %x = parameter \"odd name\" : f32[]\n %y = add(%x, nan)\n %z = mul(self=%y, other=-inf)\n return %z }",
		"program @c { return }",
		"program @d { %a = parameter \"a\" : f32[2]\n %b = parameter \"b\" : f32[3]\n %c = cat([%a, %b], 0) : f32[5]\n return %c }",
		"program @e { %x = parameter \"x\" : f32[2,3]\n %y, %m, %v = batch_norm(%x, None, None, None, None, true, 0.1, 0.01)\n return %y }",
		"program @f { %x = parameter \"x\" : f16[2,3]\n %q, %k, %v = _scaled_dot_product_attention_backward(%x, %x, %x, %x, %x)\n return %q, %v }",
	} {
		p, err := graph.Parse(src)
		if err != nil {
			t.Fatalf("%v in %s", err, src)
		}
		text := p.String()
		q, err := graph.Parse(text)
		if err != nil {
			t.Fatalf("%v in what was printed:\n%s", err, text)
		}
		if p.Hash() != q.Hash() {
			t.Errorf("the hash changed by printing:\n%s", text)
		}
		if again := q.String(); again != text {
			t.Errorf("printed differently the second time:\n%s\n%s", text, again)
		}
		if !strings.Contains(p.DOT(), "digraph") {
			t.Error("no DOT")
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		src       string
		line, col int
		want      string
		is        error
	}{
		{"", 1, 1, "program", nil},
		{"program @a {", 1, 13, "instruction", nil},
		{"program @a {\n %x = parameter \"x\" : f33[2]\n}", 2, 23, "f33", nil},
		{"program @a {\n %y = neg(%x)\n return %y }", 2, 11, "not defined", nil},
		{"program @a {\n %y = nag(1)\n}", 2, 7, "no op", nil},
		{"program @a { %x = parameter \"x\" : f32[2,3]\n %y = matmul(%x, %x)\n return %y }", 2, 7, "matmul(f32[2,3], f32[2,3])", ir.ErrShape},
		{"program @a { %x = parameter \"x\" : f32[2]\n %y = neg(%x) : f32[3]\n return %y }", 2, 17, "f32[2], not f32[3]", nil},
		{"program @a { %x = parameter \"x\" : f32[2]\n %x = neg(%x)\n return %x }", 2, 2, "twice", nil},
		{"program @a { %x = parameter \"x\" : f32[2]\n %y = sum(%x, dims=[0])\n return %y }", 2, 7, "no argument \"dims\"", ir.ErrArg},
		{"program @a { %x = parameter \"x : f32[2]\n}", 1, 29, "not closed", nil},
		{"program @a { %x = parameter \"x\" : f32[-2]\n}", 1, 35, "dimension", nil},
		{"program @a { return } ?", 1, 23, "unexpected character", nil},
	} {
		_, err := graph.Parse(c.src)
		var pe *graph.ParseError
		if !errors.As(err, &pe) {
			t.Errorf("%q: error %v", c.src, err)
			continue
		}
		if pe.Line != c.line || pe.Col != c.col || !strings.Contains(pe.Msg, c.want) {
			t.Errorf("%q: got %v, want %d:%d with %q", c.src, pe, c.line, c.col, c.want)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%q: %v is not %v", c.src, err, c.is)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(designExample)
	f.Add("program @a { %x = parameter \"x\" : i64[3]\n %y = add(%x, 2.5) : f32[3]\n return %y, %x }")
	f.Add("program @a { %y = full(size=[2,0], fill_value=-1, dtype=bf16)\n return reshape(%y, [0]) }")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := graph.Parse(src)
		if err != nil {
			var pe *graph.ParseError
			if !errors.As(err, &pe) || pe.Line < 1 || pe.Col < 1 {
				t.Fatalf("error without a position: %v", err)
			}
			return
		}
		q, err := graph.Parse(p.String())
		if err != nil {
			t.Fatalf("what was printed does not parse: %v\n%s", err, p)
		}
		if p.Hash() != q.Hash() {
			t.Fatalf("the hash changed by printing:\n%s", p)
		}
	})
}

// Rewrites: what each leaves of a small program.
func TestRules(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range []struct{ name, rule, body, want string }{
		{"mul by one", "identity", "%y = mul(%x, 1.0)", "return %x"},
		{"float plus zero stays", "", "%y = add(%x, 0.0)", "add("},
		{"minus zero", "identity", "%y = sub(%x, 0.0)", "return %x"},
		{"minus negative zero stays", "", "%y = sub(%x, -0.0)", "sub("},
		{"infinities of integers", "same-on-integers", "%y = isinf(cast(%x, i32))", "fill_value=0"},
		{"double negation", "involution", "%y = neg(neg(%x))", "return %x"},
		{"constants", "fold-pointwise", "%y = mul(%x, add(full([], 2.0, f32), full([], 3.0, f32)))", "fill_value=5.0"},
		{"cast of a constant out of range", "fold-pointwise", "%y = add(%x, cast(cast(full([], 300.0, f32), i8), f32))", "fill_value=44"},
		{"view of a constant", "fold-layout", "%y = add(%x, expand(full([1], 2.0, f32), [6]))", "fill_value=2.0"},
		{"reshape of reshape", "merge-views", "%y = neg(reshape(reshape(%x, [2,3]), [3,2]))", "reshape(%x, shape=[3,2])"},
		{"no-op reshape", "noop-view", "%y = neg(reshape(%x, [6]))", "neg(%x)"},
		{"first part of a concatenation", "slice-of-cat", "%y = neg(slice(cat([%x, exp(%x)], 0), 0, 0, 6, 1))", "neg(%x)"},
		{"last part of a concatenation", "slice-of-cat", "%y = neg(slice(cat([exp(%x), exp(%x), %x], 0), 0, 12, 18, 1))", "neg(%x)"},
		{"part across a concatenation stays", "", "%y = neg(slice(cat([%x, exp(%x)], 0), 0, 1, 7, 1))", "cat("},
		{"view that is expanded", "drop-expand", "%y = add(%x, expand(sum(%x, [0], true), [6]))", "add(%x, %0)"},
		{"scalar of another dtype that is expanded", "drop-expand", "%y = add(%x, expand(cast(sum(%x), f64), [6]))", ": f64[6]"},
		{"all operands expanded stay", "", "%s = expand(sum(%x, [0], true), [6])\n %y = mul(%s, %s)", "expand("},
		{"cast to its own dtype", "merge-casts", "%y = neg(cast(%x, f32))", "neg(%x)"},
		{"cast through a wider float", "merge-casts", "%y = cast(cast(%x, f64), i32)", "cast(%x, dtype=i32)"},
		{"widened before a selection", "cast-selected", "%y = gather(cast(%x, f64), 0, full([2], 1, i64))", "gather(%x,"},
		{"narrowed before a selection stays", "", "%y = gather(cast(%x, f16), 0, full([2], 1, i64))", "= cast(%x"},
		{"one of each line", "gather-one", "%x2 = reshape(%x, [2,3])\n %y = gather(sub(%x2, amax(%x2, [1], true)), 1, full([2,1], 1, i64))", "= gather(%0,"},
		{"two of each line stay", "", "%x2 = reshape(%x, [2,3])\n %y = gather(exp(%x2), 1, full([2,2], 1, i64))", "= gather(%1,"},
		{"one of two lines stays", "", "%x2 = reshape(%x, [2,3])\n %y = gather(exp(%x2), 1, full([1,1], 1, i64))", "= gather(%1,"},
		{"one of a line of one stays", "", "%x2 = reshape(%x, [6,1])\n %y = gather(exp(%x2), 1, full([6,1], 0, i64))", "= gather(%1,"},
		{"cast through a narrower float stays", "", "%y = cast(cast(%x, f16), f64)", "dtype=f16"},
		{"complex numbers as pairs and back", "complex-views", "%y = view_as_complex(neg(view_as_real(view_as_complex(reshape(%x, [3,2])))))", "%1 = neg(%0)"},
		{"sum of a permuted value", "reduce-permuted", "%y = sum(permute(reshape(%x, [3,2]), [1,0]))", "%1 = sum(%0)"},
		{"sum of one that is also added to another", "", "%y = sum(add(permute(reshape(%x, [3,2]), [1,0]), reshape(%x, [2,3])))", "permute("},
		{"normalised across and permuted back", "permute-back", "%x2 = reshape(%x, [2,3])\n %p = permute(%x2, [1,0])\n %c = sub(%p, sum(%p, [1], true))\n %y = permute(mul(%c, reshape(sum(%x2, [0]), [3,1])), [1,0])", "%2 = sub(%0, %1)"},
		{"table of two vectors that is permuted", "permute-back", "%y = permute(add(reshape(%x, [6,1]), %x), [1,0])", "reshape(%x, shape=[1,6])"},
		{"permuted in two orders stays", "", "%x2 = reshape(%x, [1,2,3])\n %y = permute(exp(permute(%x2, [2,0,1])), [2,0,1])", "= permute("},
		{"products of a row with a column each", "single-dots", "%y = matmul(reshape(%x, [2,1,3]), reshape(%x, [2,3,1]))", "= sum("},
		{"product of integers with a column", "integer-dots", "%y = cast(matmul(reshape(cast(%x, i16), [2,3]), slice(cast(%x, i16), 0, 0, 3)), f32)", "= sum("},
		{"product of a row of integers", "integer-dots", "%y = cast(matmul(slice(cast(%x, i8), 0, 0, 2), reshape(cast(%x, i8), [2,3])), f32)", "= sum("},
		{"product of matrices of integers stays", "", "%y = cast(matmul(reshape(cast(%x, i8), [3,2]), reshape(cast(%x, i8), [2,3])), f32)", "matmul("},
		{"one product of a row with a column stays", "", "%y = matmul(reshape(%x, [1,1,6]), reshape(%x, [1,6,1]))", "matmul("},
		{"product of a column with a row", "outer-products", "%y = matmul(reshape(%x, [6,1]), reshape(%x, [1,1,6]))", "= mul("},
		{"equal subexpressions", "", "%y = add(exp(%x), exp(%x))", "add(%0, %0)"},
	} {
		p, err := graph.Parse("program @t { %x = parameter \"x\" : f32[6]\n" + c.body + "\n return %y }")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		out, st := graph.Optimize(p, graph.Options{})
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: want %q in\n%s", c.name, c.want, out)
		}
		if c.rule != "" && st.Applied[c.rule] == 0 {
			t.Errorf("%s: rule %s was not applied: %v", c.name, c.rule, st.Applied)
		}
		tried[c.rule] = true
	}
	for _, r := range graph.Rules() {
		if !tried[r.Name] {
			t.Errorf("rule %s has no case", r.Name)
		}
	}
}

// TestSelectsBeforeWidening selects elements by a composite that the backend takes whole.
func TestSelectsBeforeWidening(t *testing.T) {
	p, err := graph.Parse(`program @t { %x = parameter "x" : bf16[6]
	%i = parameter "i" : i64[2]
	return take(cast(%x, f32), %i) }`)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := graph.Optimize(p, graph.Options{Supports: func(op ir.Op) bool { return op == aten.TakeElements }})
	if !strings.Contains(out.String(), "_take_elements(%x,") {
		t.Errorf("all of the vector is widened:\n%s", out)
	}
}

// A backend that takes composites whole gets them as they are: the rules know
// the shapes of primitives only.
func TestRulesLeaveCompositesAlone(t *testing.T) {
	p, err := graph.Parse(`program @t { %x = parameter "x" : f32[2,3]
	%w = parameter "w" : f32[3]
	%y = lerp(%x, expand(%w, [2,3]), 0.5)
	return %y }`)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := graph.Optimize(p, graph.Options{Supports: func(ir.Op) bool { return true }})
	if !strings.Contains(out.String(), "lerp(%x, ") {
		t.Errorf("lerp is gone:\n%s", out)
	}
}
