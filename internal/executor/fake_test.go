package executor_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

var fakeType = ir.RegisterDeviceType("fake")

// fake is a backend that computes as ref does and fails, waits and takes notes
// as a test wants. A donated input is overwritten with garbage as soon as it has
// been used, and reading it later fails the test.
type fake struct {
	t testing.TB
	// compiling and running, when set, are called in the place of the work; what
	// they return or panic with is its failure.
	compiling func(ctx context.Context, p *graph.Program, d ir.Device) error
	running   func(ctx context.Context, p *graph.Program, d ir.Device) error
	uploading func(s ir.Shape, d ir.Device) error

	held int64       // what each model says that it holds
	idle atomic.Bool // what Idle says

	compiles, runs, uploads, releases atomic.Int64
	computed                          atomic.Int64 // results of runs

	mu      sync.Mutex
	options []backend.CompileOptions // by compilation; guarded by mu
	donated [][]bool                 // by run; guarded by mu
	ran     []ir.Device              // by run; guarded by mu
}

// newFake registers a fake backend of two devices for the time of the test.
func newFake(t testing.TB) *fake {
	f := &fake{t: t}
	backend.Register(f)
	return f
}

func fakeDevice(i int) ir.Device { return ir.Device{Type: fakeType, Index: uint8(i)} }

func (f *fake) DeviceType() ir.DeviceType  { return fakeType }
func (f *fake) NumDevices() (int, error)   { return 2, nil }
func (f *fake) Version() string            { return "fake" }
func (f *fake) Supports(op ir.Op) bool     { return ref.New().Supports(op) }
func (f *fake) BytesInUse(ir.Device) int64 { return 0 }

func (f *fake) Idle() bool { return f.idle.Load() }

func (f *fake) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	f.compiles.Add(1)
	f.mu.Lock()
	f.options = append(f.options, o)
	f.mu.Unlock()
	o.Progress(1, 3)
	if f.compiling != nil {
		if err := f.compiling(ctx, p, d); err != nil {
			return nil, err
		}
	}
	return &fakeModel{f: f, p: p, d: d}, nil
}

func (f *fake) Upload(_ context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	f.uploads.Add(1)
	if f.uploading != nil {
		if err := f.uploading(s, d); err != nil {
			return nil, err
		}
	}
	return &fakeBuffer{f: f, shape: s, device: d, data: slices.Clone(data)}, nil
}

// donations returns how many inputs each run was given, and forgets them.
func (f *fake) donations() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]int, len(f.donated))
	for i, mask := range f.donated {
		for _, d := range mask {
			if d {
				out[i]++
			}
		}
	}
	f.donated = nil
	return out
}

type fakeModel struct {
	f *fake
	p *graph.Program
	d ir.Device
}

func (m *fakeModel) Close() error { return nil }

func (m *fakeModel) HeldBytes() int64 { return m.f.held }

func (m *fakeModel) Spec() backend.Spec {
	return backend.Spec{Inputs: make([]backend.Param, len(m.p.Params)), Outputs: make([]backend.Param, len(m.p.Returns))}
}

func (m *fakeModel) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	f := m.f
	f.runs.Add(1)
	f.mu.Lock()
	f.donated, f.ran = append(f.donated, slices.Clone(donated)), append(f.ran, m.d)
	f.mu.Unlock()
	if f.running != nil {
		if err := f.running(ctx, m.p, m.d); err != nil {
			return nil, err
		}
	}
	data := make([][]byte, len(inputs))
	for i, in := range inputs {
		if in.Device() != m.d {
			return nil, fmt.Errorf("fake: input %d is on %v, not %v", i, in.Device(), m.d)
		}
		b, err := in.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		data[i] = slices.Clone(b)
	}
	results, err := ref.Eval(m.p, data)
	if err != nil {
		return nil, err
	}
	for i := range donated {
		if donated[i] {
			inputs[i].(*fakeBuffer).spoil()
		}
	}
	f.computed.Add(int64(len(results)))
	out := make([]backend.Buffer, len(results))
	for i, r := range results {
		out[i] = &fakeBuffer{f: f, shape: m.p.Shape(m.p.Returns[i]), device: m.d, data: r}
	}
	return out, nil
}

type fakeBuffer struct {
	f       *fake
	shape   ir.Shape
	device  ir.Device
	mu      sync.Mutex
	data    []byte // guarded by mu
	spoiled bool   // guarded by mu
	gone    bool   // guarded by mu: released
}

func (b *fakeBuffer) Shape() ir.Shape   { return b.shape }
func (b *fakeBuffer) Device() ir.Device { return b.device }
func (b *fakeBuffer) Retain()           {}

// Release counts in the fake: nothing here has more than one reference.
func (b *fakeBuffer) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		b.f.t.Errorf("data %v was released twice", b.shape)
	}
	b.gone = true
	b.f.releases.Add(1)
}

func (b *fakeBuffer) Bytes(context.Context) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spoiled {
		b.f.t.Errorf("data %v was read after it had been donated", b.shape)
	}
	if b.gone {
		b.f.t.Errorf("data %v was read after it had been released", b.shape)
	}
	return b.data, nil
}

func (b *fakeBuffer) spoil() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spoiled = true
	b.data = slices.Repeat([]byte{0xa5}, len(b.data))
}

// floatsOn is floats on a given device.
func floatsOn(t testing.TB, s *executor.Session, d ir.Device, v ...float32) *executor.Tensor {
	t.Helper()
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	x := newTensor()
	if err := s.Upload(ctx, x, ir.MakeShape(ir.F32, len(v)), d, b); err != nil {
		t.Fatal(err)
	}
	return x
}

// value is a variable's value in a session.
func value(s *executor.Session, v *executor.Variable) *executor.Tensor {
	x := newTensor()
	v.Value(s, x)
	return x
}

func mark(t testing.TB, s *executor.Session) {
	t.Helper()
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
}
