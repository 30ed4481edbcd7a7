package executor

import (
	"maps"
	"slices"
	"weak"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/ir"
)

// liveSet is the tensors of one device that have data, as weak pointers; core.mu guards it. The
// session's step holds tensors that are still IR.
type liveSet struct {
	tensors map[weak.Pointer[Tensor]]struct{}
	sweepAt int // when the map reaches this size, dead entries are dropped
}

// registerTensor adds a tensor with data to the live tensors; core.mu is held.
func (c *core) registerTensor(t *Tensor) {
	d := t.data.device
	set := c.live[d]
	if set == nil {
		set = &liveSet{tensors: map[weak.Pointer[Tensor]]struct{}{}, sweepAt: 256}
		c.live[d] = set
	}
	if len(set.tensors) >= set.sweepAt {
		set.sweep()
		set.sweepAt = max(256, 2*len(set.tensors))
	}
	set.tensors[weak.Make(t)] = struct{}{}
}

// sweep drops the tensors that the garbage collector has freed.
func (l *liveSet) sweep() {
	for w := range l.tensors {
		if w.Value() == nil {
			delete(l.tensors, w)
		}
	}
}

// LiveTensors returns the tensors of the devices (none given: all) that are in use: those with
// data, in all sessions of this executor, and those that this session holds until the end of
// the step. It may lack tensors that were only needed for values already read.
func (s *Session) LiveTensors(devices ...ir.Device) []*Tensor {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	var out []*Tensor
	for d, set := range s.core.live {
		if !wanted(d, devices) {
			continue
		}
		for w := range set.tensors {
			if t := w.Value(); t != nil {
				out = append(out, t)
			}
		}
	}
	for _, t := range s.pending {
		if t.data == nil && t.bits&bitDiscarded == 0 && wanted(t.device(), devices) {
			out = append(out, t)
		}
	}
	return out
}

// wanted reports whether d is among devices, or these are none.
func wanted(d ir.Device, devices []ir.Device) bool {
	return len(devices) == 0 || slices.Contains(devices, d)
}

// activeDevices returns the devices that have live tensors or random state, in order.
func (s *Session) activeDevices() []ir.Device {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	devices := slices.AppendSeq(slices.Collect(maps.Keys(s.core.live)), maps.Keys(s.rng))
	slices.SortFunc(devices, compareDevices)
	return slices.Compact(devices)
}

// MemoryInUse returns the bytes of live buffers on a device.
func (s *Session) MemoryInUse(d ir.Device) int64 {
	b, err := backend.For(d)
	if err != nil {
		return 0
	}
	return b.BytesInUse(d)
}
