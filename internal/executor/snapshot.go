package executor

import (
	"github.com/loris-ml/loris/internal/ir"
)

// Snapshot is the committed values of some variables at one moment. While it is held no step
// overwrites them. It may be used from any goroutine and by all sessions of the executor.
type Snapshot struct {
	s        *Session
	versions map[*Variable]*version // guarded by core.mu; nil once it was released
}

// Snapshot returns the committed values that variables have now. It computes nothing and waits for
// nothing but, in a session that has not computed it yet, the start of an initial value's
// computation. A variable without a committed value panics with an *ir.OpError.
func (s *Session) Snapshot(vars ...*Variable) *Snapshot {
	c := s.core
	for _, v := range vars {
		if v == nil {
			panic(ir.NewOpError("snapshot", ir.ErrArg, nil, "a variable is nil"))
		}
		v.lockCommitted(s)
		c.mu.Unlock()
	} // from here on all have data
	sn := &Snapshot{s: s, versions: make(map[*Variable]*version, len(vars))}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range vars {
		x := &v.committed
		x.node(v) // so that handles of the snapshot and of the variable are the same for gradients
		x.data.escape()
		taken := *x
		sn.versions[v] = &taken
	}
	return sn
}

// Value makes dst a handle of a variable's value in the snapshot, in the session that took it or a
// fork. It panics with an *ir.OpError if the snapshot was released or lacks the variable.
func (sn *Snapshot) Value(s *Session, v *Variable, dst *Tensor) {
	c := sn.s.core
	if s.core != c {
		panic(ir.NewOpError("value", ErrSession, nil, "the snapshot cannot be used here"))
	}
	s.lockBoth()
	defer s.unlockBoth()
	x := sn.versions[v]
	switch {
	case c.closed.Load():
		panic(ir.NewOpError("value", ErrClosed, nil, "the snapshot cannot be used"))
	case sn.versions == nil:
		panic(ir.NewOpError("value", ErrReleased, nil, "the snapshot cannot be used"))
	case x == nil:
		panic(ir.NewOpError("value", ir.ErrArg, nil, "the variable is not in the snapshot"))
	}
	dst.s, dst.step, dst.bits, dst.gen = s, s.step, s.scopes(), s.gen
	dst.data = x.data
	dst.setNode(x.nodeFor(s, v).Out(0))
}

// Release lets go of the values. Sessions that use the snapshot see the committed values again;
// tensors that were taken from it stay valid. Releasing it again does nothing.
func (sn *Snapshot) Release() {
	c := sn.s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	sn.versions = nil
}

// Use makes the session see the values of a snapshot, for the variables that are in it, until the
// snapshot is released or Use is called again; nil means the committed values. Until then the
// session cannot assign these variables.
func (s *Session) Use(sn *Snapshot) {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case sn == nil:
	case sn.s.core != c:
		panic(ir.NewOpError("use", ErrSession, nil, "the snapshot cannot be used here"))
	case sn.versions == nil:
		panic(ir.NewOpError("use", ErrReleased, nil, "the snapshot cannot be used"))
	default:
		for v := range sn.versions {
			if v.pendingIn(s) != nil {
				panic(ir.NewOpError("use", ir.ErrArg, nil, "the session has assigned a variable of the snapshot in this step: MarkStep first"))
			}
		}
	}
	s.using = sn
}
