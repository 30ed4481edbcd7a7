//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/modelcall"
)

// called registers a model for Programs until the end of the test.
func called(t testing.TB, m backend.Callable) int {
	t.Helper()
	id, err := modelcall.Register(m)
	check(t, err)
	t.Cleanup(func() { modelcall.Forget(m) })
	return id
}

// contained returns a container of a Program on cuda:0.
func contained(t testing.TB, b *Backend, text string) *container.Container {
	t.Helper()
	backend.Register(b)
	t.Cleanup(func() { backend.Register(New(Libraries{})) })
	p := container.Program{Run: parse(t, text), Device: gpu(0)}
	c, err := container.New(t.Context(), p.Compile, container.Config{Instances: 2})
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// callable is a model of a function.
type callable struct {
	fn func(in []backend.Buffer) ([]backend.Buffer, error)
}

func (*callable) Spec() backend.Spec { return backend.Spec{} }

func (c *callable) Call(_ context.Context, in []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	return c.fn(in)
}

// TestCalls has a Program whose memory is used again and again call a package of
// AOTInductor, and a container, in whatever order the device may choose. All is
// enqueued while the device does nothing.
func TestCalls(t *testing.T) {
	f, b, r := loadModel(t, 1, aoti.Instances(2))
	c := contained(t, b, `program @halves {
		%x = parameter "x" : f32[2,4]
		return mul(%x, 0.5), cumsum(%x, dim=0)
	}`)
	text := fmt.Sprintf(`program @calls {
		%%x = parameter "x" : f32[2,8]
		%%a = cumsum(%%x, dim=1)
		%%b = call_model([%%a], %[1]d, "f32[2,4]")
		%%c = cumsum(%%b, dim=0)
		%%d, %%e = call_model([%%c], %[2]d, "f32[2,4] f32[2,4]")
		%%f = cat([%%d, %%e], dim=1)
		%%g = call_model([permute(permute(%%f, dims=[1,0]), dims=[1,0])], %[1]d, "f32[2,4]")
		%%h = cumsum(%%g, dim=1)
		return %%h, %%a, %%d, %%b
	}`, called(t, r), called(t, c))
	m := compiled(t, b, text, backend.Alias{Input: 0, Output: 1})
	for run := range 6 {
		f.Set("shuffle", run)
		in, err := b.Upload(t.Context(), ir.MakeShape(ir.F32, 2, 8), gpu(0), elements.EncodeFloats(ir.F32, slices.Repeat([]float64{1}, 16)))
		check(t, err)
		f.Hold()
		outs, err := m.Run(t.Context(), []backend.Buffer{in}, []bool{run%2 == 1})
		f.Resume()
		check(t, err)
		in.Release()
		// a counts to 8 and adds up to 36: b is 2·37 and 2·37, c 74 and 148, d half of it.
		sum := 4*37 + 4*74 + 1.0 // of f's first row, whose other half is c's, and the bias
		want := [][]float64{{2 * sum, 4 * sum}, {1, 2}, {37, 37}, {74, 74}}
		for i, o := range outs {
			if y := got(t, o); !slices.Equal(y[:2], want[i]) {
				t.Errorf("run %d: output %d begins with %v, want %v", run, i, y[:2], want[i])
			}
		}
		check(t, m.Wait(t.Context()))
	}
}

// TestCallsKeepOrder checks, with models that wait for nothing themselves, that
// memory of the run is read before it is used again, and results after they are made.
func TestCallsKeepOrder(t *testing.T) {
	f, b := newFake(t, 1)
	var kept backend.Buffer
	same := &callable{func(in []backend.Buffer) ([]backend.Buffer, error) {
		in[0].Retain()
		return in, nil
	}}
	one := floats(t, b, 1, 1, 1, 1)
	keeps := &callable{func(in []backend.Buffer) (_ []backend.Buffer, err error) {
		kept, err = b.Copy(t.Context(), in[0], gpu(0))
		one.Retain()
		return []backend.Buffer{one}, err
	}}
	copies := &callable{func(in []backend.Buffer) ([]backend.Buffer, error) {
		y, err := b.Copy(t.Context(), in[0], gpu(0))
		return []backend.Buffer{y}, err
	}}
	for _, c := range []struct {
		name string
		m    backend.Callable
		arg  string
		want []float64
	}{
		// What is returned is %b, what is computed with it the sums of sums of 2.
		{"returns what it is given", same, "%a", []float64{3, 10, 23, 44}},
		{"reads and returns something else", keeps, "%a", []float64{3, 9, 21, 41}},
		{"computes", copies, "%x", []float64{3, 9, 21, 41}},
	} {
		m := compiled(t, b, fmt.Sprintf(`program @order {
			%%x = parameter "x" : f32[4]
			%%a = cumsum(%%x, dim=0)
			%%b = call_model([%s], %d, "f32[4]")
			%%c = cumsum(add(%%x, %%x), dim=0)
			%%d = cumsum(cumsum(%%c, dim=0), dim=0)
			return add(%%b, %%d)
		}`, c.arg, called(t, c.m)))
		for run := range 8 {
			f.Set("shuffle", run)
			x := floats(t, b, 1, 1, 1, 1)
			f.Hold()
			outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
			f.Resume()
			check(t, err)
			if y := got(t, outs[0]); !slices.Equal(y, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, y, c.want)
			}
			if kept != nil {
				if y := got(t, kept); !slices.Equal(y, []float64{1, 2, 3, 4}) {
					t.Errorf("%s: it has read %v", c.name, y)
				}
				kept = nil
			}
		}
	}
}

