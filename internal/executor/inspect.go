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
	s.lockWith(ts)
	defer s.unlock()
	colls := s.collectSyncTensors(ts, stepConfig, nil)
	if len(colls) != 1 {
		return ir.Hash{}, errNotOneGraph
	}
	roots, _ := collectRoots(ts, colls[0].Indices)
	po, err := s.runPostOrder(roots)
	if err != nil {
		return ir.Hash{}, err
	}
	defer s.walker.Release()
	return s.walker.Hash(&po.PostOrder, colls[0].Device), nil
}

var errNotOneGraph = errors.New("loris: the tensors are not pending on exactly one device")

// DumpBackendComputation returns the Program of a sync of the tensors: as it was recorded, or, if
// lowered is set, after the rewrites for their backend. It fails as GraphHash does.
func (s *Session) DumpBackendComputation(lowered bool, ts ...*Tensor) (*graph.Program, error) {
	if err := s.Readable(ts...); err != nil {
		return nil, err
	}
	s.lockWith(ts)
	colls := s.collectSyncTensors(ts, stepConfig, nil)
	if len(colls) != 1 {
		s.unlock()
		return nil, errNotOneGraph
	}
	roots, _ := collectRoots(ts, colls[0].Indices)
	po, err := s.runPostOrder(roots)
	if err != nil {
		s.unlock()
		return nil, err
	}
	p, _ := graph.FromPostOrder("step", &po.PostOrder)
	s.walker.Release()
	s.unlock()
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
