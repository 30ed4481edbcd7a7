package cache

import (
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

// counters is the number of keys whose popularity a store remembers. It is well
// above the number of entries expected, and small enough that, since counts are
// halved after as many look-ups, the store follows a program to its next phase.
const counters = 1 << 14

// store keeps references in ristretto, one for each entry. It hides three
// properties of ristretto: Set is asynchronous and may refuse; the callbacks
// run on a goroutine of ristretto's, some under its locks; and Close must not
// run beside anything else.
//
// Entries are never deleted one by one: ristretto's Del of a key forgets the
// cost of any entry that has the same low half.
type store[T any] struct {
	maxCost int64
	onEvict func(Key, T) // nil or the user's hook, called by drain

	probes sync.Pool // of *probe

	// life is held for reading while ristretto is in use and for writing while
	// it is emptied or closed. cache is nil if the store keeps nothing.
	life   sync.RWMutex
	closed bool
	cache  *ristretto.Cache[string, *Ref[T]]
	set    func(key string, r *Ref[T], cost int64) bool // cache.Set, but for tests

	// emptying is true while entries leave because of clear or close, which
	// does not count as eviction.
	emptying  atomic.Bool
	evictions atomic.Uint64

	// The callbacks only collect what left; drain releases it, so that the
	// user's code never runs inside ristretto.
	leftMu sync.Mutex
	left   []*Ref[T]
}

// newStore returns a store of maxCost bytes, or one that keeps nothing if that
// is not positive.
func newStore[T any](maxCost int64, onEvict func(Key, T)) *store[T] {
	s := &store[T]{maxCost: maxCost, onEvict: onEvict, probes: sync.Pool{New: newProbe}}
	if maxCost <= 0 {
		return s
	}
	cache, err := ristretto.NewCache(&ristretto.Config[string, *Ref[T]]{
		NumCounters:        counters,
		MaxCost:            maxCost,
		BufferItems:        64,
		IgnoreInternalCost: true,
		KeyToHash:          splitKey,
		OnEvict: func(i *ristretto.Item[*Ref[T]]) {
			// A victim that was sampled twice comes back without a value.
			if i.Value != nil && !s.emptying.Load() {
				i.Value.evicted = true
			}
		},
		OnReject: func(i *ristretto.Item[*Ref[T]]) {
			i.Value.refused = true
		},
		// OnExit follows either of the above, and comes alone for a value that
		// another one replaced.
		OnExit: func(r *Ref[T]) {
			if r == nil {
				return
			}
			s.leftMu.Lock()
			s.left = append(s.left, r)
			s.leftMu.Unlock()
		},
		// Nothing expires, so the clean-up has no work to wake up for.
		TtlTickerDurationInSec: 24 * 60 * 60,
	})
	if err != nil {
		panic("cache: " + err.Error()) // the configuration above is valid
	}
	s.cache, s.set = cache, cache.Set
	return s
}

// get returns a reference for the caller, or nil. It does not allocate.
func (s *store[T]) get(key Key) *Ref[T] {
	s.life.RLock()
	if s.cache == nil || s.closed {
		s.life.RUnlock()
		return nil
	}
	p := s.probes.Get().(*probe)
	key.put(&p.raw)
	r, ok := s.cache.Get(p.text)
	s.probes.Put(p)
	s.life.RUnlock()
	// The entry may be that of another key (see splitKey), or have been evicted
	// and closed since ristretto looked.
	if !ok || r == nil || r.key != key || !r.acquire() {
		return nil
	}
	return r
}

// offer asks ristretto to keep r, replacing the entry of the same key, and
// waits for the decision. A reference of the store's own is added if it is yes.
// The caller must hold one, and call drain afterwards.
func (s *store[T]) offer(r *Ref[T]) (kept bool) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.cache == nil || s.closed || r.cost > s.maxCost {
		return false
	}
	var raw [keyBytes]byte
	r.key.put(&raw)
	r.Retain()
	if !s.set(string(raw[:]), r, r.cost) {
		r.Release() // a dropped Set makes no callback
		return false
	}
	s.cache.Wait()
	return !r.refused
}

// drain releases the store's references to the entries that have left it.
func (s *store[T]) drain() {
	s.leftMu.Lock()
	left := s.left
	s.left = nil
	s.leftMu.Unlock()
	for _, r := range left {
		if r.evicted {
			s.evictions.Add(1)
			if s.onEvict != nil {
				s.onEvict(r.key, r.value)
			}
		}
		r.Release()
	}
}

// cost returns the sum of the costs of the entries.
func (s *store[T]) cost() int64 {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.cache == nil || s.closed {
		return 0
	}
	return s.maxCost - s.cache.RemainingCost()
}

// clear drops all entries.
func (s *store[T]) clear() { s.empty(false) }

// close drops all entries and ends ristretto's goroutines. The store keeps
// nothing from then on.
func (s *store[T]) close() { s.empty(true) }

func (s *store[T]) empty(forGood bool) {
	s.life.Lock()
	if s.cache != nil && !s.closed {
		s.emptying.Store(true)
		if forGood {
			s.cache.Close()
		} else {
			s.cache.Clear()
		}
		s.emptying.Store(false)
	}
	s.closed = s.closed || forGood
	s.life.Unlock()
	s.drain()
}
