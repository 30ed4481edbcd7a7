package executor

import (
	"weak"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/ir"
)

// contextArena is the weak registry of tensors that have data, per device
// (DeviceContextArena). Tensors that are still IR are held by their session's
// step instead. core.mu guards it.
type contextArena struct {
	live map[ir.Device]*liveSet
}

type liveSet struct {
	tensors map[weak.Pointer[Tensor]]struct{}
	sweepAt int // when the map reaches this size, dead entries are dropped
}

const defaultSeed = 101

// rngState is a device's random state in one session. A step's random ops share
// the running seed, as a parameter of the graph, and differ in their ordinal.
type rngState struct {
	seed    uint64 // for the next step
	running uint64 // of this step
	leaf    *ir.Node
}

// RegisterTensor enters a tensor with data into the registry of live tensors;
// core.mu is held.
func (c *core) registerTensor(t *Tensor) {
	d := t.data.device
	set := c.arena.live[d]
	if set == nil {
		set = &liveSet{tensors: map[weak.Pointer[Tensor]]struct{}{}, sweepAt: 256}
		c.arena.live[d] = set
	}
	if len(set.tensors) >= set.sweepAt {
		set.sweep()
		set.sweepAt = max(256, 2*len(set.tensors))
	}
	set.tensors[weak.Make(t)] = struct{}{}
}

func (l *liveSet) sweep() {
	for w := range l.tensors {
		if w.Value() == nil {
			delete(l.tensors, w)
		}
	}
}

// UnregisterTensor takes a tensor out of the registry of live tensors. The
// registry is weak, so this is needed only to hide a tensor that stays in use.
func (s *Session) UnregisterTensor(t *Tensor) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if t.data != nil {
		if set := s.core.arena.live[t.data.device]; set != nil {
			delete(set.tensors, weak.Make(t))
		}
	}
}

// GetLiveTensors returns the tensors that are in use: those with data, in all
// sessions of this executor, and those that this session holds for the present
// step: what was read in it and what went into that may be missing. No device
// given means all devices.
func (s *Session) GetLiveTensors(devices ...ir.Device) []*Tensor {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	var out []*Tensor
	for d, set := range s.core.arena.live {
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

func wanted(d ir.Device, devices []ir.Device) bool {
	for _, w := range devices {
		if w == d {
			return true
		}
	}
	return len(devices) == 0
}

// GetActiveDevices returns the devices that have live tensors, data or random
// state, in order.
func (s *Session) GetActiveDevices() []ir.Device {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	set := map[ir.Device]bool{}
	for d := range s.core.arena.live {
		set[d] = true
	}
	for d := range s.rng {
		set[d] = true
	}
	return sortedDevices(set)
}

func (s *Session) rngFor(d ir.Device) *rngState {
	r := s.rng[d]
	if r == nil {
		r = &rngState{seed: s.core.cfg.Seed, running: s.core.cfg.Seed}
		s.rng[d] = r
	}
	return r
}

// GetRngSeed returns the device's seed of this step as an IR value, a rank-0
// i64 parameter; core.mu is held.
func (s *Session) getRngSeed(d ir.Device) ir.Value {
	if h := s.core.cfg.Hooks.GetRngSeed; h != nil {
		return h(s, d)
	}
	r := s.rngFor(d)
	if r.leaf == nil {
		r.leaf = ir.NewScalar(&ir.ScalarLeaf{Int: int64(r.running)}, ir.I64, ir.Device{}, false)
	}
	return r.leaf.Out(0)
}

// GetRunningSeed returns the seed that the random ops of this step use.
func (s *Session) GetRunningSeed(d ir.Device) uint64 {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	return s.rngFor(d).running
}

// SetRngSeed sets the device's seed, from the present step on, and restarts the
// numbering of its random ops.
func (s *Session) SetRngSeed(d ir.Device, seed uint64) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	*s.rngFor(d) = rngState{seed: seed, running: seed}
	s.random = 0
}

// advanceSeeds moves every device's seed on, as MarkStep does; core.mu is held.
func (s *Session) advanceSeeds() {
	for _, r := range s.rng {
		r.seed = nextSeed(r.seed)
		r.running, r.leaf = r.seed, nil
	}
	s.random = 0
}

// nextSeed is a full-period linear congruential step (Knuth's MMIX constants).
func nextSeed(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

// forkSeed separates the random streams of forks (splitmix64's finaliser).
func forkSeed(seed, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Random records a random op, which takes a seed and an offset by these names,
// on device d (the zero Device means the session's) and with its seed. Each use
// in a step gets the next offset, so a step of the same ops draws from the same
// graph, with another seed.
func (s *Session) Random(d ir.Device, op ir.Op, dst *Tensor, pos []any) {
	s.enter(op, pos, nil)
	defer s.core.mu.Unlock()
	defer s.place(d)()
	if d.IsAny() {
		d = s.device
	}
	args := []ir.Named{ir.A("seed", s.getRngSeed(d)), ir.A("offset", s.random)}
	s.random++
	dst.init(s, s.b.CallNamed(op, pos, args)[0])
	s.trimCheck()
}

// MemoryInUse returns the bytes of live buffers on a device.
func (s *Session) MemoryInUse(d ir.Device) int64 {
	b, err := backend.For(d)
	if err != nil {
		return 0
	}
	return b.BytesInUse(d)
}
