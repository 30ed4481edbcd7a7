package executor

import "github.com/loris-ml/loris/internal/ir"

// Update assigns n variables what fn returns of their values, as the session sees them, and of the tensors in,
// which follow the values. It may record the ops of an earlier call again without calling fn, see Replay. All that
// is known of the handles between is that they are of this step, so they share their memory.
func (s *Session) Update(key any, n int, variable func(int) *Variable, in []*Tensor, fn func(in []*Tensor) []*Tensor) {
	made, all := make([]Tensor, 2*n), make([]*Tensor, n, n+len(in))
	for i := range n {
		all[i] = &made[i]
	}
	all = append(all, in...)
	for i := s.valuesOf(n, variable, made); i < n; i++ {
		variable(i).Value(s, all[i])
	}
	left := made[n:]
	outs := s.Replay(key, func() *Tensor {
		if len(left) == 0 {
			return new(Tensor)
		}
		t := &left[0]
		left = left[1:]
		return t
	}, all, func() []*Tensor { return fn(all) })
	if len(outs) != n {
		panic(ir.NewOpError("update", ir.ErrArg, nil, "the function returns %d values for %d variables", len(outs), n))
	}
	for i := s.assignOwn(n, variable, outs); i < n; i++ {
		variable(i).Assign(outs[i])
	}
}

// stripesOfAll returns the stripes of n variables of the session's executor; false if one is of another or nil.
func (s *Session) stripesOfAll(n int, variable func(int) *Variable) (set stripeSet, ok bool) {
	for i := range n {
		v := variable(i)
		if v == nil || v.s.core != s.core {
			return 0, false
		}
		set |= v.stripe()
	}
	return set, true
}

// valuesOf is Variable.Value of n variables under one taking of the locks. It stops at the first for which it needs
// more than their stripes, and returns its number.
func (s *Session) valuesOf(n int, variable func(int) *Variable, dst []Tensor) int {
	set, ok := s.stripesOfAll(n, variable)
	if !ok || s.core.closed.Load() {
		return 0
	}
	s.lock()
	defer s.unlock()
	if s.tracing != nil {
		return 0
	}
	defer s.core.changing(set).release()
	for i := range n {
		if !variable(i).giveSeen(s, &dst[i], true) {
			return i
		}
	}
	return n
}

// assignOwn is Variable.Assign of pending tensors of the session to its own variables under one taking of the
// locks. It stops at the first for which that is not enough, and returns its number.
func (s *Session) assignOwn(n int, variable func(int) *Variable, ts []*Tensor) int {
	set, ok := s.stripesOfAll(n, variable)
	if !ok || s.core.closed.Load() {
		return 0
	}
	s.lock()
	defer s.unlock()
	if s.tracing != nil || s.bodies > 0 || s.marking || s.using != nil {
		return 0
	}
	defer s.core.changing(set).release()
	for i, t := range ts {
		v := variable(i)
		if v.s != s || t.s != s || t.data != nil || t.stale() || t.dead() || t.shape() != v.shape {
			return i
		}
		v.assignIn(s, t)
	}
	return n
}