// TestCallFaults checks that what goes wrong in a called model is the error of the
// run, and of no other.
func TestCallFaults(t *testing.T) {
	_, b := newFake(t, 2)
	c := contained(t, b, `program @pick {
		%x = parameter "x" : f32[4]
		%i = parameter "i" : i64[1]
		return index_select(%x, dim=0, index=%i)
	}`)
	m := compiled(t, b, fmt.Sprintf(`program @outer {
		%%x = parameter "x" : f32[4]
		%%i = parameter "i" : i64[1]
		return neg(call_model([%%x, %%i], %d, "f32[1]"))
	}`, called(t, c)))
	x := floats(t, b, 1, 2, 3, 4)
	for _, i := range []int64{2, 9, 3} {
		at := uploaded(t, b, ir.MakeShape(ir.I64, 1), elements.EncodeInts(ir.I64, []int64{i}))
		outs, err := m.Run(t.Context(), []backend.Buffer{x, at}, nil)
		check(t, err)
		if err := m.Wait(t.Context()); (i == 9) != errors.Is(err, ir.ErrIndex) || i != 9 && err != nil {
			t.Errorf("index %d: %v", i, err)
		}
		if y := got(t, outs[0]); i != 9 && y[0] != -float64(i+1) {
			t.Errorf("index %d: %v", i, y)
		}
	}
	// Models that fail, and those whose results are no good.
	cause := errors.New("no")
	far, err := b.Upload(t.Context(), ir.MakeShape(ir.F32, 1), gpu(1), make([]byte, 4))
	check(t, err)
	defer far.Release()
	for _, c := range []struct {
		name string
		fn   func(in []backend.Buffer) ([]backend.Buffer, error)
		want error
		text string
	}{
		{"fails", func([]backend.Buffer) ([]backend.Buffer, error) { return nil, cause }, cause, "call_model"},
		{"panics", func([]backend.Buffer) ([]backend.Buffer, error) { panic(cause) }, cause, "panic in a model"},
		{"too few", func([]backend.Buffer) ([]backend.Buffer, error) { return nil, nil }, ir.ErrArg, "0 outputs"},
		{"another shape", func(in []backend.Buffer) ([]backend.Buffer, error) {
			in[0].Retain()
			return in, nil
		}, ir.ErrShape, "f32[4]"},
		{"elsewhere", func(in []backend.Buffer) ([]backend.Buffer, error) {
			far.Retain()
			return []backend.Buffer{far}, nil
		}, ir.ErrDevice, "move its inputs to cuda:1"},
	} {
		bad := &callable{c.fn}
		m := compiled(t, b, fmt.Sprintf(`program @bad {
			%%x = parameter "x" : f32[4]
			return neg(call_model([%%x], %d, "f32[1]"))
		}`, called(t, bad)))
		if _, err := m.Run(t.Context(), []backend.Buffer{x}, nil); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
		modelcall.Forget(bad)
		if _, err := m.Run(t.Context(), []backend.Buffer{x}, nil); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: after it was forgotten: %v", c.name, err)
		}
		p := parse(t, "program @gone {\n %x = parameter \"x\" : f32[1]\n return call_model([%x], 999999, \"f32[1]\")\n}")
		if _, err := b.Compile(t.Context(), p, gpu(0), backend.CompileOptions{}); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("a model that there is not: %v", err)
		}
	}
}

// TestCallPlaces checks that a model and its tensors on different devices are told
// apart before anything is computed.
func TestCallPlaces(t *testing.T) {
	_, b, r := loadModel(t, 2, aoti.Device("cuda:1"))
	backend.Register(b)
	t.Cleanup(func() { backend.Register(New(Libraries{})) })
	cpu := ir.Device{Type: ir.RegisterDeviceType("cpu")}
	onCPU := container.Program{Run: parse(t, "program @p {\n %x = parameter \"x\" : f32[2,8]\n return neg(%x)\n}"), Device: cpu}
	c, err := container.New(t.Context(), onCPU.Compile, container.Config{Instances: 1})
	check(t, err)
	defer c.Close()
	in := []ir.Shape{ir.MakeShape(ir.F32, 2, 8)}
	for _, x := range []struct {
		m     backend.Callable
		place ir.Device
		bad   []ir.Device
	}{{r, gpu(1), []ir.Device{cpu, gpu(0)}}, {c, cpu, []ir.Device{gpu(0), gpu(1)}}} {
		id := called(t, x.m)
		_, err := modelcall.Outputs(t.Context(), id, in, x.place)
		check(t, err)
		for _, d := range x.bad {
			_, err := modelcall.Outputs(t.Context(), id, in, d)
			var e *backend.PlaceError
			if !errors.As(err, &e) || e.Model != x.place || e.Tensors != d || !errors.Is(err, ir.ErrDevice) {
				t.Errorf("a model on %v with tensors on %v: %v", x.place, d, err)
			}
		}
	}
	// A Program that was made all the same is told when it runs.
	m := compiled(t, b, fmt.Sprintf("program @p {\n %%x = parameter \"x\" : f32[2,8]\n return call_model([%%x], %d, \"f32[2,4]\")\n}", called(t, r)))
	var e *backend.PlaceError
	if _, err := m.Run(t.Context(), []backend.Buffer{filled(t, b, gpu(0), 1, 2, 8)}, nil); !errors.As(err, &e) {
		t.Errorf("at the run: %v", err)
	}
}
