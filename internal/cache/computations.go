package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Defaults of Options.
const (
	DefaultMaxCost = 512 << 20
	DefaultStrong  = 8
)

// ErrClosed is returned for what a closed cache can't do any more.
var ErrClosed = errors.New("cache: closed")

// Options configures a computation cache. The zero value is ready to use.
type Options[T any] struct {
	// MaxCost bounds the bytes that the computations hold in the main tier, by
	// the costs that their builders report. Zero means DefaultMaxCost; a
	// negative number turns the tier off.
	MaxCost int64

	// Strong is how many computations are kept, least recently used first out,
	// that the main tier refused or that cost more than MaxCost. Zero means
	// DefaultStrong; a negative number means none.
	//
	// A cache with MaxCost -1 and Strong 1 holds exactly the last computation
	// used. One with both -1 keeps nothing but still builds once for all that
	// ask at the same time.
	Strong int

	// Close, if not nil, is called exactly once for every computation built,
	// after the cache has dropped it and its last user has released it.
	Close func(T)

	// OnEvict, if not nil, is called when a computation is dropped to make
	// room, before the cache's reference is released.
	OnEvict func(Key, T)
}

// Source says where a computation came from.
type Source uint8

// The sources, cheapest first.
const (
	SourceNone   Source = iota // there is no computation
	SourceCache                // found in the main tier
	SourceStrong               // found among those that the main tier refused
	SourceShared               // built by another caller at the same time
	SourceBuilt                // built by this call
)

// String returns the name of the source.
func (s Source) String() string {
	switch s {
	case SourceCache:
		return "cache"
	case SourceStrong:
		return "strong"
	case SourceShared:
		return "shared"
	case SourceBuilt:
		return "built"
	}
	return "none"
}

// Stats is a snapshot of the counts of a computation cache.
type Stats struct {
	Hits       uint64 // found in the main tier
	StrongHits uint64 // found among those that the main tier refused
	Misses     uint64 // not found; each GetOrBuild that missed also counts below
	Shared     uint64 // waited for a build that another caller had begun
	Builds     uint64 // builds begun
	Failures   uint64 // builds that ended without a computation
	Evictions  uint64 // dropped to make room
	Refusals   uint64 // built but not let into the main tier

	Strong int   // computations in the strong tier
	Cost   int64 // bytes in the main tier
	Live   int64 // computations built and not yet closed
}

// Computations maps graph hashes to compiled computations of type T. Its
// methods may be called from any number of goroutines.
type Computations[T any] struct {
	store *store[T]
	owner owner[T]

	// mu guards what follows. It may be held while the store is read, never
	// while the user's code runs.
	mu      sync.Mutex
	closed  bool
	strong  *lru[Key, *Ref[T]]
	flights map[Key]*flight[T] // an entry leaves only after its result can be found

	builders  sync.WaitGroup // one for each flight; added to under mu unless closed
	closeOnce sync.Once

	hits, strongHits, misses, shared            atomic.Uint64
	builds, failures, refusals, strongEvictions atomic.Uint64
}

// NewComputations returns an empty cache. It runs goroutines of its own until
// Close.
func NewComputations[T any](o Options[T]) *Computations[T] {
	if o.MaxCost == 0 {
		o.MaxCost = DefaultMaxCost
	}
	if o.Strong == 0 {
		o.Strong = DefaultStrong
	}
	return &Computations[T]{
		store:   newStore(o.MaxCost, o.OnEvict),
		owner:   owner[T]{close: o.Close},
		strong:  newLRU[Key, *Ref[T]](o.Strong),
		flights: make(map[Key]*flight[T]),
	}
}

// Get returns a reference to the computation of the key, which the caller must
// release, or false if there is none. It does not wait for builds and does not
// allocate.
func (c *Computations[T]) Get(key Key) (*Ref[T], bool) {
	if r := c.store.get(key); r != nil {
		c.hits.Add(1)
		return r, true
	}
	c.mu.Lock()
	r := c.getStrong(key)
	c.mu.Unlock()
	if r == nil {
		c.misses.Add(1)
	}
	return r, r != nil
}

// getStrong returns a reference from the strong tier, or nil. The caller holds
// mu, under which the tier's own reference can't go away.
func (c *Computations[T]) getStrong(key Key) *Ref[T] {
	r, ok := c.strong.get(key)
	if !ok {
		return nil
	}
	r.Retain()
	c.strongHits.Add(1)
	return r
}

// BuildFunc makes the computation of a key and reports the bytes it holds; a
// cost below 1 counts as 1. If it returns an error the value is ignored.
type BuildFunc[T any] func(ctx context.Context) (value T, cost int64, err error)

// GetOrBuild returns a reference to the computation of the key, which the
// caller must release, and where it came from. If there is none it is built;
// callers that ask for the same key meanwhile wait for that one build.
//
// The build runs on a goroutine of its own with the values of the first
// caller's ctx but not its end: a caller whose ctx ends leaves with ctx.Err(),
// and the build's context is cancelled only when the last one has left. A later
// caller finding such an abandoned build waits for its end and, if that is an
// error, builds anew, so that one key never builds twice at a time.
//
// An error of the build, or a panic in it (as [*PanicError]), is returned to
// all that waited, and not remembered. The computation is returned even if the
// cache did not keep it. By the time the call returns, computations that it
// displaced and nobody uses are closed, or are just being closed by another
// call. After Close it returns [ErrClosed].
func (c *Computations[T]) GetOrBuild(ctx context.Context, key Key, build BuildFunc[T]) (*Ref[T], Source, error) {
	if r := c.store.get(key); r != nil {
		c.hits.Add(1)
		return r, SourceCache, nil
	}
	missed := false
	for {
		r, f, source, err := c.join(ctx, key, build)
		if err != nil {
			return nil, SourceNone, err
		}
		if r != nil {
			return r, source, nil
		}
		if !missed {
			missed = true
			c.misses.Add(1)
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			if c.leave(f) {
				return nil, SourceNone, ctx.Err()
			}
		}
		switch {
		case f.err == nil:
			return f.ref, source, nil
		case f.abandoned:
			continue // it was cancelled before this call joined
		}
		return nil, SourceNone, f.err
	}
}

// Clear drops all computations. Those in use are closed when released.
func (c *Computations[T]) Clear() {
	c.store.clear()
	c.mu.Lock()
	dropped := c.strong.clear()
	c.mu.Unlock()
	for _, r := range dropped {
		r.Release()
	}
}

// Close drops all computations, cancels the builds in progress and waits for
// them to return. Computations in use are closed when released. Calling Close
// again has no effect.
func (c *Computations[T]) Close() {
	c.closeOnce.Do(func() {
		c.mu.Lock()
		c.closed = true
		for _, f := range c.flights {
			f.cancel(ErrClosed)
		}
		c.mu.Unlock()
		c.builders.Wait()
		c.store.close()
		c.Clear()
	})
}

// Stats returns the counts so far.
func (c *Computations[T]) Stats() Stats {
	c.mu.Lock()
	strong := c.strong.len()
	c.mu.Unlock()
	return Stats{
		Hits:       c.hits.Load(),
		StrongHits: c.strongHits.Load(),
		Misses:     c.misses.Load(),
		Shared:     c.shared.Load(),
		Builds:     c.builds.Load(),
		Failures:   c.failures.Load(),
		Evictions:  c.store.evictions.Load() + c.strongEvictions.Load(),
		Refusals:   c.refusals.Load(),
		Strong:     strong,
		Cost:       c.store.cost(),
		Live:       c.owner.live.Load(),
	}
}
