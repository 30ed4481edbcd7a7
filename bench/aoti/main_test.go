package main

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

const fixture = "../../aoti/testdata/mlp.pt2"

func TestParse(t *testing.T) {
	s, err := parse([]string{"--threads", "2,4", "--turn", "50ms", "a.pt2", "b.pt2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.threads) != 2 || s.threads[1] != 4 || s.turn != 50*time.Millisecond || len(s.packages) != 2 || s.gpu() || s.batch != 1 {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		args  []string
		batch int
	}{{[]string{"--device", "cuda:1", "a.pt2"}, aheadGPU}, {[]string{"--device=cuda", "--batch=1", "a.pt2"}, 1}} {
		if s, err := parse(c.args); err != nil || !s.gpu() || s.batch != c.batch {
			t.Errorf("%q: %+v, %v", c.args, s, err)
		}
	}
	if s, err := parse([]string{"--export", "--threads", "2", "--python", "a", "--python", "b", "--only", "mlp"}); err != nil || !s.export || len(s.pythons) != 2 || s.only != "mlp" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range [][]string{
		{},
		{"--threads", "0", "a.pt2"},
		{"--threads", "x", "a.pt2"},
		{"--rounds", "0", "a.pt2"},
		{"--batch", "-1", "a.pt2"},
		{"--device", "tpu", "a.pt2"},
		{"--inductor", "a.pt2"},
		{"--python", "a", "--python", "b", "a.pt2"},
		{"--export", "a.pt2"},
		{"--export", "--threads", "1,2"},
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestReport(t *testing.T) {
	gpu, err := ir.ParseDevice("cuda")
	if err != nil {
		t.Fatal(err)
	}
	rows := []row{
		{Name: "mlp", Threads: 2, Loris: 8_123, CPP: 16_246, Python: 81_230, Ratio: 0.5, ToPy: 0.1, Load: 5e6, CPPLoad: 12_345_678, Difference: 2e-7},
		{Name: "alone", Loris: 2_000, Python: 1_000, ToPy: 2, Must: mustGPU},
		{Name: "nobody", Loris: 1_000, Must: mustGPU},
		{Name: "met", Loris: 1_000, Python: 1_000, CPP: 1_000, Ratio: 1.04, ToPy: 2, Must: mustGPU},
	}
	var w strings.Builder
	if err := report(&w, &torch{version: "9.9", missing: "no g++"}, settings{device: gpu, batch: 7}, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PyTorch 9.9", "mlp", "8.12µs", "16.2µs", "0.50", "0.10", "12.3ms", "2.0e-07", "no g++", "7 runs", "1.05 missed", "1.05 met"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, w.String())
		}
	}
	if m := median([]int64{5, 1, 9}); m != 5 {
		t.Errorf("the median is %d", m)
	}
}

func TestDistance(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		dtype ir.DType
		a, b  []float64
		want  float64
	}{
		{ir.F32, []float64{1, 2}, []float64{1, 2}, 0},
		{ir.F32, []float64{1, 2}, []float64{1, 4}, 0.5},
		{ir.BF16, []float64{-8, 1}, []float64{-8, 2}, 0.125},
		{ir.C64, []float64{1, 3}, []float64{1, 4}, 0.25},
		{ir.F64, []float64{nan, 3, inf}, []float64{nan, 4, inf}, 0.25},
		{ir.F64, []float64{nan, 4}, []float64{1, 4}, inf},
		{ir.F64, []float64{inf, 4}, []float64{1, 4}, inf},
		{ir.F64, []float64{1}, []float64{0}, inf},
	} {
		d := c.dtype
		if d == ir.C64 {
			d = ir.F32
		}
		if got := distance(c.dtype, elements.EncodeFloats(d, c.a), elements.EncodeFloats(d, c.b)); got != c.want {
			t.Errorf("%v, %v and %v: %v, want %v", c.dtype, c.a, c.b, got, c.want)
		}
	}
	if got := distance(ir.I32, []byte{1, 0, 0, 0}, []byte{2, 0, 0, 0}); !math.IsInf(got, 1) {
		t.Errorf("integers: %v", got)
	}
}

func TestDifference(t *testing.T) {
	want := []stored{{ir.MakeShape(ir.F32, 2), elements.EncodeFloats(ir.F32, []float64{1, 4})}}
	near, far := elements.EncodeFloats(ir.F32, []float64{1.0001, 4}), elements.EncodeFloats(ir.F32, []float64{1.01, 4})
	if d, err := difference([][]byte{near}, want); err != nil || d < 2e-5 || d > 3e-5 {
		t.Errorf("near: %v, %v", d, err)
	}
	for i, bad := range [][][]byte{{far}, {near, near}, {near[:4]}} {
		if d, err := difference(bad, want); err == nil {
			t.Errorf("%d: %v is taken", i, d)
		}
	}
}

// A package is loaded, run by turns, and gives what PyTorch did.
func TestLoris(t *testing.T) {
	s, err := parse([]string{fixture})
	if err != nil {
		t.Fatal(err)
	}
	e, err := readExample(beside(fixture))
	if err != nil || len(e.in) == 0 || len(e.out) == 0 {
		t.Fatalf("%d inputs, %d outputs, %v", len(e.in), len(e.out), err)
	}
	o, err := openLoris(t.Context(), fixture, e.in, 1, s)
	if errors.Is(err, aoti.ErrNoLibraries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := o.turn(t.Context(), time.Microsecond); err != nil || n <= 0 {
		t.Errorf("a turn: %d ns, %v", n, err)
	}
	got, err := o.results(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := difference(got, e.out); err != nil {
		t.Error(err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
}

func TestSwap(t *testing.T) {
	s, err := parse([]string{"--swap", "50ms", fixture})
	if err != nil {
		t.Fatal(err)
	}
	var w strings.Builder
	err = run(t.Context(), &w, s)
	if errors.Is(err, aoti.ErrNoLibraries) {
		t.Skip(err)
	}
	if err != nil || !strings.Contains(w.String(), "torn=0") {
		t.Errorf("%v\n%s", err, w.String())
	}
	t.Log(w.String())
}

// A result of neither set is seen.
func TestTorn(t *testing.T) {
	s, err := parse([]string{fixture})
	if err != nil {
		t.Fatal(err)
	}
	e, err := readExample(beside(fixture))
	if err != nil {
		t.Fatal(err)
	}
	o, err := openLoris(t.Context(), fixture, e.in, 1, s)
	if errors.Is(err, aoti.ErrNoLibraries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	l := &swapping{ours: o}
	defer l.close()
	if err := l.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := slices.Sorted(maps.Keys(l.sets[0]))[0]
	part := map[string]aoti.Buffer{name: l.sets[0][name]} // the others are of the second set
	if err := l.runner.Update(t.Context(), part, aoti.Active, aoti.Partial()); err != nil {
		t.Fatal(err)
	}
	if err := l.once(t.Context()); err != nil || l.torn.Load() != 1 {
		t.Errorf("%d torn results, %v", l.torn.Load(), err)
	}
}

// A program of the table is written with its example, as text, and runs here.
func TestExportedPrograms(t *testing.T) {
	ctx := context.Background()
	folder := t.TempDir()
	all, err := exportAll(ctx, folder, "^(digits-conv|scan)$", "2.15", "cpu")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	s, err := parse([]string{"--export", "--threads", "1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		x, err := readExample(beside(e.path))
		if err != nil {
			t.Fatal(err)
		}
		o, err := openLoris(ctx, e.path, x.in, 1, s)
		if target := (*aoti.TargetError)(nil); errors.As(err, &target) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.results(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if off, err := unitsOff(got, x.out); err != nil || off > 16 {
			t.Errorf("%s is off by %g, %v", e.name, off, err)
		}
		if err := unitsErred(got, x.out, e.exact); !(err > 0 && err < 16) {
			t.Errorf("%s errs by %g", e.name, err)
		}
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}
	if eps := epsilon(ir.F32); eps != 0x1p-23 {
		t.Errorf("the epsilon of f32 is %g", eps)
	}
	if _, err := exportAll(ctx, folder, "nobody", "", "cpu"); err == nil {
		t.Error("no program matches, which is no error")
	}
}
