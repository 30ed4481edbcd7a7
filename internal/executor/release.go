package executor

// stepReleased is the step of a tensor that was released, which is scoped then. No step has this number.
const stepReleased = 0

// Release drops what tensors hold: they are dead from now on, and nothing is computed for them alone. The
// memory of their elements is used again at once if they are computed and nothing else may look at them;
// otherwise the garbage collector finds it, as that of tensors which are dropped. Tensors that are dead
// already stay as they are, and so do values that a variable waits for, and tensors of a function that is
// being traced, whose trace decides what is computed.
func (s *Session) Release(ts ...*Tensor) {
	var locked lockedSession
	defer locked.be(nil)
	for _, t := range ts {
		if t == nil || t.s == nil || t.s.core != s.core {
			continue
		}
		locked.be(t.s)
		if t.dead() || t.bits&(bitTraced|bitValue|bitInitial) != 0 {
			continue
		}
		if t.data != nil {
			t.empty()
		}
		t.bits = t.bits&^bitKeep | bitDiscarded | bitScoped
		t.step = stepReleased
	}
}

// hold makes the data, of which the caller knows no other tensor than those that hold it, the tensor's; its
// session is locked.
func (t *Tensor) hold(d *Data) {
	t.data = d
	if d.held {
		d.escape()
	}
	d.held = true
}

// empty drops what a dead tensor holds; its session is locked. The buffer is released if nothing but the
// tensor could look at it: no graph has it as a leaf, no variable had it, and nobody was given it.
func (t *Tensor) empty() {
	if d := t.data; d != nil && d.held && d.unused() {
		d.retire()
	}
	t.ir, t.data = nil, nil
}

// unused reports whether nothing but the tensor that holds the data can look at it; that one's session is
// locked.
func (d *Data) unused() bool {
	return !d.lent.Load() && !d.info.ReadOnly && d.leaf == nil && d.holder.Load() == nil && d.readers.Load() == 0
}

// death is the error for a use of a dead tensor; its session is locked, or core.mu held.
func (t *Tensor) death() error {
	if t.step == stepReleased {
		return ErrReleased
	}
	return ErrDead
}
