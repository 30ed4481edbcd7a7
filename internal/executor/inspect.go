package executor

import (
	"errors"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// GraphHash returns the hash of the graph that a sync of the tensors would
// run. It fails if they are on several devices or none is pending.
func (s *Session) GraphHash(ts ...*Tensor) (ir.Hash, error) {
	if err := s.Readable(ts...); err != nil {
		return ir.Hash{}, err
	}
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	colls := s.collectSyncTensors(ts, stepConfig, nil)
	if len(colls) != 1 {
		return ir.Hash{}, errNotOneGraph
	}
	roots, _ := collectRoots(ts, colls[0].Indices)
	po, err := s.runPostOrder(roots)
	if err != nil {
		return ir.Hash{}, err
	}
	defer s.core.walker.Release()
	return s.core.walker.Hash(&po.PostOrder, colls[0].Device), nil
}

var errNotOneGraph = errors.New("loris: the tensors are not pending on exactly one device")

// DumpBackendComputation returns the Program of a sync of the tensors: as it was recorded, or, if
// lowered is set, after the rewrites for their backend. It fails as GraphHash does.
func (s *Session) DumpBackendComputation(lowered bool, ts ...*Tensor) (*graph.Program, error) {
	if err := s.Readable(ts...); err != nil {
		return nil, err
	}
	s.core.mu.Lock()
	colls := s.collectSyncTensors(ts, stepConfig, nil)
	if len(colls) != 1 {
		s.core.mu.Unlock()
		return nil, errNotOneGraph
	}
	roots, _ := collectRoots(ts, colls[0].Indices)
	po, err := s.runPostOrder(roots)
	if err != nil {
		s.core.mu.Unlock()
		return nil, err
	}
	p, _ := graph.FromPostOrder("step", &po.PostOrder)
	s.core.walker.Release()
	s.core.mu.Unlock()
	if !lowered {
		return p, nil
	}
	return s.lower(p, colls[0].Device)
}

// lower returns the Program that the device's backend would compile.
func (s *Session) lower(p *graph.Program, d ir.Device) (*graph.Program, error) {
	be, err := backend.For(d)
	if err != nil {
		return nil, err
	}
	out, _ := graph.Optimize(p, graph.Options{Supports: be.Supports})
	return out, nil
}
