package container

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/loris-ml/loris/backend"
)

// Which says which set of constants is meant.
type Which uint8

const (
	// Active is the set that runs compute with.
	Active Which = iota
	// Inactive is the other set.
	Inactive
)

// String returns "active" or "inactive".
func (w Which) String() string {
	if w == Active {
		return "active"
	}
	return "inactive"
}

// set is one complete, immutable set of constants, in packed form. It is in
// places (active, inactive, a version's name) and it has references (places,
// instances that are bound to it, folds and extractions); with the last
// reference its buffers are released.
type set struct {
	refs  atomic.Int64
	given []backend.Buffer // by constant; nil for folded ones
	lacks int              // the first constant that should be given and is not, or -1

	// values are given and the folded ones; nil until they have been computed by
	// the one who holds folding, a lock that is waited for with a context.
	values  atomic.Pointer[[]backend.Buffer]
	folding *semaphore.Weighted

	places  int         // guarded by sets.admin
	retired atomic.Bool // it has been in places and never will be again
}

// retain adds a reference unless there is none any more.
func (s *set) retain() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *set) release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	if v := s.values.Load(); v != nil {
		releaseAll(*v)
	} else {
		releaseAll(s.given)
	}
}

// sets are a container's constants. Whoever changes which sets there are holds
// admin; mu is for those who only look.
type sets struct {
	info  []backend.Constant
	index map[string]int // by either name; -1 if several have it
	first backend.ConstantModel
	fold  bool // there are folded ones

	active atomic.Pointer[set]
	admin  *semaphore.Weighted // a lock that is waited for with a context

	setsMu   sync.Mutex
	inactive *set            // nil if there is none
	versions map[string]*set // by name
}

// init makes the active set of what the model came with.
func (t *sets) init(ctx context.Context, m backend.ConstantModel) error {
	t.admin = semaphore.NewWeighted(1)
	t.versions = map[string]*set{}
	if m == nil {
		return nil
	}
	var values []backend.Buffer
	err := guard(func() (err error) {
		t.info = m.Constants()
		values, err = m.InitialConstants(ctx)
		return err
	})
	if err == nil && len(values) != len(t.info) {
		err = fmt.Errorf("there are %d, described are %d", len(values), len(t.info))
		releaseAll(values)
	}
	if err != nil {
		return fmt.Errorf("the constants of the model: %w", err)
	}
	t.first, t.index = m, make(map[string]int, 2*len(t.info))
	for i, k := range t.info {
		t.fold = t.fold || k.FromFolded
		t.name(k.Name, i)
		t.name(k.OriginalName, i)
	}
	s := t.newSet(values)
	s.places = 1
	t.active.Store(s)
	return nil
}

func (t *sets) name(name string, i int) {
	if name == "" {
		return
	}
	if j, ok := t.index[name]; ok && j != i {
		i = -1
	}
	t.index[name] = i
}

// newSet returns a set with one reference that owns the values. Folded ones
// among them are dropped: they will be computed.
func (t *sets) newSet(values []backend.Buffer) *set {
	s := &set{given: values, lacks: -1, folding: semaphore.NewWeighted(1)}
	s.refs.Store(1)
	for i, k := range t.info {
		switch {
		case k.FromFolded && values[i] != nil:
			values[i].Release()
			values[i] = nil
		case !k.FromFolded && values[i] == nil && k.Bytes > 0 && s.lacks < 0:
			s.lacks = i
		}
	}
	if !t.fold && s.lacks < 0 {
		s.values.Store(&s.given)
	}
	return s
}

// retainActive returns the active set with a reference.
func (t *sets) retainActive() *set {
	for {
		if s := t.active.Load(); s.retain() {
			return s
		}
	}
}

// free drops the places of all sets, at the end.
func (t *sets) free() {
	if s := t.active.Load(); s != nil {
		s.release()
	}
	t.setsMu.Lock()
	defer t.setsMu.Unlock()
	if t.inactive != nil {
		t.inactive.release()
	}
	for _, s := range t.versions {
		s.release()
	}
	t.inactive, t.versions = nil, nil
}

// begin starts an operation on the sets, which Close waits for, and takes admin.
func (c *Container) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	if c.first == nil {
		c.leave()
		return ErrNoConstants
	}
	if err := c.admin.Acquire(ctx, 1); err != nil {
		c.leave()
		return err
	}
	return nil
}

func (c *Container) end() {
	c.admin.Release(1)
	c.leave()
}

