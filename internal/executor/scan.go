package executor

import (
	"errors"
	"fmt"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// ScanConfig says how Scan goes through its sequences.
type ScanConfig struct {
	// Length is the number of elements.
	Length  int
	Reverse bool
	// Every is the distance of the elements before which the carried values are kept for gradients.
	Every int
}

// errInBody is the error of what a loop's body must not do.
var errInBody = errors.New("the body of a Scan is recorded once and runs later")

// Scan calls body once on placeholders for the carried values and an element of each sequence and
// records a loop of what it records, from the values init and over the sequences xs. It returns the
// last carried values and the stacked results. Mistakes panic with an *ir.OpError.
func (s *Session) Scan(newTensor func() *Tensor, init, xs []*Tensor, c ScanConfig, body func(carry, x []*Tensor) (next, results []*Tensor)) (last, stacked []*Tensor) {
	const op = "scan"
	all := append(append([]*Tensor(nil), init...), xs...)
	s.lockTensors(op, all...)
	values := make([]ir.Value, len(all))
	for i, t := range all {
		values[i] = t.value()
	}
	stand := make([]*Tensor, len(all))
	placeholders := make([]ir.Value, len(all))
	for i, v := range values {
		shape := v.Shape()
		if i >= len(init) {
			if shape.Rank() == 0 || shape.Dim(0) != c.Length {
				s.unlock()
				panic(ir.NewOpError(op, ir.ErrShape, values, "sequence %d has no first dimension of %d elements", i-len(init), c.Length))
			}
			shape = shape.WithDims(shape.Dims()[1:]...)
		}
		n := ir.NewLeaf(&graph.ParamLeaf{Index: i, Name: fmt.Sprintf("p%d", i)}, shape, all[i].device())
		placeholders[i] = n.Out(0)
		stand[i] = newTensor()
		stand[i].s, stand[i].ir, stand[i].step, stand[i].bits = s, n, s.step, s.scopes()
	}
	from := len(s.pending)
	s.core.mu.Lock()
	s.bodies++
	s.lasting = true
	s.unlockBoth()
	next, results := s.recordBody(from, func() ([]*Tensor, []*Tensor) { return body(stand[:len(init):len(init)], stand[len(init):]) })
	if len(next) != len(init) {
		panic(ir.NewOpError(op, ir.ErrArg, values, "the body returns %d carried values for %d", len(next), len(init)))
	}
	roots := append(append([]*Tensor(nil), next...), results...)
	s.lockTensors(op, roots...)
	defer s.unlock()
	rootValues := make([]ir.Value, len(roots))
	for i, t := range roots {
		rootValues[i] = t.value()
	}
	for i, v := range rootValues[:len(next)] {
		if v.Shape() != placeholders[i].Shape() {
			panic(ir.NewOpError(op, ir.ErrShape, []ir.Value{placeholders[i], v}, "carried value %d is %v and becomes %v: both must be equal", i, placeholders[i].Shape(), v.Shape()))
		}
	}
	program, consts := graph.CutLoop(&s.walker, placeholders, rootValues)
	l := graph.Loop{Init: values[:len(init)], Xs: values[len(init):], Consts: consts, Body: program, Length: c.Length, Reverse: c.Reverse, Every: c.Every}
	outs := l.Record(s.b)[:len(roots)] // what is kept for gradients has no handles
	ts := s.handles(newTensor, outs)
	return ts[:len(next):len(next)], ts[len(next):]
}

// recordBody calls the body of a loop. The tensors that it records are no results of the step.
func (s *Session) recordBody(from int, body func() ([]*Tensor, []*Tensor)) (next, results []*Tensor) {
	defer func() {
		s.lockBoth()
		defer s.unlockBoth()
		s.bodies--
		clear(s.pending[min(from, len(s.pending)):])
		s.pending = s.pending[:min(from, len(s.pending))]
	}()
	return body()
}
