package executor

import (
	"context"
	"slices"
	"sync"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tracing"
)

// HostScalar makes dst the handle of the number that f returns, as a rank-0 tensor of the dtype. In
// a function that is traced f is called again at each call.
func (s *Session) HostScalar(dst *Tensor, f func() float64, d ir.DType) {
	v := f()
	s.Scalar("scalar_func", dst, v, d)
	s.lock()
	defer s.unlock()
	if s.tracing != nil {
		s.tracing.hosts[dst.ir] = f
	}
}

// OnCall has count called after each successful call of the function that is being traced with the
// session, from the call that traces it on, and undo if what the call assigned is taken back. It
// returns the trace's number, or 0 if none is traced: then undo is the present step's.
func (s *Session) OnCall(count, undo func()) uint64 {
	s.lockBoth()
	defer s.unlockBoth()
	if s.tracing == nil {
		s.undos = append(s.undos, &hostUndo{undo: []func(){undo}})
		return 0
	}
	s.tracing.onCall = append(s.tracing.onCall, count)
	s.tracing.onUndo = append(s.tracing.onUndo, undo)
	return s.tracing.id
}

// hostUndo takes back, once, what a step has changed of the host's state. A step's are called where
// its assignments are taken back: while it is recorded, or when its work fails.
type hostUndo struct {
	once sync.Once
	undo []func()
}

func (u *hostUndo) run() {
	u.once.Do(func() {
		for _, f := range slices.Backward(u.undo) {
			f()
		}
	})
}

// undoHost takes back what the step has changed of the host's state since there were only n changes;
// core.mu is held.
func (s *Session) undoHost(n int) {
	n = min(n, len(s.undos))
	for _, u := range slices.Backward(s.undos[n:]) {
		u.run()
	}
	clear(s.undos[n:])
	s.undos = s.undos[:n]
}

// giveUndos leaves the changes of the step that ends to its work; core.mu is held. computed are the
// variables whose values an earlier sync of the step computes.
func (s *Session) giveUndos(asyncs []*Async, computed []restore) {
	if len(s.undos) == 0 {
		return
	}
	for _, a := range asyncs {
		a.undos = s.undos
		a.hasLate.Store(true)
	}
	for _, r := range computed {
		switch a := r.new.by; {
		case a == nil || r.new.Ready():
		case a.failed != nil:
			s.undoHost(0)
		default:
			a.undos = append(slices.Clip(a.undos), s.undos...)
			a.hasLate.Store(true)
		}
	}
	s.undos = nil
}

// lockHost makes calls that use or change host state take turns, in the order of the state that they
// see.
func (tr *Traced) lockHost(ctx context.Context) (unlock func(), err error) {
	if !tr.host && len(tr.onCall) == 0 {
		return func() {}, nil
	}
	if err := tr.s.hostState.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { tr.s.hostState.Release(1) }, nil
}

// numbers returns the parameters of a call, with host numbers as they are now.
func (tr *Traced) numbers() []tracedParam {
	if !tr.host {
		return tr.params
	}
	params := make([]tracedParam, len(tr.params))
	copy(params, tr.params)
	for i := range params {
		if f := params[i].host; f != nil {
			params[i].scalar = &ir.ScalarLeaf{Float: f(), IsFloat: true}
		}
	}
	return params
}

// tracedMisuse returns an error, which the call that traces fails with, too, if the calling
// goroutine runs a function that is being traced: what it does would happen once, at the trace, and
// not at each call.
func (s *Session) tracedMisuse(op, msg string) error {
	if !tracing.Active() {
		return nil
	}
	return tracing.Fail(s.core, func() error {
		return ir.NewOpError(op, ir.ErrArg, nil, "%s inside a function that is being compiled, which runs once for all calls", msg)
	})
}
