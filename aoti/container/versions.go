package container

import (
	"context"
	"fmt"
	"sort"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// get returns a set with a reference.
func (c *Container) get(ctx context.Context, which Which) (*set, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.end()
	s, err := c.place(which)
	if err != nil {
		return nil, err
	}
	s.refs.Add(1) // its place has one
	return s, nil
}

// place returns the active or the inactive set. The caller holds admin.
func (c *Container) place(which Which) (*set, error) {
	if which == Active {
		return c.active.Load(), nil
	}
	if c.inactive == nil {
		return nil, ErrNoInactive
	}
	return c.inactive, nil
}

// Fold computes the constants that are folded from others, of the active or the
// inactive set, on an instance that it takes from the pool as a run does. A set
// that is folded stays as it is: its values never change. Without it the first
// run of a set folds. ErrNoInactive says that there is no inactive set.
func (c *Container) Fold(ctx context.Context, which Which) error {
	if err := ir.CheckContext("container.Fold", ctx); err != nil {
		return err
	}
	s, err := c.get(ctx, which)
	if err != nil {
		return err
	}
	defer s.release()
	if s.values.Load() != nil {
		return nil
	}
	inst, err := c.take(ctx)
	if err != nil {
		return err
	}
	defer c.put(inst)
	return c.complete(ctx, s, inst)
}

// ExtractConstants returns the values of the active or the inactive set, folded
// ones excepted, by original name, or by the name inside the model where there
// is none or several constants have it. They are new references, dense; without
// copy they may share memory with the set, which they keep alive.
func (c *Container) ExtractConstants(ctx context.Context, which Which, copy bool) (map[string]backend.Buffer, error) {
	if err := ir.CheckContext("container.ExtractConstants", ctx); err != nil {
		return nil, err
	}
	s, err := c.get(ctx, which)
	if err != nil {
		return nil, err
	}
	defer s.release()
	if err := c.enter(); err != nil { // the model must stay open
		return nil, err
	}
	defer c.leave()
	out := map[string]backend.Buffer{}
	for i, k := range c.info {
		if s.given[i] == nil {
			continue
		}
		var v backend.Buffer
		err := guard(func() (err error) {
			v, err = c.first.UnpackConstant(ctx, i, s.given[i], copy)
			return err
		})
		if err != nil {
			for _, b := range out {
				b.Release()
			}
			return nil, &ConstantError{Name: k.Name, Problem: err}
		}
		name := k.OriginalName
		if j, ok := c.index[name]; !ok || j < 0 {
			name = k.Name
		}
		out[name] = v
	}
	return out, nil
}

// Swap makes the inactive set the active one and the other way round: runs that
// begin from now on use it. It waits for updates that are being made, for no
// run. ErrNoInactive says that there is no inactive set.
func (c *Container) Swap(ctx context.Context) error {
	if err := ir.CheckContext("container.Swap", ctx); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	if c.inactive == nil {
		return ErrNoInactive
	}
	c.exchange(c.inactive)
	return nil
}

// exchange makes s, whose place's reference is the caller's to give, the active
// set and the active one the inactive. The caller holds admin.
func (c *Container) exchange(s *set) {
	old := c.active.Swap(s)
	c.setsMu.Lock()
	c.inactive = old
	c.setsMu.Unlock()
}

// FreeInactive frees the inactive set, as soon as the last run that uses it is
// done. Without one it does nothing.
func (c *Container) FreeInactive(ctx context.Context) error {
	if err := ir.CheckContext("container.FreeInactive", ctx); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	c.dropInactive()
	return nil
}

// Version is a set of constants that was saved under a name.
type Version struct {
	Name string
	// Active and Inactive say that the set is in that place, too.
	Active, Inactive bool
	// Folded says that the folded constants have been computed, or there are none.
	Folded bool
}

// Save keeps the active or the inactive set under a name, until Drop. A name
// that is taken is a *VersionError wrapping ErrVersionExists.
func (c *Container) Save(ctx context.Context, name string, which Which) error {
	if err := ir.CheckContext("container.Save", ctx); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	s, err := c.place(which)
	if err != nil {
		return fmt.Errorf("save version %q: %w", name, err)
	}
	if _, ok := c.versions[name]; ok {
		return &VersionError{Name: name, Problem: ErrVersionExists}
	}
	s.refs.Add(1)
	s.enterPlace()
	c.setsMu.Lock()
	c.versions[name] = s
	c.setsMu.Unlock()
	return nil
}

// version returns a saved set. The caller holds admin or setsMu.
func (c *Container) version(name string) (*set, error) {
	s, ok := c.versions[name]
	if !ok {
		return nil, &VersionError{Name: name, Problem: ErrNoVersion}
	}
	return s, nil
}

// Activate makes a saved version the active set; the one that was active becomes
// the inactive, so that Swap takes it back, and an inactive set that there was is
// freed. A name that is not saved is a *VersionError wrapping ErrNoVersion.
func (c *Container) Activate(ctx context.Context, name string) error {
	if err := ir.CheckContext("container.Activate", ctx); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	s, err := c.version(name)
	if err != nil {
		return err
	}
	switch s {
	case c.active.Load():
		return nil
	case c.inactive:
	default:
		s.refs.Add(1)
		s.enterPlace()
		c.dropInactive()
	}
	c.exchange(s)
	return nil
}

// Drop forgets a version; its set is freed unless it is active or inactive. A
// name that is not saved is a *VersionError wrapping ErrNoVersion.
func (c *Container) Drop(ctx context.Context, name string) error {
	if err := ir.CheckContext("container.Drop", ctx); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	s, err := c.version(name)
	if err != nil {
		return err
	}
	c.setsMu.Lock()
	delete(c.versions, name)
	c.setsMu.Unlock()
	c.leavePlace(s)
	return nil
}

// Versions returns the saved versions by name.
func (c *Container) Versions() []Version {
	c.setsMu.Lock()
	defer c.setsMu.Unlock()
	out := make([]Version, 0, len(c.versions))
	for name, s := range c.versions {
		out = append(out, Version{
			Name: name, Active: s == c.active.Load(), Inactive: s == c.inactive, Folded: s.values.Load() != nil,
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
