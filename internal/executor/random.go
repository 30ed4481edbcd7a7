package executor

import "github.com/loris-ml/loris/internal/ir"

// defaultSeed replaces a seed of 0.
const defaultSeed = 101

// rngState is a device's random state in one session. The random ops of a step share the running
// seed, which is a parameter of the graph, and differ in their offset.
type rngState struct {
	seed    uint64 // for the next step
	running uint64 // of this step
	leaf    *ir.Node
}

// rngFor returns a device's random state; the session is locked.
func (s *Session) rngFor(d ir.Device) *rngState {
	r := s.rng[d]
	if r == nil {
		r = &rngState{seed: s.core.cfg.Seed, running: s.core.cfg.Seed}
		s.rng[d] = r
	}
	return r
}

// rngSeed returns the device's seed of this step as an IR value, a rank-0
// i64 parameter; the session is locked.
func (s *Session) rngSeed(d ir.Device) ir.Value {
	if h := s.core.cfg.Hooks.RngSeed; h != nil {
		return h(s, d)
	}
	r := s.rngFor(d)
	if r.leaf == nil {
		r.leaf = ir.NewScalar(&ir.ScalarLeaf{Int: int64(r.running)}, ir.I64, ir.Device{}, false)
	}
	return r.leaf.Out(0)
}

// RunningSeed returns the seed that the random ops of this step use.
func (s *Session) RunningSeed(d ir.Device) uint64 {
	_ = s.tracedMisuse("seed", "the seed is read") // the Call fails with it
	s.lock()
	defer s.unlock()
	return s.rngFor(d).running
}

// SetRngSeed sets the device's seed, from the present step on, and restarts the
// numbering of its random ops.
func (s *Session) SetRngSeed(d ir.Device, seed uint64) {
	_ = s.tracedMisuse("set_seed", "the seed is set") // the Call fails with it
	s.lock()
	defer s.unlock()
	*s.rngFor(d) = rngState{seed: seed, running: seed}
	s.random = 0
}

// advanceSeeds moves every device's seed on, as MarkStep does; the session is locked.
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

// Random records a random op, whose row has the arguments seed and offset, on device d (the zero
// Device means the session's). Each random op of a step gets the next offset, so steps of the
// same ops have the same graph and differ in the seed.
func (s *Session) Random(d ir.Device, op ir.Op, dst *Tensor, pos []any) {
	pos, _ = s.lockArgs(op, pos, nil)
	defer s.unlock()
	defer s.place(d)()
	if d.IsAny() {
		d = s.device
	}
	args := []ir.Named{ir.A("seed", s.rngSeed(d)), ir.A("offset", s.random)}
	s.random++
	dst.init(s, s.b.CallNamed(op, pos, args)[0])
	s.trimCheck()
}
