package loris

import (
	"weak"

	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Memoized is a region of a step, such as a layer or the update of a weight, whose
// recording is kept. Where a step records it in the same place and on inputs of the
// same graph as an earlier step did, the kept recording is replayed, which takes
// little time however many ops it has. Unlike a Function it is no graph of its own:
// its ops take part in the step.
//
// Its methods are safe for concurrent use by sessions of their own.
type Memoized struct {
	fn func(in ...*Tensor) []*Tensor
	// self identifies the region to recorders without keeping it alive.
	self weak.Pointer[Memoized]
}

// Memoize returns fn as a memoised region. What fn records must depend on the
// shapes, dtypes and devices of its inputs alone, and fn must not read elements,
// mark steps or assign variables. Where fn uses other tensors, variables, numbers or
// random ops it is called each time; all but random ops can be inputs, numbers by
// Maker.Scalar.
func Memoize(fn func(in ...*Tensor) []*Tensor) *Memoized {
	m := &Memoized{fn: fn}
	m.self = weak.Make(m)
	return m
}

// Update records the region on the values of variables and on the tensors in, which follow them, and assigns the
// variables its results, one each, in order. It is Record, Variable.ValueIn and Variable.Assign at once, for
// optimisers of one's own: a step records many such updates. The values are those that the session of in sees, or
// that of the first variable if there is no in. Mistakes panic with an *OpError.
func (m *Memoized) Update(vars []*Variable, in ...*Tensor) {
	for i, v := range vars {
		if v == nil {
			panic(ir.NewOpError("update", ErrArg, nil, "variable %d is nil", i))
		}
	}
	var s *executor.Session
	for i, t := range in {
		if of := t.session("update"); i == 0 {
			s = of
		}
	}
	switch {
	case len(vars) == 0:
		panic(ir.NewOpError("update", ErrArg, nil, "there are no variables"))
	case s == nil:
		s = vars[0].ex().Session()
	}
	s.Update(m.self, len(vars), func(i int) *executor.Variable { return vars[i].ex() }, handles(in), func(in []*executor.Tensor) []*executor.Tensor {
		return handles(m.fn(wrapAll(in)...))
	})
}

// Record records the ops of the region on inputs, which belong to one session, and
// returns its results. Whether a MarkStep computes what fn records and neither
// returns nor uses is not specified. Mistakes panic with an *OpError.
func (m *Memoized) Record(in ...*Tensor) []*Tensor {
	if len(in) == 0 {
		return m.fn()
	}
	for _, t := range in {
		t.session("memoize")
	}
	return wrapAll(in[0].session("memoize").Replay(m.self, newTensor, handles(in), func() []*executor.Tensor {
		return handles(m.fn(in...))
	}))
}
