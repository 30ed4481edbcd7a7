package executor

import (
	"context"

	"github.com/loris-ml/loris/internal/tracing"
	"github.com/loris-ml/loris/ir"
)

// HostScalar makes dst the handle of the number that f returns, as a rank-0 tensor of the dtype. In
// a function that is traced f is called again at each call.
func (s *Session) HostScalar(dst *Tensor, f func() float64, d ir.DType) {
	v := f()
	s.Scalar("scalar_func", dst, v, d)
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if s.tracing != nil {
		s.tracing.hosts[dst.ir] = f
	}
}

// OnCall has f called after each successful call of the function that is being traced with the
// session, from the call that traces it on. It returns the trace's number, or 0 if none is traced.
func (s *Session) OnCall(f func()) uint64 {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if s.tracing == nil {
		return 0
	}
	s.tracing.onCall = append(s.tracing.onCall, f)
	return s.tracing.id
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
