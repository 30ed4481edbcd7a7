package loris

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

var modelMemory = hostmem.NewAllocator()

// hostModel runs a function on host data. It says its shapes or, with no spec,
// leaves them to be found out.
type hostModel struct {
	spec backend.Spec
	fn   func(in []backend.Buffer) ([]backend.Buffer, error)
	runs atomic.Int64
}

func (m *hostModel) Spec() backend.Spec { return m.spec }

func (m *hostModel) Call(_ context.Context, in []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	m.runs.Add(1)
	return m.fn(in)
}

// doubler returns 2x and the number of x's elements, of any shape.
func doubler() *hostModel {
	return &hostModel{
		spec: backend.Spec{Inputs: make([]backend.Param, 1), Outputs: make([]backend.Param, 2)},
		fn: func(in []backend.Buffer) ([]backend.Buffer, error) {
			x := in[0].(*hostmem.Buffer) // which is how host data is lent
			y, n := must(modelMemory.New(x.Shape(), ir.Device{})), must(modelMemory.New(ir.MakeShape(ir.I64), ir.Device{}))
			for i, v := range hostmem.Slice[float32](x) {
				hostmem.Slice[float32](y)[i] = 2 * v
			}
			hostmem.Slice[int64](n)[0] = int64(x.Shape().Numel())
			return []backend.Buffer{y, n}, nil
		},
	}
}

func read[T any](t testing.TB, f func(context.Context) ([]T, error)) []T {
	t.Helper()
	v, err := f(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCall(t *testing.T) {
	s := newSession(t)
	m := s.With()
	model := doubler()
	x := m.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	for step := range 3 {
		// The operand is a view and the result goes on: all of it is one graph.
		out := Call(model, x.Add(1).Transpose(0, 1))
		y := out[0].Sum(Dim(0))
		if got := out[0].Dims(); !slices.Equal(got, []int{3, 2}) || out[1].DType() != I64 {
			t.Fatalf("recorded as %v and %v", out[0].Shape(), out[1].Shape())
		}
		n := out[1].Keep()
		if err := s.MarkStep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, y.Float32s); !slices.Equal(got, []float32{18, 36}) {
			t.Errorf("step %d: %v", step, got)
		}
		if got := read(t, n.Int64s); got[0] != 6 {
			t.Errorf("step %d: %v elements", step, got)
		}
	}
	if r := s.Report(); r.Compiles != 1 {
		t.Errorf("%d compiles", r.Compiles)
	}
	if n := model.runs.Load(); n != 4 { // one on zeros
		t.Errorf("%d runs", n)
	}
	z := Call(model, m.Zeros(7))
	if z[0].Numel() != 7 || model.runs.Load() != 5 {
		t.Errorf("another shape: %v, %d runs", z[0].Shape(), model.runs.Load())
	}
}

// Equal calls are not made one: a model may have state.
func TestCallsStayApart(t *testing.T) {
	m := newSession(t).With()
	n := float32(0)
	counter := &hostModel{
		spec: backend.Spec{Inputs: make([]backend.Param, 1), Outputs: []backend.Param{{Shape: ir.MakeShape(F32)}}},
		fn: func([]backend.Buffer) ([]backend.Buffer, error) {
			n++
			b := must(modelMemory.New(ir.MakeShape(F32), ir.Device{}))
			hostmem.Slice[float32](b)[0] = n
			return []backend.Buffer{b}, nil
		},
	}
	x := m.Zeros(1)
	sum := Call(counter, x)[0].Add(Call(counter, x)[0])
	if got := read(t, sum.Float32s); got[0] != 3 {
		t.Errorf("1+2 is %v", got[0])
	}
}

func TestCallMistakes(t *testing.T) {
	s := newSession(t)
	m := s.With()
	x := m.Zeros(2)
	param := func(shape Shape) backend.Param { return backend.Param{Name: "pixels", Shape: shape} }
	model := func(in backend.Param) *hostModel {
		h := doubler()
		h.spec.Inputs[0] = in
		return h
	}
	failing := doubler()
	failing.fn = func([]backend.Buffer) ([]backend.Buffer, error) { return nil, errors.New("no zeros please") }
	panicking := doubler()
	panicking.fn = func([]backend.Buffer) ([]backend.Buffer, error) { panic("dead") }
	for _, c := range []struct {
		name string
		fn   func()
		kind error
		want string
	}{
		{"number", func() { Call(doubler(), x, x) }, ErrArg, "takes 1 inputs, got 2"},
		{"shape", func() { Call(model(param(ir.MakeShape(F32, 3))), x) }, ErrShape, "input 0 (pixels) of the model is f32[3], got f32[2]"},
		{"dtype", func() { Call(model(param(ir.MakeShape(I64, 2))), x) }, ErrDType, "i64[2]"},
		{"nil", func() { Call(nil, x) }, ErrArg, "comparable"},
		{"no pointer", func() { Call(loose{}, x) }, ErrArg, "comparable"},
		{"nil tensor", func() { Call(doubler(), nil) }, ErrArg, "tensor 0"},
		{"fails", func() { Call(failing, x) }, nil, "no zeros please"},
		{"panics", func() { Call(panicking, x) }, nil, "dead"},
		{"gradient", func() { Grad(Call(doubler(), x.Mul(2))[0].Sum(), x) }, ErrArg, "no gradient flows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Try(c.fn)
			var op *OpError
			if !errors.As(err, &op) || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "model_test.go:") {
				t.Errorf("%q does not name the line", err)
			}
		})
	}
}

