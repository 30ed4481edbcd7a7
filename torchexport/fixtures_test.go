package torchexport_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/torchexport"
)

var ctx = context.Background()

// fixture is a program with PyTorch's results; scripts/torchexport_fixtures.py writes them.
type fixture struct {
	name string
	f    *safetensors.File
	s    *loris.Session
}

func fixtures(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.pt2"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".pt2")
	}
	return files
}

func open(t *testing.T, name string) *fixture {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", name+".safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s, err := loris.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(ctx) })
	return &fixture{name, f, s}
}

func (x *fixture) load(t *testing.T) *torchexport.Model {
	t.Helper()
	m, err := torchexport.Load(ctx, filepath.Join("testdata", x.name+".pt2"), torchexport.With(x.s.With()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// has reports whether the fixture has a tensor.
func (x *fixture) has(name string) bool {
	_, ok := x.f.Lookup(name)
	return ok
}

// tensor returns a tensor of the fixture.
func (x *fixture) tensor(t *testing.T, name string) *loris.Tensor {
	t.Helper()
	shape, data, err := tensorfile.Read(x.f, name)
	if err != nil {
		t.Fatal(err)
	}
	return x.s.With().FromBytes(data, shape)
}

// inputs returns those of a case, nil if there is no such case.
func (x *fixture) inputs(t *testing.T, k int) []*loris.Tensor {
	t.Helper()
	var ins []*loris.Tensor
	for x.has(fmt.Sprintf("%d.in%d", k, len(ins))) {
		ins = append(ins, x.tensor(t, fmt.Sprintf("%d.in%d", k, len(ins))))
	}
	return ins
}

// compare holds a tensor against the fixture's, relative to the largest element.
func (x *fixture) compare(t *testing.T, name string, got *loris.Tensor, tolerance float64) {
	t.Helper()
	want := x.tensor(t, name)
	if got.Shape() != want.Shape() {
		t.Errorf("%s is %v, want %v", name, got.Shape(), want.Shape())
		return
	}
	a, err := got.Cast(loris.F64).Float64s(ctx)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err := want.Cast(loris.F64).Float64s(ctx)
	if err != nil {
		t.Fatal(err)
	}
	largest, worst := 1e-3, 0.0
	for i := range b {
		if !math.IsInf(b[i], 0) && !math.IsNaN(b[i]) {
			largest = max(largest, math.Abs(b[i]))
		}
		d := math.Abs(a[i] - b[i])
		if a[i] == b[i] || math.IsNaN(a[i]) && math.IsNaN(b[i]) {
			d = 0
		}
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		worst = max(worst, d)
	}
	if worst > tolerance*largest {
		t.Errorf("%s is off by %.3g, largest element %.3g", name, worst, largest)
	}
}

func (x *fixture) tolerance(t *loris.Tensor) float64 {
	if t.DType() == loris.BF16 || t.DType() == loris.F16 {
		return 2e-2
	}
	return 1e-5
}

func TestProgramsComputeWhatPyTorchDoes(t *testing.T) {
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			x := open(t, name)
			for k := 0; x.has(fmt.Sprintf("%d.in0", k)); k++ {
				m := x.load(t)
				outs, err := m.Call(ctx, x.inputs(t, k)...)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(m.Signature().Outputs); n != len(outs) {
					t.Errorf("%d outputs, the signature has %d", len(outs), n)
				}
				for i, o := range outs {
					x.compare(t, fmt.Sprintf("%d.out%d", k, i), o, x.tolerance(o))
				}
				if x.has(fmt.Sprintf("%d.out%d", k, len(outs))) {
					t.Errorf("there are more outputs than %d", len(outs))
				}
				if k == 0 {
					for name, v := range m.Buffers() {
						x.compare(t, "after."+name, v.Value(), 1e-5)
					}
				}
			}
		})
	}
}

func TestProgramsTrainAsInPyTorch(t *testing.T) {
	trained := 0
	for _, name := range fixtures(t) {
		x := open(t, name)
		m := x.load(t)
		var vars []*loris.Variable
		var names []string
		for n, v := range m.Params() {
			vars, names = append(vars, v), append(names, n)
		}
		if len(names) == 0 || !x.has("grad."+names[0]) {
			continue
		}
		trained++
		t.Run(name, func(t *testing.T) {
			opt := optim.NewSGD(m.Params(), 0.05)
			ins := x.inputs(t, 0)
			var grads []*loris.Tensor
			for step := range 5 {
				_, g := loris.ValueAndGrad(func() *loris.Tensor { return m.Forward(ins...)[0].Square().Mean() }, vars...)
				grads = g
				if step < 4 {
					opt.Step(g)
				}
				loris.Keep(grads...)
				if err := x.s.MarkStep(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for i, n := range names {
				x.compare(t, "grad."+n, grads[i], 1e-4)
			}
			for n, v := range m.Buffers() {
				x.compare(t, "buffer."+n, v.Value(), 1e-4)
			}
		})
	}
	if trained < 8 {
		t.Errorf("only %d programs were trained", trained)
	}
}

func TestWrongInputsAreNamed(t *testing.T) {
	x := open(t, "conv_eval")
	m := x.load(t)
	mk := x.s.With()
	for _, tc := range []struct {
		in   []*loris.Tensor
		says string
	}{
		{nil, "0 inputs are given, the program takes 1: x"},
		{[]*loris.Tensor{mk.Zeros(65, 3, 8, 8)}, `input "x": dimension 0 (s77) is 65, the program was exported for s77 in 1..64`},
		{[]*loris.Tensor{mk.Zeros(2, 3, 8, 9)}, `dimension 3 must be 8`},
		{[]*loris.Tensor{mk.Zeros(2, 3, 8)}, `input "x" is f32[2,3,8], the program takes x: f32[s77 in 1..64, 3, 8, 8]`},
		{[]*loris.Tensor{mk.With(loris.As(loris.I64)).Zeros(2, 3, 8, 8)}, "dtype error"},
	} {
		_, err := m.Call(ctx, tc.in...)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v, want %q", err, tc.says)
		}
	}
	if _, err := m.CallNamed(ctx, map[string]*loris.Tensor{"y": mk.Zeros(1, 3, 8, 8)}); err == nil || !strings.Contains(err.Error(), `input "x"`) {
		t.Errorf("%v", err)
	}
	y := open(t, "data")
	d := y.load(t)
	err := loris.Try(func() { d.Forward(y.inputs(t, 0)...) })
	if err == nil || !strings.Contains(err.Error(), "use Model.Call") || !strings.Contains(err.Error(), "model.py:") {
		t.Errorf("%v", err)
	}
}

func TestCompiledProgram(t *testing.T) {
	x := open(t, "encoder")
	m := x.load(t)
	f := loris.Compile(m.Forward)
	for k := range 2 {
		outs, err := f.Call(ctx, x.inputs(t, k)...)
		if err != nil {
			t.Fatal(err)
		}
		x.compare(t, fmt.Sprintf("%d.out0", k), outs[0], 1e-5)
	}
}
