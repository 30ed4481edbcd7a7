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

// eachHeld calls f with n variables of the session's executor while it is locked and their stripes are held for
// writing, until f returns false. It returns how many f took: none if the session is traced or closed.
func (s *Session) eachHeld(n int, variable func(int) *Variable, f func(i int, v *Variable) bool) int {
	var set stripeSet
	for i := range n {
		v := variable(i)
		if v == nil || v.s.core != s.core {
			return 0
		}
		set |= v.stripe()
	}
	if s.core.closed.Load() {
		return 0
	}
	s.lock()
	defer s.unlock()
	if s.tracing != nil {
		return 0
	}
	defer s.core.changing(set).release()
	for i := range n {
		if !f(i, variable(i)) {
			return i
		}
	}
	return n
}

// valuesOf is Variable.Value of n variables under one taking of the locks. It stops at the first for which it needs
// more than their stripes, and returns its number.
func (s *Session) valuesOf(n int, variable func(int) *Variable, dst []Tensor) int {
	return s.eachHeld(n, variable, func(i int, v *Variable) bool { return v.giveSeen(s, &dst[i], true) })
}

// assignOwn is Variable.Assign of pending tensors of the session to its own variables under one taking of the
// locks. It stops at the first for which that is not enough, and returns its number.
func (s *Session) assignOwn(n int, variable func(int) *Variable, ts []*Tensor) int {
	return s.eachHeld(n, variable, func(i int, v *Variable) bool {
		t := ts[i]
		if s.bodies > 0 || s.marking || s.using != nil || v.s != s || t.s != s || t.data != nil || t.stale() || t.dead() || t.shape() != v.shape {
			return false
		}
		v.assignIn(s, t)
		return true
	})
}
