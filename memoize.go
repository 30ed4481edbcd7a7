package loris

import (
	"weak"

	"github.com/loris-ml/loris/internal/executor"
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
