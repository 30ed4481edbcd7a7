package backendtest

import (
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// TestDiff checks that the suite can fail.
func TestDiff(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	exact := accuracy{}
	for _, c := range []struct {
		name      string
		dtype     ir.DType
		acc       accuracy
		scale     float64
		got, want float64
		ok        bool
	}{
		{"equal", ir.F32, exact, 0, 1.5, 1.5, true},
		{"zeros", ir.F32, exact, 0, 0, math.Copysign(0, -1), true},
		{"NaN", ir.F32, exact, 0, nan, nan, true},
		{"NaN for a number", ir.F32, within(4), 0, nan, 1, false},
		{"a number for NaN", ir.F32, within(4), 0, 1, nan, false},
		{"infinity", ir.F64, within(4), 0, inf, -inf, false},
		{"infinity for the largest", ir.F32, within(4), 0, inf, math.MaxFloat32, true},
		{"infinity for a large one", ir.F32, within(4), 0, inf, 1e38, false},
		{"one ulp, exact", ir.F32, exact, 0, 1 + 0x1p-23, 1, false},
		{"one ulp", ir.F32, within(4), 0, 1 + 0x1p-23, 1, true},
		{"eight ulps", ir.F32, within(4), 0, 1 + 0x1p-20, 1, false},
		{"one ulp of f16", ir.F16, within(4), 0, 1 + 0x1p-10, 1, true},
		{"two ulps of f16", ir.F16, within(4), 0, 1 + 0x1p-9, 1, false},
		{"flushed", ir.F32, within(4), 0, 0, 1e-40, true},
		{"flushed in f16", ir.F16, within(4), 0, 0, 1e-6, false},
		{"sum", ir.F32, accuracy{ulps: within(2).ulps, accumulates: true}, 1000, 1e-4, 0, true},
		{"sum too far off", ir.F32, accuracy{ulps: within(2).ulps, accumulates: true}, 10, 1e-4, 0, false},
		{"sum of f64", ir.F64, accuracy{ulps: within(2).ulps, accumulates: true}, 1000, 1e-4, 0, false},
		{"integers", ir.I32, within(16), 0, 3, 2, false},
		{"equal integers", ir.I32, exact, 0, -3, -3, true},
	} {
		enc := func(v float64) [][]byte {
			if c.dtype.IsInt() {
				return [][]byte{elements.EncodeInts(c.dtype, []int64{0, int64(v)})}
			}
			return [][]byte{elements.EncodeFloats(c.dtype, []float64{0, v})}
		}
		in := graph.NewParams([]graph.Param{{Name: "x", Shape: ir.MakeShape(c.dtype, 2)}})
		cmp := comparison{accuracy: c.acc}
		if c.acc.accumulates {
			cmp.scale = enc(c.scale)
		}
		msg := cmp.diff(graph.FromValues("p", in, in), enc(c.got), enc(c.want))
		if (msg == "") != c.ok {
			t.Errorf("%s: message %q", c.name, msg)
		}
		if !c.ok && !strings.Contains(msg, "element 1 is") {
			t.Errorf("%s: message %q does not name the element", c.name, msg)
		}
	}
}

// TestSamplesAreTheSame checks that the inputs do not change from run to run.
func TestSamplesAreTheSame(t *testing.T) {
	for _, sp := range ir.Ops() {
		a, b := samplesOf(sp, ir.F32, true), samplesOf(sp, ir.F32, true)
		for i := range a {
			for k := range a[i].inputs {
				if string(a[i].inputs[k]) != string(b[i].inputs[k]) {
					t.Errorf("%s: sample %q has other inputs the second time", sp.Name, a[i].name)
				}
			}
		}
	}
}

// TestRandomProgramsAreTame moves each input a little: well-conditioned
// programs move no more than the tolerance that they are compared with.
func TestRandomProgramsAreTame(t *testing.T) {
	used := map[ir.Op]bool{}
	for seed := range uint64(150) {
		p, inputs := RandomProgram(seed, 5+int(seed%30))
		for i := range p.Instrs {
			used[p.Instrs[i].Op] = true
		}
		want, err := ref.Eval(p, inputs)
		if err != nil {
			t.Fatal(err)
		}
		for o, raw := range want {
			if d := p.Shape(p.Returns[o]).DType(); d.IsFloat() {
				for _, v := range elements.DecodeFloats(d, raw) {
					if math.IsNaN(v) || math.Abs(v) > 1e5 {
						t.Fatalf("program %d gives %v\n%s", seed, v, p)
					}
				}
			}
		}
		got, err := ref.Eval(p, perturbed(seed, p, inputs))
		if err != nil {
			t.Fatal(err)
		}
		if msg := (&comparison{rtol: 1e-4, atol: 1e-4}).diff(p, got, want); msg != "" {
			t.Errorf("program %d is badly conditioned: %s\n%s", seed, msg, p)
		}
	}
	if len(used) < 35 {
		t.Errorf("only %d ops are used", len(used))
	}
}

// TestRewritesKeepMeaning holds random programs and their gradients, rewritten
// and printed and parsed, against what was written.
func TestRewritesKeepMeaning(t *testing.T) {
	for seed := range uint64(200) {
		p, inputs := RandomProgram(seed, 5+int(seed%30))
		if seed%2 == 1 {
			p, inputs = RandomGradient(seed, 3+int(seed%12))
		}
		want, err := ref.Eval(p, inputs)
		if err != nil {
			t.Fatal(err)
		}
		q, _ := graph.Optimize(p, graph.Options{})
		got, err := ref.Eval(q, inputs)
		if err != nil {
			t.Fatalf("program %d, rewritten: %v\n%s", seed, err, q)
		}
		if msg := (&comparison{rtol: 1e-5, atol: 1e-5}).diff(p, got, want); msg != "" {
			t.Errorf("program %d, rewritten: %s\nbefore\n%safter\n%s", seed, msg, p, q)
		}
		parsed, err := graph.Parse(p.String())
		if err != nil {
			t.Fatalf("program %d: %v\n%s", seed, err, p)
		}
		if parsed.Hash() != p.Hash() {
			t.Errorf("program %d has another hash after printing and parsing\n%s", seed, p)
		}
	}
}

// TestRandomProgramsStaySmall checks that no random Program grows beyond what ref
// computes quickly: a chain of products of values with their own transposes once
// took half a minute (seed 1725, 62 ops), which the fuzzer takes for a deadlock.
func TestRandomProgramsStaySmall(t *testing.T) {
	check := func(seed uint64, ops int) {
		p, _ := RandomProgram(seed, ops)
		for _, sh := range p.Shapes {
			if sh.Numel() > mostElements {
				t.Errorf("seed %d, %d ops: a value of %v", seed, ops, sh)
			}
		}
		for _, in := range p.Instrs {
			if in.Op != aten.MatMul {
				continue
			}
			x, y := p.Shapes[in.Args[0]], p.Shapes[in.Out]
			if work := y.Numel() * x.Dim(-1); work > mostProducts {
				t.Errorf("seed %d, %d ops: a product of %d multiplications", seed, ops, work)
			}
		}
	}
	check(1725, 62)
	for seed := range uint64(2000) {
		check(seed, 64)
	}
}
