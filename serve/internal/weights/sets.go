// Package weights keeps the named sets of weights of one loaded model: which there
// are, which one requests compute with, and how another is made, tried and made the
// active one while requests go on.
package weights

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Initial is the name of the set that a model was loaded with.
const Initial = "initial"

// Options say how sets are kept.
type Options struct {
	// Source says where the first set came from.
	Source string
	// Keep is how many sets there may be; beyond that the oldest is dropped that
	// neither is active nor was before nor takes part in the traffic. 0 means 4.
	Keep int
	// Golden are inputs with which a set must compute well before it is activated;
	// nil for none.
	Golden *Golden
}

// Set describes a set.
type Set struct {
	Name   string
	Bytes  int64
	Made   time.Time
	Source string
	// SHA256 is that of the file that it was made of, in hexadecimal; empty for the
	// first set.
	SHA256 string
}

// Sets are the sets of one container, which they outlive by no call. Their methods
// are safe for concurrent use; one change is made at a time.
type Sets struct {
	c        *container.Container
	o        Options
	changing sync.Mutex // held, by TryLock, for a change
	route    atomic.Pointer[route]

	mu       sync.Mutex
	sets     []Set // oldest first
	previous string

	shadow shadow
}

// route says which set a run computes with.
type route struct {
	active string
	canary string
	share  float64 // of runs that the canary computes
	shadow string
}

// New keeps the sets of a container, whose active one is the first. It returns
// container.ErrNoConstants for a model whose weights cannot be replaced.
func New(ctx context.Context, c *container.Container, o Options) (*Sets, error) {
	if o.Keep == 0 {
		o.Keep = 4
	}
	if err := c.Save(ctx, Initial, container.Active); err != nil {
		return nil, err
	}
	s := &Sets{c: c, o: o}
	first := Set{Name: Initial, Made: time.Now(), Source: o.Source}
	for _, k := range c.Constants() {
		if !k.FromFolded {
			first.Bytes += k.Bytes
		}
	}
	s.sets = []Set{first}
	s.route.Store(&route{active: Initial})
	return s, nil
}

// Run is Container.Run with the set that the traffic has for it, whose name it
// returns.
func (s *Sets) Run(ctx context.Context, inputs []backend.Buffer) (outs []backend.Buffer, name string, err error) {
	for {
		r := s.route.Load()
		name = r.active
		if r.canary != "" && rand.Float64() < r.share {
			name = r.canary
		}
		outs, err = s.c.RunVersion(ctx, name, inputs, nil)
		if errors.Is(err, container.ErrNoVersion) && s.route.Load() != r {
			continue // it was dropped after it had left the traffic
		}
		if err == nil && r.shadow != "" {
			s.shade(r.shadow, inputs, outs)
		}
		return outs, name, err
	}
}

// Active returns the name of the active set.
func (s *Sets) Active() string { return s.route.Load().active }

// List returns the sets, oldest first.
func (s *Sets) List() []Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sets)
}

// AddedBytes is the size of the sets that were made since New.
func (s *Sets) AddedBytes() (n int64) {
	for _, e := range s.List() {
		if e.Name != Initial {
			n += e.Bytes
		}
	}
	return n
}

// Initially reports whether the only set is the first one.
func (s *Sets) Initially() bool {
	all := s.List()
	return len(all) == 1 && all[0].Name == Initial
}

// Constants describes the tensors of a set.
func (s *Sets) Constants() []backend.Constant { return s.c.Constants() }

// begin starts a change; one that is under way is a Conflict.
func (s *Sets) begin() error {
	if !s.changing.TryLock() {
		return inference.Errorf(inference.Conflict, "the weights are being changed by another request: try again when it is done")
	}
	return nil
}

// find returns the place of a set. The caller holds mu.
func (s *Sets) find(name string) int {
	return slices.IndexFunc(s.sets, func(e Set) bool { return e.Name == name })
}

// has returns an error for a name without a set.
func (s *Sets) has(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(name) < 0 {
		var names []string
		for _, e := range s.sets {
			names = append(names, e.Name)
		}
		return inference.Errorf(inference.NotFound, "there is no set of weights %q; there are %q", name, names)
	}
	return nil
}

// Activate has runs that begin from now on compute with a set. It returns the set
// that was active before, and how long the exchange took.
func (s *Sets) Activate(ctx context.Context, name string) (previous string, took time.Duration, err error) {
	if err := s.begin(); err != nil {
		return "", 0, err
	}
	defer s.changing.Unlock()
	if err := s.has(name); err != nil {
		return "", 0, err
	}
	previous = s.Active()
	took, err = s.activate(ctx, name)
	return previous, took, err
}

// activate is Activate of one who changes. A canary that becomes active leaves the
// traffic, and so does a shadow.
func (s *Sets) activate(ctx context.Context, name string) (time.Duration, error) {
	begin := time.Now()
	if err := s.c.Activate(ctx, name); err != nil {
		return 0, statusOf(err)
	}
	r := *s.route.Load()
	old := r.active
	r.active = name
	if r.canary == name {
		r.canary, r.share = "", 0
	}
	if r.shadow == name {
		r.shadow = ""
	}
	s.route.Store(&r)
	took := time.Since(begin)
	if old != name {
		s.mu.Lock()
		s.previous = old
		s.mu.Unlock()
	}
	return took, nil
}

// Drop forgets a set, and frees it when the runs that use it are over. One that is in
// the traffic is a Conflict.
func (s *Sets) Drop(ctx context.Context, name string) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.changing.Unlock()
	if err := s.has(name); err != nil {
		return err
	}
	if role := s.role(name); role != "" {
		return inference.Errorf(inference.Conflict, "weights %q are %s: take them out of the traffic before they are dropped", name, role)
	}
	return s.drop(ctx, name)
}

// role returns what a set does in the traffic, or "".
func (s *Sets) role(name string) string {
	switch r := s.route.Load(); name {
	case r.active:
		return "active"
	case r.canary:
		return "the canary"
	case r.shadow:
		return "the shadow"
	}
	return ""
}

func (s *Sets) drop(ctx context.Context, name string) error {
	if err := s.c.Drop(ctx, name); err != nil {
		return statusOf(err)
	}
	// The set that was active before may be in the container's inactive place, too.
	if err := s.c.FreeInactive(ctx); err != nil {
		return statusOf(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(name); i >= 0 {
		s.sets = slices.Delete(s.sets, i, i+1)
	}
	if s.previous == name {
		s.previous = ""
	}
	return nil
}

// trim drops the oldest sets that are one too many and that nobody needs.
func (s *Sets) trim(ctx context.Context, newest string) error {
	for {
		s.mu.Lock()
		victim := ""
		if len(s.sets) > s.o.Keep {
			for _, e := range s.sets {
				if e.Name != newest && e.Name != s.previous && s.role(e.Name) == "" {
					victim = e.Name
					break
				}
			}
		}
		s.mu.Unlock()
		if victim == "" {
			return nil
		}
		if err := s.drop(ctx, victim); err != nil {
			return err
		}
	}
}
