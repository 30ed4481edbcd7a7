package executor

import (
	"context"
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// Variable is a value that lives across steps. It has one committed value, which all sessions see, and
// for each session that has assigned it since its last step a pending one, which only that session
// sees. The end of the session's step makes the pending values of all its variables the committed ones
// at one moment, with the locks of all of them held; a value that is still being computed then is a
// placeholder, for which readers wait. Where several sessions assign one variable, the step that ends
// last wins.
//
// All fields but s and shape, which never change, are guarded by core.mu, or by the variable's stripe
// with core.mu held for reading; where a comment says that core.mu is held, both are meant. Pending
// tensors of versions belong to sessions that may not be locked: lock.go says what may be read of them.
type Variable struct {
	s         *Session
	committed version
	pending   []version // of the sessions that have assigned it, one each
	initial   *Tensor   // the IR of the initial value until that is known to be computed
	replaced  uint64    // the number of the commit of the present version, if that found viewers
	shape     ir.Shape
	kind      ir.LeafKind // of leaves: the shape, and the device of the data
}

// version is a value of a variable: IR, or data.
type version struct {
	s     *Session // that has assigned it; nil once it is committed
	data  *Data    // nil while the value is IR
	pend  *Tensor  // the tensor that was assigned, while that is IR
	leaf  *ir.Node // the leaf of data; made when it is first read
	until *history // if not nil, leaf is valid until this ends
	alias *history // the view that stands for pend, or stood for data while that was pending
	from  *history // the leaf of the tensor that was assigned, if that had data
}

// NewVariable returns a variable whose committed value is that of t. If t is pending, the next
// MarkStep of its session computes it, unless nothing refers to the variable any more, or the first
// that reads it.
func (s *Session) NewVariable(t *Tensor) *Variable {
	if err := s.tracedMisuse("variable", "a variable is made"); err != nil {
		panic(err)
	}
	s.lockTensors("variable", t)
	s.core.mu.Lock()
	defer s.unlockBoth()
	v := &Variable{s: s, shape: t.shape()}
	if t.data != nil {
		v.committed.assign(v, t)
	} else {
		t.bits |= bitInitial
		v.begin(t)
	}
	v.kind = ir.NewLeafKind(v.shape, v.committed.device())
	return v
}

// begin makes a pending tensor the initial value; core.mu is held. Should its computation fail, be it
// for something else that is computed with it, the same IR is the initial value again.
func (v *Variable) begin(t *Tensor) {
	t.bits |= bitValue
	if v.committed = (version{pend: t}); t.bits&bitScoped == 0 {
		again := *t
		again.bits = bitUnlisted | bitValue
		v.initial = &again
	}
	t.s.addInitial(v)
}

// Shape returns the dtype and dimensions, which never change.
func (v *Variable) Shape() ir.Shape { return v.shape }

// Session returns the session that the variable belongs to.
func (v *Variable) Session() *Session { return v.s }

// Value makes dst a handle of the value that session s (the variable's own or a fork) sees: what it
// has assigned in this step, or the value in the snapshot that it uses, or the committed value, for
// variables of another session that of when its view began (view.go). For
// gradients all handles of one value are the same, except that handles taken in the step of the
// assignment differ from later ones after that step has ended.
func (v *Variable) Value(s *Session, dst *Tensor) {
	if v.shared(s, dst, false) || v.shared(s, dst, true) {
		return
	}
	x := v.lockSeen(s)
	defer s.unlockBoth()
	if s.tracing != nil {
		dst.s, dst.step, dst.bits, dst.gen = s, s.step, s.scopes(), s.gen
		dst.setNode(s.tracing.value(s, v))
		return
	}
	x.give(v, s, dst)
}

// give makes dst a handle of the version, of which session s, which is locked, sees; core.mu is held.
func (x *version) give(v *Variable, s *Session, dst *Tensor) {
	dst.s, dst.step, dst.bits, dst.gen = s, s.step, s.scopes(), s.gen
	if p := x.pend; p != nil {
		dst.s, dst.step, dst.gen = p.s, p.step, p.gen
		dst.setNode(x.view())
		// It dies no later than the pending tensor, nor than the Step that it is taken in.
		dst.bits = p.bits&bitScoped | bitUnlisted
		if p.step == p.s.step && !p.dead() {
			dst.bits |= p.s.scopes() & bitScoped
			dst.gen = p.s.gen
		}
		return
	}
	dst.data = x.data
	dst.setNode(x.nodeFor(s, v).Out(0))
	if !s.inStep() || s != v.s {
		dst.data.escape()
	}
}

// lockSeen takes both locks, the session's being s's, and returns the version that session s sees. An initial value that is IR of
// another session is synced first: it is committed, and no other session's graph should have to
// compute it. If there is no value, lockSeen panics without the lock.
func (v *Variable) lockSeen(s *Session) *version {
	c := v.s.core
	if s.core != c {
		panic(ir.NewOpError("value", ErrSession, nil, "the variable cannot be used here"))
	}
	// What the session sees may be other IR after a sync: a step that commits meanwhile gives the
	// session's view a copy of the initial value.
	for synced := (*Tensor)(nil); ; {
		s.lockBoth()
		x := v.seen(s)
		if x == &v.committed {
			s.look(v)
		}
		err := v.usable(s, x)
		switch {
		case err != nil:
			s.unlockBoth()
			panic(err)
		case x.pend == nil || x.pend.s == s || x.pend == synced && s.joined(synced.s):
			return x
		}
		again := x.pend == synced // a hook refuses to sync it
		synced = x.pend
		s.unlockBoth()
		if again {
			s.join(synced.s)
		} else {
			syncInitial(synced)
		}
	}
}

// lockCommitted is lockSeen for the committed version, with data.
func (v *Variable) lockCommitted(s *Session) *version {
	c := v.s.core
	if s.core != c {
		panic(ir.NewOpError("value", ErrSession, nil, "the variable cannot be used here"))
	}
	for synced := false; ; synced = true {
		c.mu.Lock()
		x := &v.committed
		x.settle(v)
		v.settleInitial()
		err := v.usable(s, x)
		switch {
		case err != nil:
		case x.data != nil:
			return x
		case synced:
			err = ir.NewOpError("value", errNotSynced, nil, "the variable has no value")
		case x.pend.bits&bitScoped != 0:
			err = ir.NewOpError("value", ErrUncommitted, nil, "the variable is made in a Step that has not ended")
		}
		p := x.pend
		c.mu.Unlock()
		if err != nil {
			panic(err)
		}
		syncInitial(p)
	}
}

// syncInitial computes the initial value of a variable.
func syncInitial(p *Tensor) {
	if _, err := p.s.SyncTensors(context.Background(), []*Tensor{p}, stepConfig); err != nil {
		panic(ir.NewOpError("sync", err, nil, "the initial value of a variable could not be computed"))
	}
}

// usable returns why session s cannot use the variable, of which it sees x, or nil; core.mu is held,
// and s is of the same core.
func (v *Variable) usable(s *Session, x *version) error {
	switch {
	case v.s.core.closed.Load():
		return ir.NewOpError("value", ErrClosed, nil, "the variable cannot be used")
	case x.data == nil && (x.pend == nil || x.pend.dead()):
		return ir.NewOpError("value", ErrDead, nil, "the variable was made in a Step that failed")
	case x.data == nil && x.pend.s != s && x.pend.bits&bitScoped != 0:
		return ir.NewOpError("value", ErrUncommitted, nil, "the variable is made in a Step that has not ended")
	}
	return nil
}

// seen returns the version that session s sees; core.mu is held, and the result is valid while
// nothing is assigned or committed.
func (v *Variable) seen(s *Session) *version {
	x := v.choose(s)
	x.settle(v)
	v.settleInitial()
	return x
}

// choose is seen without settling the result, so that nothing is changed; core.mu is held, and the session
// locked.
func (v *Variable) choose(s *Session) *version {
	x := v.pendingIn(s)
	if x == nil && s.using != nil {
		x = s.using.versions[v]
	}
	if x == nil && s.view.begun {
		x = s.viewed(v)
	}
	if x == nil {
		x = &v.committed
	}
	return x
}

// value returns the version's data, or nil if it is IR; core.mu is held, if only for reading.
func (x *version) value() *Data {
	if x.pend != nil && x.pend.data != nil {
		return x.pend.data
	}
	return x.data
}

// settleInitial forgets the IR of the initial value once that is computed, and makes it the committed
// value again where its computation, for somebody who read it, has failed; core.mu is held.
func (v *Variable) settleInitial() {
	d := v.committed.data
	switch {
	case v.initial == nil || d == nil || !d.Ready():
	case d.failure() == nil:
		v.initial = nil
	default:
		p := v.initial
		p.s.deleteDue(func(w *Variable) bool { return w == v && w.pendingIn(p.s) == nil })
		v.begin(p)
	}
}

// pendingIn returns what session s has assigned in this step, or nil; core.mu is held.
func (v *Variable) pendingIn(s *Session) *version {
	for i := range v.pending {
		if v.pending[i].s == s {
			return &v.pending[i]
		}
	}
	return nil
}

// due returns the version that session s has to compute or commit at the end of its step, or nil;
// core.mu is held.
func (v *Variable) due(s *Session) *version {
	if x := v.pendingIn(s); x != nil {
		return x
	}
	if p := v.committed.pend; p != nil && p.s == s {
		return &v.committed
	}
	return nil
}

// drop forgets what session s has assigned; core.mu is held.
func (v *Variable) drop(s *Session) {
	v.pending = slices.DeleteFunc(v.pending, func(x version) bool { return x.s == s })
}

// commit makes a version the committed one, and returns the data that it replaces; core.mu is held.
func (v *Variable) commit(x version) (old *Data) {
	x.settle(v)
	if x.s != nil { // otherwise it is the initial value, which has been computed
		v.committed.settle(v)
		old, v.initial = v.committed.data, nil
	}
	v.drop(x.s)
	x.s = nil
	v.committed = x
	return old
}

// settle takes over the data of the assigned tensor if that was synced since; core.mu is held.
func (x *version) settle(v *Variable) {
	if x.pend == nil || x.pend.data == nil {
		return
	}
	alias := x.alias
	x.set(v, x.pend.data)
	x.alias = alias // the value is the same
}

// set makes data the version's value; core.mu is held. Data that two variables hold is never
// donated. That of the data cache never is, and must not refer to the executor.
func (x *version) set(v *Variable, d *Data) {
	if !d.info.ReadOnly {
		if !d.holder.CompareAndSwap(nil, v) && d.holder.Load() != v {
			d.escape()
		}
	}
	*x = version{s: x.s, data: d}
}

// assign makes the value of t that of the version, which is new; core.mu is held.
func (x *version) assign(v *Variable, t *Tensor) {
	if t.data == nil {
		t.bits |= bitValue
		x.pend = t
		return
	}
	// The user still has the handle t, so the data is never donated.
	t.data.escape()
	x.set(v, t.data)
	step := x.s
	if step == nil {
		step = t.s
	}
	x.from = step.newHistory(t.value())
}

// node returns the leaf of the version's data; core.mu is held. A leaf that is made in the step of
// the assignment is valid until that step ends, as a view in its place would be.
func (x *version) node(v *Variable) *ir.Node {
	if x.leaf != nil && !x.until.ended() {
		return x.leaf
	}
	if v.kind.Device() != x.data.device {
		v.kind = ir.NewLeafKind(v.shape, x.data.device)
	}
	l := &x.data.valueLeaf
	if l.data != nil || x.data.holder.Load() != v {
		l = new(variableLeaf) // another leaf, or another variable's, may be in use
	}
	l.data, l.alias, l.from, l.id = x.data, x.alias, x.from, v.s.core.nextID.Add(1)
	x.leaf, x.until = v.kind.In(&l.leaf, l), nil
	if o := historyOf(x.leaf); !o.ended() {
		x.until = o
	}
	return x.leaf
}

// nodeFor is node for session s, which is locked. Groups of sessions have leaves of their own, and the
// first that asks has the version's.
func (x *version) nodeFor(s *Session, v *Variable) *ir.Node {
	n, g := x.node(v), s.group.root()
	l := n.Leaf().(*variableLeaf)
	switch {
	case l.group == nil:
		l.group = g
	case l.group.root() != g:
		return g.leaves.of(l.id, n.CloneLeaf)
	}
	return n
}

// view returns the view of the pending value in this step; both locks are held.
func (x *version) view() ir.Value {
	p := x.pend
	if p.step != p.s.step {
		return p.node() // whoever records with it syncs it first
	}
	if v := x.alias.value(); !v.IsNil() {
		return v
	}
	v := view(p.s.b, p.node())
	x.alias = p.s.newHistory(v) // which may drop it at once
	return v
}

// view records a node with the same value as v.
func view(b *ir.Builder, v ir.Value) ir.Value {
	return b.Call1(aten.Reshape, []any{v, v.Shape().Dims()})
}

// device returns the device of the value; core.mu is held.
func (x *version) device() ir.Device {
	if x.pend != nil {
		return x.pend.device()
	}
	return x.data.device
}

// Assign makes t's value the variable's. It is pending in one session until that session's step ends,
// which commits it: the session of t, if t is pending or belongs to the variable's session, or if
// that session is in a Step; otherwise the variable's session, if that is in a Step. A t of another
// session with data, outside of any Step, belongs to no step and is committed at once. Another shape
// or dtype panics with an *ir.OpError.
func (v *Variable) Assign(t *Tensor) {
	s, h := v.lockAssigned(t)
	defer s.unlock()
	defer h.release()
	if t.shape() != v.shape {
		panic(&ir.OpError{Op: "assign", Shapes: []ir.Shape{v.shape, t.shape()}, Err: ir.ErrShape,
			Line: ir.FormatLine(ir.UserPC()), Msg: "a variable keeps its shape and dtype"})
	}
	if t.s.bodies > 0 || v.s.bodies > 0 {
		panic(ir.NewOpError("assign", errInBody, nil, "return the value as a carried one instead"))
	}
	for _, s := range []*Session{t.s, v.s} {
		if s.tracing != nil {
			s.tracing.assign(v, t)
			return
		}
	}
	if err := v.s.tracedMisuse("assign", "a variable of an unrelated session is assigned"); err != nil {
		return // the Call fails with the error
	}
	if own := v.assignedIn(t); own != nil {
		v.assignIn(own, t)
	} else {
		v.publish(t)
	}
}

// assignedIn returns the session in whose step a value is assigned, or nil if it is committed at once; the
// session of the value is locked.
func (v *Variable) assignedIn(t *Tensor) *Session {
	switch {
	case t.data == nil || t.s == v.s || t.s.inStep():
		return t.s
	case v.s.inStep() && t.s.joined(v.s):
		return v.s
	}
	return nil
}

// lockAssigned checks the tensor of an assignment, and locks its session and the variable. It returns
// both. The variable's session is locked, too, where the assignment changes what it records: then both
// join.
func (v *Variable) lockAssigned(t *Tensor) (*Session, hold) {
	s := v.s
	if t != nil && t.s != nil && t.s.core == s.core {
		s = t.s
	}
	for {
		s.lockTensors("assign", t)
		if s != v.s {
			s.escape(t) // as where an op of another session takes it
		}
		h := s.core.changing(v.stripe())
		if s.tracing != nil || v.s.tracing != nil || v.assignedIn(t) == nil {
			h.release()
			h = s.core.alone()
		}
		if v.s.scopes() == 0 || s.joined(v.s) || v.s.scopes()&bitTraced == 0 && (t.data == nil || s.inStep()) {
			return s, h
		}
		h.release()
		s.unlock()
		s.join(v.s)
	}
}

// assignIn makes t's value pending in session s; both locks are held.
func (v *Variable) assignIn(s *Session, t *Tensor) {
	if s.marking {
		panic(ir.NewOpError("assign", ErrConcurrent, nil, "the assignment would be lost between two steps"))
	}
	if s.using != nil && s.using.versions[v] != nil {
		panic(ir.NewOpError("assign", ir.ErrArg, nil, "the session uses a snapshot of the variable, which does not change: Use(nil) first"))
	}
	x := v.renew(s)
	x.assign(v, t)
}

// renew returns the pending version of session s, empty; core.mu is held. A Step that is being
// recorded can take it back.
func (v *Variable) renew(s *Session) *version {
	x := v.pendingIn(s)
	if s.inStep() {
		u := assignment{v: v}
		if x != nil {
			u.before = *x
		}
		s.undo = append(s.undo, u)
	}
	if x == nil {
		v.pending = append(v.pending, version{})
		x = &v.pending[len(v.pending)-1]
		s.assigned = append(s.assigned, due{v: v})
	}
	*x = version{s: s}
	return x
}
