package loris

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// faulty is the reference backend on a device of its own, whose compilations
// can be made to fail and whose runs can be made to wait.
type faulty struct {
	backend.Backend
	typ     ir.DeviceType
	compile atomic.Pointer[error]
	gate    atomic.Pointer[chan struct{}]
}

var errFault = errors.New("fault")

func newFaulty(t *testing.T) (*faulty, Device) {
	t.Helper()
	ref, err := backend.For(Ref)
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Backend: ref, typ: ir.RegisterDeviceType("faulty")}
	backend.Register(f)
	return f, Device{Type: f.typ}
}

func (f *faulty) DeviceType() ir.DeviceType { return f.typ }

func (f *faulty) Upload(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	return f.Backend.Upload(ctx, s, Ref, data)
}

func (f *faulty) BytesInUse(ir.Device) int64 { return f.Backend.BytesInUse(Ref) }

func (f *faulty) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	if err := f.compile.Load(); err != nil {
		return nil, *err
	}
	m, err := f.Backend.Compile(ctx, p, Ref, o)
	return gated{m, f}, err
}

// gated is a model that waits for the backend's gate before it runs.
type gated struct {
	backend.Model
	f *faulty
}

func (m gated) Run(ctx context.Context, in []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if g := m.f.gate.Load(); g != nil {
		<-*g
	}
	return m.Model.Run(ctx, in, donated)
}

func TestFailedCompileLeavesEverythingPending(t *testing.T) {
	ctx := t.Context()
	f, dev := newFaulty(t)
	s := newSession(t)
	good := s.With().Ones(2).Add(1)
	bad := s.With(On(dev)).Ones(2).Add(1)
	v := NewVariable(s.With().FromSlice([]float32{1, 1}))
	v.Assign(v.Value().Add(good))
	err := errFault
	f.compile.Store(&err)
	for range 2 {
		if err := s.MarkStep(ctx); !errors.Is(err, errFault) {
			t.Fatalf("got %v, want the compilation's error", err)
		}
		if !good.Pending() || !bad.Pending() || s.Report().Runs != 0 {
			t.Fatal("a step happened in part")
		}
	}
	f.compile.Store(nil)
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	wantFloats(t, bad, 2, 2)
	wantFloats(t, good, 2, 2)
	wantFloats(t, v.Value(), 3, 3)
}

func TestCancelWhileAnotherStepRuns(t *testing.T) {
	ctx := t.Context()
	f, dev := newFaulty(t)
	s := newSession(t, WithDevice(dev))
	m := s.With()
	gate := make(chan struct{})
	f.gate.Store(&gate)
	x := m.Ones(1).Add(1)
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	y := m.Ones(1).Add(2)
	canceled, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- s.MarkStep(canceled) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("step: got %v, want context.Canceled", err)
	}
	if _, err := x.Float32s(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("read: got %v, want context.Canceled", err)
	}
	if x.Ready() || x.Pending() || !y.Pending() {
		t.Error("the first step must be running and the second one not begun")
	}
	close(gate)
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	wantFloats(t, x, 2)
	wantFloats(t, y, 3)
}
