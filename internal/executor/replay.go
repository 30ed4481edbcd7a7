package executor

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// Replay records the ops that fn records from the tensors in, and returns new handles of what fn
// returns. Where earlier steps called it at the same place with the same key and with tensors of
// the same graph, it may record their ops again without calling fn, see ir.Builder.Replay. fn runs
// without the session's lock.
func (s *Session) Replay(key any, newTensor func() *Tensor, in []*Tensor, fn func() []*Tensor) []*Tensor {
	s.lockTensors("replay", in...)
	locked := true
	defer func() {
		if locked {
			s.unlock()
		}
	}()
	var scratch struct {
		nodes [32]*ir.Node
		shape [64]uint32
	}
	nodes, shape := scratch.nodes[:0], scratch.shape[:0]
	for _, t := range in {
		v := t.value()
		at := slices.Index(nodes, v.Node)
		if at < 0 {
			at = len(nodes)
			nodes = append(nodes, v.Node)
		}
		shape = append(shape, uint32(at), uint32(v.Index))
	}
	var outs []*Tensor // of fn
	values := s.b.Replay(key, nodes, shape, func() []ir.Value {
		locked = false
		s.unlock()
		outs = fn()
		s.lockTensors("replay", outs...)
		locked = true
		vals := make([]ir.Value, len(outs))
		for i, t := range outs {
			vals[i] = t.value()
		}
		return vals
	})
	if outs != nil {
		return outs
	}
	return s.handles(newTensor, values)
}
