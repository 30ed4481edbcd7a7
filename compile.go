package loris

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loris-ml/loris/internal/executor"
)

// Function is a function of tensors that is traced once for each signature of
// its inputs (shapes, dtypes, devices) and from then on runs without recording.
// Its methods are safe for concurrent use.
type Function struct {
	fn func(in ...*Tensor) []*Tensor

	mu     sync.Mutex
	traces map[signature]*tracing // guarded by mu
}

// signature is what a trace depends on.
type signature struct {
	s      *Session
	shapes string // and devices
}

// tracing is the trace of one signature, which may be in progress.
type tracing struct {
	done   chan struct{}
	traced *executor.Traced // set, like err, before done is closed
	err    error
}

// Compile returns a Function of fn, which must record the same ops whenever its inputs
// have the same signature. fn is called on placeholders; it must not read or print
// elements or mark steps. It may use other tensors, which become part of the compiled
// function, and variables, which each call reads and assigns. Random ops draw new numbers
// at each call. As at the end of a Step, a call may overwrite the old value of a variable
// that it assigns where no tensor holds that value; if the computation then fails, the
// variable has the error until it is assigned again.
//
// Starting a training step that is a Function, with an optimiser that is optim.Captured,
// takes a fraction of the time that recording it takes.
func Compile(fn func(in ...*Tensor) []*Tensor) *Function {
	return &Function{fn: fn, traces: map[signature]*tracing{}}
}

// Call runs the function and returns its outputs once the work is scheduled. Inputs that
// are pending are synced first. All belong to one session and its forks, and no other
// goroutine may record with that session while a new signature is traced. A mistake of fn
// is returned as the *OpError that it panics with.
//
// Inside the fn of another Function, Call records what its own fn records.
func (f *Function) Call(ctx context.Context, in ...*Tensor) ([]*Tensor, error) {
	s, err := sessionOfAll(in)
	if err != nil {
		return nil, err
	}
	if s == nil {
		s = Default()
	}
	if s.ex().Tracing(handles(in)) {
		return TryValue(func() []*Tensor { return f.fn(in...) })
	}
	tr, err := f.trace(ctx, s, in)
	if err != nil {
		return nil, err
	}
	outs, err := tr.Call(ctx, handles(in), newTensor)
	if err != nil {
		return nil, err
	}
	return tensors(outs), nil
}

// trace returns the trace of the inputs' signature, which it makes if there is none yet.
// A trace that failed is not kept.
func (f *Function) trace(ctx context.Context, s *Session, in []*Tensor) (*executor.Traced, error) {
	key := signatureOf(s, in)
	for {
		f.mu.Lock()
		t := f.traces[key]
		if t == nil {
			t = &tracing{done: make(chan struct{})}
			f.traces[key] = t
			f.mu.Unlock()
			f.run(ctx, s, in, key, t)
			return t.traced, t.err
		}
		f.mu.Unlock()
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// A trace that another caller cancelled is made again.
		if t.err == nil || !(errors.Is(t.err, context.Canceled) || errors.Is(t.err, context.DeadlineExceeded)) {
			return t.traced, t.err
		}
	}
}

func (f *Function) run(ctx context.Context, s *Session, in []*Tensor, key signature, t *tracing) {
	t.err = fmt.Errorf("loris: compile: the function panicked")
	defer func() {
		if t.err != nil {
			f.mu.Lock()
			delete(f.traces, key)
			f.mu.Unlock()
		}
		close(t.done)
	}()
	t.traced, t.err = s.ex().Trace(ctx, handles(in), newTensor, tried(f.fn))
}

func signatureOf(s *Session, in []*Tensor) signature {
	var b []byte
	for _, t := range in {
		b = t.Shape().Append(b)
		d := t.Device()
		b = append(b, byte(d.Type), d.Index)
	}
	return signature{s, string(b)}
}

// Program returns the text of the graph that runs for inputs of this signature, or false
// if none was traced yet.
func (f *Function) Program(in ...*Tensor) (string, bool) {
	s, err := sessionOfAll(in)
	if err != nil {
		return "", false
	}
	if s == nil {
		s = Default()
	}
	f.mu.Lock()
	t := f.traces[signatureOf(s, in)]
	f.mu.Unlock()
	if t == nil {
		return "", false
	}
	select {
	case <-t.done:
	default:
		return "", false
	}
	if t.err != nil {
		return "", false
	}
	return t.traced.Program().String(), true
}
