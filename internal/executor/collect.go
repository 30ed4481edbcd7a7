package executor

import (
	"fmt"
	"slices"
	"sort"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// SyncTensorsConfig says what a sync does to its tensors.
type SyncTensorsConfig struct {
	// ForceData makes the tensors hold the results. Without it the computation
	// runs, for its errors and timing, but the tensors stay IR.
	ForceData bool
	// SyncData drops the tensors' IR once they have data; it takes ForceData.
	// Without it they keep both, so that later ops extend the recorded graph.
	SyncData bool
}

// SyncTensorCollection is the outcome of collecting: which of the tensors given
// have to be synced, and where.
type SyncTensorCollection struct {
	Config SyncTensorsConfig
	// Indices are the positions, in the tensors given, of those that are synced.
	Indices []int
	// Device is where the collection computes.
	Device ir.Device
	// Hash is the graph hash, once known.
	Hash ir.Hash
}

// PostOrderData is a collection's graph: the walk of its nodes and the data of its parameters.
type PostOrderData struct {
	graph.PostOrder
	// Parameters are the data of the leaves, in post-order. That of a number is nil until
	// resolveScalars has set it.
	Parameters []*Data
	scalars    []scalarParam
}

// shouldSyncTensor reports whether a tensor has IR to sync; the session is locked.
func (s *Session) shouldSyncTensor(t *Tensor) bool {
	if t == nil || t.data != nil || t.ir == nil || t.dead() {
		return false
	}
	if h := s.core.cfg.Hooks.ShouldSyncTensor; h != nil {
		return h(t)
	}
	return true
}

// collectSyncTensors groups the tensors to sync by device, in device order. If devices are given,
// tensors on others are left out. The session is locked.
func (s *Session) collectSyncTensors(tensors []*Tensor, cfg SyncTensorsConfig, devices []ir.Device) []*SyncTensorCollection {
	var one *SyncTensorCollection
	var more map[ir.Device]*SyncTensorCollection
	for i, t := range tensors {
		if !s.shouldSyncTensor(t) {
			continue
		}
		d := t.device()
		if !wanted(d, devices) {
			continue
		}
		coll := one
		if one == nil {
			one = &SyncTensorCollection{Config: cfg, Device: d, Indices: make([]int, 0, len(tensors))}
			coll = one
		} else if one.Device != d {
			if more == nil {
				more = map[ir.Device]*SyncTensorCollection{}
			}
			if coll = more[d]; coll == nil {
				coll = &SyncTensorCollection{Config: cfg, Device: d}
				more[d] = coll
			}
		}
		coll.Indices = append(coll.Indices, i)
	}
	if one == nil {
		return nil
	}
	colls := []*SyncTensorCollection{one}
	for _, c := range more {
		colls = append(colls, c)
	}
	sort.Slice(colls, func(i, j int) bool { return colls[i].Device.Less(colls[j].Device) })
	return colls
}

// collectRoots returns the distinct values of a collection's tensors and, for each of its indices,
// the position of the tensor's value among them. The session is locked.
func collectRoots(tensors []*Tensor, indices []int) (roots []ir.Value, outputs []int) {
	roots = make([]ir.Value, 0, len(indices))
	outputs = make([]int, len(indices))
	var seen map[ir.Value]int
	if len(indices) > fewRoots {
		seen = make(map[ir.Value]int, len(indices))
	}
	for k, i := range indices {
		v := tensors[i].node()
		at, ok := seen[v]
		if seen == nil {
			at = slices.Index(roots, v)
			ok = at >= 0
		}
		if !ok {
			at = len(roots)
			if seen != nil {
				seen[v] = at
			}
			roots = append(roots, v)
		}
		outputs[k] = at
	}
	return roots, outputs
}

// fewRoots are searched one by one in less time than a map of them takes to make.
const fewRoots = 32

// runPostOrder walks the roots and gathers the parameters' data. The walk is valid until the
// walker is released; the session is locked until then.
func (s *Session) runPostOrder(roots []ir.Value) (*PostOrderData, error) {
	po := &PostOrderData{}
	if h := s.core.cfg.Hooks.RunPostOrder; h != nil {
		po.PostOrder = h(roots, s.walker.Walk)
	} else {
		po.PostOrder = s.walker.Walk(roots)
	}
	leaves, numbers := 0, 0
	for _, n := range po.Nodes {
		if !n.IsLeaf() {
			continue
		}
		leaves++
		if _, number := n.Leaf().(*ir.ScalarLeaf); number {
			numbers++
		}
	}
	po.Parameters, po.scalars = make([]*Data, 0, leaves), make([]scalarParam, 0, numbers)
	for _, n := range po.Nodes {
		if !n.IsLeaf() {
			continue
		}
		switch l := n.Leaf().(type) {
		case *Data, *variableLeaf:
			po.Parameters = append(po.Parameters, dataOf(l))
		case *ir.ScalarLeaf:
			po.scalars = append(po.scalars, scalarParam{len(po.Parameters), l, n.Shapes()[0].DType()})
			po.Parameters = append(po.Parameters, nil)
		default:
			s.walker.Release()
			return nil, fmt.Errorf("loris: sync: %w: %s belongs to a function that is being compiled, or to the body of a Scan, and has no elements", ir.ErrArg, l.LeafName())
		}
	}
	return po, nil
}