// loose cannot be compared.
type loose struct{ _ []int }

func (loose) Spec() backend.Spec { return backend.Spec{} }

func (loose) Call(context.Context, []backend.Buffer, []bool) ([]backend.Buffer, error) {
	return nil, nil
}

// What a run does wrong is the error of those who read its results.
func TestCallFails(t *testing.T) {
	s := newSession(t)
	if s.Device() == (Device{Type: ir.RegisterDeviceType("null")}) {
		t.Skip("null runs nothing")
	}
	m := s.With()
	errRun := errors.New("the model is tired")
	for name, c := range map[string]struct {
		fn   func(in []backend.Buffer) ([]backend.Buffer, error)
		want string
	}{
		"error":  {func([]backend.Buffer) ([]backend.Buffer, error) { return nil, errRun }, "tired"},
		"panic":  {func([]backend.Buffer) ([]backend.Buffer, error) { panic(errRun) }, "tired"},
		"number": {func([]backend.Buffer) ([]backend.Buffer, error) { return nil, nil }, "returned 0 outputs"},
		"shape": {func([]backend.Buffer) ([]backend.Buffer, error) {
			return []backend.Buffer{must(modelMemory.New(ir.MakeShape(F32, 3), ir.Device{}))}, nil
		}, "f32[3], expected was f32[2]"},
	} {
		t.Run(name, func(t *testing.T) {
			model := &hostModel{spec: backend.Spec{Inputs: make([]backend.Param, 1), Outputs: []backend.Param{{Shape: ir.MakeShape(F32, 2)}}}, fn: c.fn}
			_, err := Call(model, m.Zeros(2))[0].Float32s(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(c.want, "tired") && !errors.Is(err, errRun) {
				t.Errorf("%v hides its cause", err)
			}
			_ = s.WaitDeviceOps(t.Context()) // has the error, too
		})
	}
}

// The text form of a program that calls models reads back, and a model that this
// process does not know is refused when it is compiled.
func TestCallText(t *testing.T) {
	s := newSession(t)
	text, err := s.Dump(false, Call(doubler(), s.With().Zeros(2).Add(1))[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := graph.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if p.String() != text || !strings.Contains(text, `outputs="f32[2] i64[]"`) {
		t.Errorf("printed as\n%s and\n%s", text, p)
	}
	be, err := backend.For(CPU)
	if err != nil {
		t.Fatal(err)
	}
	p, err = graph.Parse("program @p {\n %x = parameter \"x\" : f32[2]\n %0 = call_model([%x], model=999999, outputs=\"f32[2]\")\n return %0\n}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := be.Compile(t.Context(), p, CPU, backend.CompileOptions{}); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("a model of another process: %v", err)
	}
}

// scaleModel is a container whose model computes x·w, of four elements.
func scaleModel(t testing.TB, w float32) *container.Container {
	t.Helper()
	p, err := graph.Parse(`program @scale {
  %x = parameter "x" : f32[4]
  %w = parameter "w" : f32[]
  %0 = mul(%x, %w)
  return %0
}`)
	if err != nil {
		t.Fatal(err)
	}
	program := &container.Program{Run: p, Device: CPU, Constants: []container.ProgramConstant{{Name: "w", Value: hostNumber(w)}}}
	c, err := container.New(context.Background(), program.Compile, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func hostNumber(v float32) backend.Buffer {
	b := must(modelMemory.New(ir.MakeShape(F32), CPU))
	hostmem.Slice[float32](b)[0] = v
	return b
}

func TestCallContainer(t *testing.T) {
	c := scaleModel(t, 3)
	x := newSession(t).With().FromSlice([]float32{1, 2, 3, 4})
	for _, w := range []float32{3, 5} {
		if err := c.Update(t.Context(), map[string]backend.Buffer{"w": hostNumber(w)}, aoti.Active); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint([]float32{w, 2 * w, 3 * w, 4 * w})
		if got := fmt.Sprint(read(t, Call(c, x)[0].Float32s)); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if err := Try(func() { Call(c, newSession(t).With().Zeros(5)) }); !errors.Is(err, ErrShape) {
		t.Errorf("a wrong shape: %v", err)
	}
}

// A model that is released is forgotten; recorded again it is known again.
func TestReleaseModel(t *testing.T) {
	s := newSession(t)
	if s.Device() == (Device{Type: ir.RegisterDeviceType("null")}) {
		t.Skip("null runs nothing")
	}
	m, model := s.With(), doubler()
	x := m.FromSlice([]float32{1, 2})
	before := Call(model, x)[0]
	ReleaseModel(model)
	ReleaseModel(model)
	if _, err := before.Float32s(t.Context()); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("a step that calls a released model: %v", err)
	}
	if got := read(t, Call(model, x)[0].Float32s); got[1] != 4 {
		t.Errorf("called again: %v", got)
	}
}

// must returns the buffer of an allocation that cannot fail.
func must[B any](b B, err error) B {
	if err != nil {
		panic(err)
	}
	return b
}
