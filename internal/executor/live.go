package executor

import (
	"maps"
	"slices"
	"sync"
	"weak"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// liveTensors are the tensors that have data, by device, as weak pointers. The session's step holds
// tensors that are still IR. Sessions have parts of their own, so that they seldom wait for each other;
// the lock of a part is taken after the other locks, or without them.
type liveTensors [16]livePart

type livePart struct {
	mu   sync.Mutex
	sets map[ir.Device]*liveSet
	_    [48]byte // another processor's part is in another line of the cache
}

// liveSet is the tensors of one device.
type liveSet struct {
	tensors map[weak.Pointer[Tensor]]struct{}
	sweepAt int // when the map reaches this size, dead entries are dropped
}

// add adds tensors of a session whose data is, or will be, on a device.
func (l *liveTensors) add(s *Session, d ir.Device, ts ...*Tensor) {
	if len(ts) == 0 {
		return
	}
	var few [8]weak.Pointer[Tensor]
	made := slices.Grow(few[:0], len(ts))
	for _, t := range ts {
		made = append(made, weak.Make(t))
	}
	p := &l[s.id%uint64(len(l))]
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.sets[d]
	if set == nil {
		set = &liveSet{tensors: map[weak.Pointer[Tensor]]struct{}{}, sweepAt: 256}
		if p.sets == nil {
			p.sets = map[ir.Device]*liveSet{}
		}
		p.sets[d] = set
	}
	if len(set.tensors) >= set.sweepAt {
		set.sweep()
		set.sweepAt = max(256, 2*len(set.tensors))
	}
	for _, w := range made {
		set.tensors[w] = struct{}{}
	}
}

// each calls f with the tensors of each device and part, which is locked.
func (l *liveTensors) each(f func(d ir.Device, set *liveSet)) {
	for i := range l {
		p := &l[i]
		p.mu.Lock()
		for d, set := range p.sets {
			f(d, set)
		}
		p.mu.Unlock()
	}
}

// sweep drops the tensors that the garbage collector has freed.
func (l *liveSet) sweep() {
	for w := range l.tensors {
		if w.Value() == nil {
			delete(l.tensors, w)
		}
	}
}

// list returns those on the devices (none given: all).
func (l *liveTensors) list(devices []ir.Device) (ts []*Tensor) {
	l.each(func(d ir.Device, set *liveSet) {
		if !wanted(d, devices) {
			return
		}
		for w := range set.tensors {
			if t := w.Value(); t != nil {
				ts = append(ts, t)
			}
		}
	})
	return ts
}

// devices returns those that have had live tensors, perhaps more than once.
func (l *liveTensors) devices() (ds []ir.Device) {
	l.each(func(d ir.Device, _ *liveSet) { ds = append(ds, d) })
	return ds
}

// counts adds how many there are on each device.
func (l *liveTensors) counts(to map[string]int) {
	l.each(func(d ir.Device, set *liveSet) {
		set.sweep()
		to[d.String()] += len(set.tensors)
	})
}

// LiveTensors returns the tensors of the devices (none given: all) that are in use: those with
// data, in all sessions of this executor, and those that this session holds until the end of
// the step. It may lack tensors that were only needed for values already read.
func (s *Session) LiveTensors(devices ...ir.Device) []*Tensor {
	s.lock()
	defer s.unlock()
	out := s.core.live.list(devices)
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
	s.lock()
	defer s.unlock()
	devices := slices.AppendSeq(s.core.live.devices(), maps.Keys(s.rng))
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
