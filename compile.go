package loris

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tracing"
)

// Function is a function of tensors that is traced once for each signature of
// its inputs (shapes, dtypes, devices) and from then on runs without recording.
// Its methods are safe for concurrent use.
type Function struct {
	fn func(in ...*Tensor) []*Tensor

	mu      sync.Mutex
	traces  map[signature][]*traceRun // guarded by mu; oldest first
	checked bool                      // guarded by mu: fn was found to record the same twice
}

// maxVariants bounds the traces of one signature that differ in what Guard returned.
const maxVariants = 32

// signature is what a trace depends on.
type signature struct {
	s      *Session
	shapes string // and devices
}

// traceRun is the trace of one signature, which may be in progress.
type traceRun struct {
	done   chan struct{}
	traced *executor.Traced // set, like err, before done is closed
	err    error
}

// Compile returns a Function of fn, which must record the same ops whenever its inputs
// have the same signature. fn is called on placeholders. It may use other tensors, which
// become part of the compiled function, and variables, which each call reads and assigns.
// Random ops draw new numbers at each call. As at the end of a Step, a call may overwrite the
// old value of a variable that it assigns where no tensor holds that value; if the computation
// then fails, the variable has the error until it is assigned again.
//
// Whatever else of Go fn looks at has the value of the trace in all calls. What changes is an
// input, a variable, a number by Maker.ScalarFunc, or a choice by Guard; optimisers and the
// training mode of layers take care of themselves. To find what was overlooked, such as a
// counter or the time, the first trace calls fn twice, and Call returns an error if the
// recordings differ. It also does if fn reads elements, marks a step or makes a variable, even
// where fn drops that error.
//
// Starting a training step that is a Function takes a fraction of the time that recording it
// takes.
func Compile(fn func(in ...*Tensor) []*Tensor) *Function {
	return &Function{fn: fn, traces: map[signature][]*traceRun{}}
}

// Call runs the function and returns its outputs once the work is scheduled. Inputs that
// are pending are synced first. All belong to one session and its forks, and no other
// goroutine may record with that session while a new signature is traced. A mistake of fn
// is returned as the *OpError that it panics with.
//
// Inside the fn of another Function, Call records what its own fn records.
func (f *Function) Call(ctx context.Context, in ...*Tensor) ([]*Tensor, error) {
	if err := ir.CheckContext("call", ctx); err != nil {
		return nil, err
	}
	s, err := sessionOfAll(in)
	if err != nil {
		return nil, err
	}
	if s == nil {
		s = Default()
	}
	if tracing.Inside() || s.ex().Tracing(handles(in)) {
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
	return wrapAll(outs), nil
}

// trace returns the trace of the inputs' signature whose guards hold, which it makes if there is
// none yet. A trace that failed is not kept.
func (f *Function) trace(ctx context.Context, s *Session, in []*Tensor) (*executor.Traced, error) {
	key := signatureOf(s, in)
	for {
		t, found := f.lookup(key)
		if !found {
			f.run(ctx, s, in, key, t)
			return t.traced, t.err
		}
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case t.err == nil && tracing.Hold(t.traced.Guards()):
			return t.traced, nil
		case t.err != nil && !errors.Is(t.err, context.Canceled) && !errors.Is(t.err, context.DeadlineExceeded):
			return nil, t.err
		}
		// Another caller cancelled the trace, or made it under other guards.
	}
}

// lookup returns the trace of a signature that is in progress, or one whose guards hold. If there
// is none, it adds one for the caller to run, and found is false.
func (f *Function) lookup(key signature) (t *traceRun, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.traces[key] {
		if !t.ended() || t.err == nil && tracing.Hold(t.traced.Guards()) {
			return t, true
		}
	}
	t = &traceRun{done: make(chan struct{})}
	if n := len(f.traces[key]); n >= maxVariants {
		f.traces[key] = slices.Delete(f.traces[key], 0, n-maxVariants+1)
	}
	f.traces[key] = append(f.traces[key], t)
	return t, false
}

func (t *traceRun) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

func (f *Function) run(ctx context.Context, s *Session, in []*Tensor, key signature, t *traceRun) {
	t.err = fmt.Errorf("loris: compile: the function panicked")
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.err != nil {
			f.traces[key] = slices.DeleteFunc(f.traces[key], func(o *traceRun) bool { return o == t })
		} else {
			f.checked = true
		}
		close(t.done)
	}()
	f.mu.Lock()
	check := !f.checked
	f.mu.Unlock()
	t.traced, t.err = s.ex().Trace(ctx, handles(in), newTensor, tried(f.fn), check)
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
	defer f.mu.Unlock()
	for _, t := range f.traces[signatureOf(s, in)] {
		if t.ended() && t.err == nil && tracing.Hold(t.traced.Guards()) {
			return t.traced.Program().String(), true
		}
	}
	return "", false
}

// Guard returns what get returns, and makes it part of what a trace depends on: in the fn of a
// Function, where a later Call finds that get returns something else, fn is traced again for
// that. Elsewhere it only calls get. It is for choices of a few kinds, such as a mode; for
// numbers there is Maker.ScalarFunc.
func Guard[T comparable](get func() T) T {
	v := get()
	if tracing.Active() {
		tracing.Depend(nil, func() any { return get() })
	}
	return v
}

// ScalarFunc returns the number that f returns, as a tensor of rank 0, f32 by default. In the fn of
// a Function each Call asks f again, before it runs; elsewhere it is Scalar of f's number. f must
// not call a Function that uses a ScalarFunc.
func (m Maker) ScalarFunc(f func() float64) *Tensor {
	t := new(executor.Tensor)
	m.Session().ex().HostScalar(t, f, m.DType(F32))
	if m.device.IsAny() || m.device == m.Session().Device() {
		return (*Tensor)(t)
	}
	panic(ir.NewOpError("scalar", ErrDevice, nil, "a scalar has no device of its own"))
}

// ScalarFunc is Maker.ScalarFunc in the default session.
func ScalarFunc(f func() float64) *Tensor { return Maker{}.ScalarFunc(f) }

// OnCall is for state of Go that a training step counts, such as a number of steps, inside the fn
// of a Function, which is not called for each step: it has count called after each Call that has
// scheduled its work, the first included, and undo each time that what such a Call has assigned is
// taken back, since its work fails or the Step around it does. It returns a number of the trace, which
// differs from that of others. Where no function is being traced with the session it returns 0, leaves
// the counting to the caller, and has undo called if the session's present step is taken back: a Step
// that returns an error, or a step whose work fails later. Both must be quick and must not use the
// session; undo may be called on any goroutine.
func (s *Session) OnCall(count, undo func()) uint64 { return s.ex().OnCall(count, undo) }
