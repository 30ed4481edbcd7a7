// Package failures runs programs in which every call of the backend, every allocation of a tensor and
// every call of the system on files fails once, by its number, as SQLite's tests do it: the failure
// must be an error of the step, variables and files must be as before, the same must succeed when it
// is tried again, and nothing may be left over.
package failures

import (
	"context"
	"errors"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

// Kind is a call that fails, and how.
type Kind int

const (
	CompileError    Kind = iota // a compilation returns an error
	CompilePanic                // a compilation panics
	UploadError                 // data does not reach the device
	AllocationError             // there is no memory for a tensor
	RunError                    // a run returns an error before it has begun
	LateRunError                // a run returns an error when it has written all
	RunPanic                    // a run panics
	kinds
)

// String says what fails.
func (k Kind) String() string {
	return [kinds]string{"compilation fails", "compilation panics", "upload fails", "allocation fails", "run fails", "run fails late", "run panics"}[k]
}

// errInjected is the failure.
var errInjected = errors.New("injected failure")

// Injector has the n-th call of a kind fail, once.
type Injector struct {
	backend.Backend
	mu    sync.Mutex
	kind  Kind
	left  int // calls until the failure; negative after it
	fired bool
}

// Install puts an Injector in the place of the backend of a device type, for the rest of the
// process. Until it is armed it changes nothing.
func Install(d ir.Device) (*Injector, error) {
	b, err := backend.For(d)
	if err != nil {
		return nil, err
	}
	in := &Injector{Backend: b, left: -1}
	backend.Register(in)
	memlimit.Refuse(func() bool { return in.hit(AllocationError) })
	return in, nil
}

// arm has the call number n of a kind fail, the first being 0. What is kept for reuse is dropped
// before, so that allocations are as many in each run.
func (in *Injector) arm(k Kind, n int) {
	memlimit.Trim()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.kind, in.left, in.fired = k, n, false
}

// disarm has nothing fail any more, and reports whether something did.
func (in *Injector) disarm() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.left = -1
	return in.fired
}

// hit counts a call of a kind, and reports whether it fails.
func (in *Injector) hit(k Kind) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if k != in.kind || in.left < 0 {
		return false
	}
	in.left--
	if in.left >= 0 {
		return false
	}
	in.fired = true
	return true
}

// Compile is the backend's, or fails.
func (in *Injector) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	if in.hit(CompileError) {
		return nil, errInjected
	}
	if in.hit(CompilePanic) {
		panic(errInjected)
	}
	m, err := in.Backend.Compile(ctx, p, d, o)
	if err != nil {
		return nil, err
	}
	return &model{Model: m, in: in}, nil
}

// Upload is the backend's, or fails.
func (in *Injector) Upload(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	if in.hit(UploadError) {
		return nil, errInjected
	}
	return in.Backend.Upload(ctx, s, d, data)
}

type model struct {
	backend.Model
	in *Injector
}

func (m *model) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if m.in.hit(RunError) {
		return nil, errInjected
	}
	if m.in.hit(RunPanic) {
		panic(errInjected)
	}
	out, err := m.Model.Run(ctx, inputs, donated)
	if err == nil && m.in.hit(LateRunError) {
		for _, b := range out {
			b.Release()
		}
		return nil, errInjected
	}
	return out, err
}