// enterPlace and leavePlace say that a set is in one place more or less; the
// caller holds admin. A set's reference goes with the place.
func (s *set) enterPlace() { s.places++ }

func (c *Container) leavePlace(s *set) {
	if s.places--; s.places == 0 {
		c.retire(s)
	}
	s.release()
}

// retire makes the instances that idle let go of a set; those that run do so
// when they are put back. An instance that cannot bind another set keeps this
// one until its next run, which is told.
func (c *Container) retire(s *set) {
	s.retired.Store(true)
	c.mu.Lock()
	c.reclaimLocked()
	var stale []*instance
	keep := c.free[:0]
	for _, inst := range c.free {
		switch {
		case inst == c.solo && !inst.mu.TryLock():
			keep = append(keep, inst) // its user sees that the set is retired
		case inst.bound == s:
			stale = append(stale, inst)
		default:
			keep = append(keep, inst)
			inst.unlock(c)
		}
	}
	clear(c.free[len(keep):])
	c.free = keep
	c.reapLocked()
	c.mu.Unlock()
	for _, inst := range stale {
		c.mu.Lock()
		c.putLocked(inst)
		c.mu.Unlock()
	}
}

// bind gives the instance the values, all of them if complete.
func (i *instance) bind(s *set, values []backend.Buffer, complete bool) error {
	// From here on until it succeeds the instance is to be bound anew before it
	// runs. What it had stays retained: it may still point there.
	i.complete = false
	if err := guard(func() error { return i.constants.BindConstants(values) }); err != nil {
		return fmt.Errorf("bind the constants: %w", err)
	}
	if i.bound != s {
		old := i.bound
		s.refs.Add(1) // the caller has one
		i.bound = s
		if old != nil {
			old.release()
		}
	}
	i.complete = complete
	return nil
}

// forget drops the instance's set when it is closed.
func (i *instance) forget() {
	if i.bound != nil {
		i.bound.release()
	}
	i.bound, i.complete = nil, false
}

// bindActive binds the active set, folded, to an instance that is about to run.
func (c *Container) bindActive(ctx context.Context, inst *instance) error {
	s := c.retainActive()
	defer s.release()
	return c.bindSet(ctx, inst, s)
}

// bindSet is bindActive with a set to which the caller has a reference.
func (c *Container) bindSet(ctx context.Context, inst *instance, s *set) error {
	if err := c.complete(ctx, s, inst); err != nil {
		return err
	}
	return inst.bind(s, *s.values.Load(), true)
}

// rebind binds the active set, as it is, to an instance that is not to run.
func (c *Container) rebind(inst *instance) error {
	s := c.retainActive()
	defer s.release()
	if v := s.values.Load(); v != nil {
		return inst.bind(s, *v, true)
	}
	return inst.bind(s, s.given, false)
}

// complete folds the set with an instance that the caller has, unless that has
// been done. Of several callers one folds and the others wait; if he fails, the
// error is his and the next one tries.
func (c *Container) complete(ctx context.Context, s *set, inst *instance) error {
	if s.values.Load() != nil {
		return nil
	}
	if s.lacks >= 0 {
		return &ConstantError{Name: c.info[s.lacks].Name, Problem: ErrMissing}
	}
	if err := s.folding.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.folding.Release(1)
	if s.values.Load() != nil {
		return nil
	}
	if err := inst.bind(s, s.given, false); err != nil {
		return err
	}
	var folded []backend.Buffer
	err := guard(func() (err error) {
		folded, err = inst.constants.FoldConstants(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("fold the constants: %w", err)
	}
	values, err := c.merge(s.given, folded)
	if err != nil {
		releaseAll(folded)
		return err
	}
	s.values.Store(&values)
	return nil
}

// merge returns given with the folded ones, which must be there, all and only.
func (c *Container) merge(given, folded []backend.Buffer) ([]backend.Buffer, error) {
	if len(folded) != len(c.info) {
		return nil, fmt.Errorf("fold the constants: the model returned %d values for %d constants", len(folded), len(c.info))
	}
	values := make([]backend.Buffer, len(given))
	for i, k := range c.info {
		switch {
		case k.FromFolded == (folded[i] == nil):
			problem := ErrMissing
			if !k.FromFolded {
				problem = ErrUnknown
			}
			return nil, fmt.Errorf("fold the constants: %w", &ConstantError{Name: k.Name, Problem: problem})
		case k.FromFolded:
			values[i] = folded[i]
		default:
			values[i] = given[i]
		}
	}
	return values, nil
}
