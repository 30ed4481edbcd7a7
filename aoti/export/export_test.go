package export_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/aoti/internal/host"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// programs reads the programs of testdata. Parameters whose names begin with "w" are constants.
func programs(t testing.TB) map[string]*graph.Program {
	t.Helper()
	files, err := filepath.Glob("testdata/*.lir")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	all := map[string]*graph.Program{}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := graph.Parse(string(src))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".lir")] = p
	}
	return all
}

// values returns data for a shape.
func values(s ir.Shape, r *rand.Rand) []byte {
	var b []byte
	for range s.Numel() {
		if s.DType().IsFloat() {
			b = elements.AppendFloat(b, s.DType(), r.NormFloat64())
		} else {
			b = elements.AppendInt(b, s.DType(), int64(r.IntN(5)))
		}
	}
	return b
}

func isConstant(name string) bool { return strings.HasPrefix(name, "w") }

// sample is a program with values for its parameters.
type sample struct {
	p         *graph.Program
	constants map[string]aoti.ConstantValue
	all, in   []backend.Buffer
}

func sampleOf(t testing.TB, p *graph.Program, seed uint64) *sample {
	t.Helper()
	s := &sample{p: p, constants: map[string]aoti.ConstantValue{}}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, q := range p.Params {
		data := values(q.Shape, r)
		b, err := hostmem.Wrap(q.Shape, cpu.Device, data, func() {})
		if err != nil {
			t.Fatal(err)
		}
		s.all = append(s.all, b)
		if isConstant(q.Name) {
			s.constants[q.Name] = aoti.ConstantValue{Shape: q.Shape, Data: data}
		} else {
			s.in = append(s.in, b)
		}
	}
	return s
}

func (s *sample) export(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := export.Program(context.Background(), &out, s.p, export.Options{Constants: s.constants}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// want returns what the CPU backend computes.
func (s *sample) want(t testing.TB) []backend.Buffer {
	t.Helper()
	b := cpu.New()
	p, _ := graph.Optimize(s.p, graph.Options{Supports: b.Supports})
	m, err := b.Compile(context.Background(), p, cpu.Device, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	outs, err := m.Run(context.Background(), s.all, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

// load loads a package until the test ends.
func load(t testing.TB, pkg []byte) *aoti.Runner {
	t.Helper()
	r, err := aoti.LoadFrom(context.Background(), bytes.NewReader(pkg), int64(len(pkg)))
	if target := (*aoti.TargetError)(nil); errors.As(err, &target) || errors.Is(err, host.ErrNoLibraries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// same compares results: floats to 2 units in the last place of the largest, all else exactly.
func same(t testing.TB, got, want []backend.Buffer) {
	t.Helper()
	within(t, got, want, 2)
}

// within compares results: floats to some units in the last place of the largest, all else exactly.
func within(t testing.TB, got, want []backend.Buffer, ulps float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d outputs, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Shape() != want[i].Shape() {
			t.Fatalf("output %d is %v, want %v", i, got[i].Shape(), want[i].Shape())
		}
		a, b := floats(t, got[i]), floats(t, want[i])
		largest, worst := 0.0, 0.0
		for k := range a {
			if x := math.Abs(b[k]); x <= math.MaxFloat64 {
				largest = max(largest, x)
			}
			if a[k] != b[k] && !(math.IsNaN(a[k]) && math.IsNaN(b[k])) {
				worst = max(worst, math.Abs(a[k]-b[k]))
			}
		}
		ulp := map[ir.DType]float64{ir.F32: 1.2e-7, ir.F64: 2.3e-16, ir.F16: 1e-3, ir.BF16: 8e-3, ir.C64: 1.2e-7}[want[i].Shape().DType()]
		if !(worst <= ulps*ulp*largest) {
			t.Errorf("output %d is off by %g, where the largest is %g", i, worst, largest)
		}
	}
}

func floats(t testing.TB, b backend.Buffer) []float64 {
	t.Helper()
	data, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	d, n := b.Shape().DType(), b.Shape().Numel()
	if d.IsComplex() {
		d, n = ir.F32, 2*n // those of c64
	}
	out := make([]float64, n)
	for i := range out {
		if d.IsFloat() {
			out[i] = elements.Float(d, data, i)
		} else {
			out[i] = float64(elements.Int(d, data, i))
		}
	}
	return out
}

// inOtherSteps says which programs the backend computes by other steps than packages do, and why.
var inOtherSteps = map[string]string{
	"encoder": "the kernels of products compute GELU, in packages loops do",
}

// Packages compute in this project's own host what the backend computes, and the same bits unless that
// does more in one step.
func TestPackagesComputeWhatTheBackendDoes(t *testing.T) {
	for name, p := range programs(t) {
		t.Run(name, func(t *testing.T) {
			s := sampleOf(t, p, 1)
			r := load(t, s.export(t))
			got, err := r.Run(context.Background(), s.in...)
			if err != nil {
				t.Fatal(err)
			}
			want := s.want(t)
			same(t, got, want)
			if inOtherSteps[name] == "" {
				identical(t, got, want)
			}
		})
	}
}

// identical compares results bit by bit.
func identical(t testing.TB, got, want []backend.Buffer) {
	t.Helper()
	for i := range got {
		a, err := got[i].Bytes(context.Background())
		b, err2 := want[i].Bytes(context.Background())
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("output %d has other bits", i)
		}
	}
}
