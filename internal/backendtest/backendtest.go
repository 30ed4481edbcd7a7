// Package backendtest is the conformance suite that every backend passes: each
// primitive on each dtype against backend/ref, whole programs, buffers, errors
// and cancellation.
package backendtest

import (
	"context"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// Run checks a backend on one of its devices. With -short it takes fewer
// samples.
func Run(t *testing.T, b backend.Backend, d ir.Device) {
	s := &suite{b: b, d: d}
	t.Run("Ops", s.ops)
	t.Run("Programs", s.programs)
	t.Run("Gradients", s.gradients)
	t.Run("Loops", s.loops)
	RunRules(t, b, d)
}

// RunRules is the part of Run that is not about what ops compute: errors, buffers
// and what holds for every model.
func RunRules(t *testing.T, b backend.Backend, d ir.Device) {
	s := &suite{b: b, d: d}
	t.Run("Errors", s.errors)
	t.Run("Buffers", s.buffers)
	t.Run("Models", s.models)
}

// RunSome is the part of Run about ops, on the first of so many samples of each, for
// backends that take long to compile.
func RunSome(t *testing.T, b backend.Backend, d ir.Device, every int) {
	s := &suite{b: b, d: d, every: every}
	t.Run("Ops", s.ops)
}

// suite is the backend under test.
type suite struct {
	b     backend.Backend
	d     ir.Device
	every int // of so many samples of an op the first is taken; 0 stands for 1
}

// run compiles a Program, runs it once on raw inputs and returns the raw
// outputs. All buffers are released.
func (s *suite) run(ctx context.Context, p *graph.Program, inputs [][]byte) ([][]byte, error) {
	m, err := s.b.Compile(ctx, p, s.d, backend.CompileOptions{})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	in, err := s.upload(ctx, p, inputs)
	if err != nil {
		return nil, err
	}
	defer release(in)
	out, err := finish(ctx, m, in)
	if err != nil {
		return nil, err
	}
	defer release(out)
	return download(ctx, out)
}

// finish runs a model and waits for its work, the error of which is the run's.
func finish(ctx context.Context, m backend.Model, in []backend.Buffer) ([]backend.Buffer, error) {
	out, err := m.Run(ctx, in, nil)
	a, ok := m.(backend.AsyncModel)
	if !ok || err != nil {
		return out, err
	}
	if err := a.Wait(ctx); err != nil {
		release(out)
		return nil, err
	}
	return out, nil
}

func (s *suite) upload(ctx context.Context, p *graph.Program, inputs [][]byte) ([]backend.Buffer, error) {
	in := make([]backend.Buffer, 0, len(inputs))
	for i, data := range inputs {
		buf, err := s.b.Upload(ctx, p.Params[i].Shape, s.d, data)
		if err != nil {
			release(in)
			return nil, err
		}
		in = append(in, buf)
	}
	return in, nil
}

func release(bufs []backend.Buffer) {
	for _, b := range bufs {
		b.Release()
	}
}

func download(ctx context.Context, bufs []backend.Buffer) ([][]byte, error) {
	out := make([][]byte, len(bufs))
	for i, b := range bufs {
		raw, err := b.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = append([]byte(nil), raw...)
	}
	return out, nil
}

// ops runs the samples of each primitive on each dtype it is defined for. A
// primitive without samples fails: a new row of the table needs some.
func (s *suite) ops(t *testing.T) {
	for _, sp := range ir.Ops() {
		if sp.Composite() {
			continue
		}
		t.Run(sp.Name, func(t *testing.T) {
			if sp.HostOnly && !s.b.Supports(sp.Op) {
				t.Skip("computed on the host only")
			}
			if !s.b.Supports(sp.Op) {
				t.Fatalf("%v does not support the primitive", s.b.DeviceType())
			}
			total := 0
			for _, d := range ir.DTypes() {
				samples := samplesOf(sp, d, !longtest.Enabled())
				for i := range samples {
					if total%max(s.every, 1) == 0 {
						s.sample(t, sp, d, &samples[i])
					}
					total++
				}
			}
			if total == 0 {
				t.Errorf("no samples: add a maker for %s to the table of this package", sp.Name)
			}
		})
	}
}

func (s *suite) sample(t *testing.T, sp *ir.Spec, d ir.DType, x *sample) {
	t.Helper()
	want, err := ref.Eval(x.prog, x.inputs)
	if err != nil {
		t.Fatalf("%v %s: %v", d, x.name, err)
	}
	got, err := s.run(context.Background(), x.prog, x.inputs)
	if err != nil {
		t.Errorf("%v %s: %v", d, x.name, err)
		return
	}
	c := comparison{accuracy: accuracyOf(sp)}
	if c.accumulates {
		if c.scale, err = ref.Eval(x.prog, absolutes(x.prog, x.inputs)); err != nil {
			t.Fatalf("%v %s: on absolute values: %v", d, x.name, err)
		}
	}
	if msg := c.diff(x.prog, got, want); msg != "" {
		t.Errorf("%v %s: %s", d, x.name, msg)
	}
}
