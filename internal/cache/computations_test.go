package cache

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func TestGetOrBuildThenHit(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{})
	key := Key{1, 2}
	if r, ok := c.Get(key); ok || r != nil {
		t.Fatal("hit in an empty cache")
	}
	r, source := mustBuild(t, c, k, key, 10)
	if source != SourceBuilt || r.Cost() != 10 {
		t.Errorf("source %v, cost %d", source, r.Cost())
	}
	r2, source := mustBuild(t, c, k, key, 10)
	if source != SourceCache || r2.Value() != r.Value() {
		t.Errorf("source %v, item %p, want %p", source, r2.Value(), r.Value())
	}
	r3, ok := c.Get(key)
	if !ok || r3.Value() != r.Value() {
		t.Error("no hit")
	}
	for _, r := range []*Ref[*item]{r, r2, r3} {
		r.Release()
	}
	want := Stats{Hits: 2, Misses: 2, Builds: 1, Cost: 10, Live: 1}
	if got := c.Stats(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop entries")
	}
	tests := []struct {
		name string
		cost int64
	}{{"main tier", 1}, {"strong tier", 1000}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, k := newTestCache(t, Options[*item]{MaxCost: 100})
			r, _ := mustBuild(t, c, k, Key{1, 2}, tt.cost)
			r.Release()
			// ristretto's own bookkeeping is one allocation in 64 look-ups.
			n := testing.AllocsPerRun(1000, func() {
				r, ok := c.Get(Key{1, 2})
				if !ok {
					t.Fatal("miss")
				}
				r.Release()
			})
			if n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// A high half of zero matches anything inside ristretto, and keys with equal
// low halves compete for one place.
func TestKeysThatCollide(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{})
	keys := []Key{{5, 0}, {5, 1}, {5, 2}, {0, 0}, {0, 5}}
	for range 3 {
		for _, key := range keys {
			r, _ := mustBuild(t, c, k, key, 1)
			r.Release()
			if r, ok := c.Get(key); ok {
				checkItem(t, key, r)
				r.Release()
			}
		}
	}
}

func TestOversizeGoesToStrongTier(t *testing.T) {
	var evicted []Key
	c, k := newTestCache(t, Options[*item]{MaxCost: 10, Strong: 2, OnEvict: func(key Key, i *item) {
		evicted = append(evicted, key)
		if i.closed.Load() != 0 {
			t.Error("OnEvict got a closed item")
		}
	}})
	a, b, d := Key{1, 1}, Key{2, 2}, Key{3, 3}
	for _, key := range []Key{a, b} {
		r, source := mustBuild(t, c, k, key, 11)
		if source != SourceBuilt {
			t.Errorf("source %v", source)
		}
		r.Release()
	}
	r, source := mustBuild(t, c, k, a, 11) // now b is the oldest
	if source != SourceStrong {
		t.Errorf("source %v, want strong", source)
	}
	r.Release()
	r, _ = mustBuild(t, c, k, d, 11)
	r.Release()
	if len(evicted) != 1 || evicted[0] != b {
		t.Errorf("evicted %v, want %v", evicted, b)
	}
	if _, ok := c.Get(b); ok {
		t.Error("b is still there")
	}
	if _, closed := k.count(); closed != 1 {
		t.Errorf("%d items closed, want 1", closed)
	}
	want := Stats{StrongHits: 1, Misses: 4, Builds: 3, Evictions: 1, Refusals: 3, Strong: 2, Live: 2}
	if got := c.Stats(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TinyLFU refuses what was asked for less often than what it would displace.
func TestRefusedByPolicy(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool, and so ristretto, lose the counts")
	}
	c, k := newTestCache(t, Options[*item]{MaxCost: 1})
	popular := Key{1, 1}
	r, _ := mustBuild(t, c, k, popular, 1)
	r.Release()
	for id := uint64(2); c.Stats().Refusals == 0; id++ {
		if id == 1000 {
			t.Fatal("nothing was refused")
		}
		for range 1000 { // counts arrive in batches, and some are lost
			r, ok := c.Get(popular)
			if !ok {
				r, _ = mustBuild(t, c, k, popular, 1)
			}
			r.Release()
		}
		key := Key{id, id}
		r, _ := mustBuild(t, c, k, key, 1)
		r.Release()
		if c.Stats().Refusals == 0 {
			continue
		}
		r, source := mustBuild(t, c, k, key, 1)
		if source != SourceStrong {
			t.Errorf("source %v, want strong", source)
		}
		r.Release()
		if c.Stats().Live > 1+DefaultStrong {
			t.Errorf("%d live", c.Stats().Live)
		}
	}
}

// A Set that ristretto drops makes no callback.
func TestDroppedSet(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{Strong: 1})
	c.store.set = func(string, *Ref[*item], int64) bool { return false }
	a, b := Key{1, 1}, Key{2, 2}
	ra, _ := mustBuild(t, c, k, a, 1)
	if n := ra.refs.Load(); n != 2 {
		t.Errorf("%d references, want 2: the caller's and the strong tier's", n)
	}
	rb, _ := mustBuild(t, c, k, b, 1)
	checkItem(t, a, ra) // displaced but in use
	ra.Release()
	if _, closed := k.count(); closed != 1 {
		t.Errorf("%d items closed, want 1", closed)
	}
	if r, ok := c.Get(b); !ok {
		t.Error("b is lost")
	} else {
		r.Release()
	}
	rb.Release()
	if s := c.Stats(); s.Refusals != 2 || s.Evictions != 1 {
		t.Errorf("stats %+v", s)
	}
}

// Whatever the capacity, the values are right, what is kept is bounded, and
// everything is closed once.
func TestSmallCapacities(t *testing.T) {
	tests := []struct {
		name    string
		options Options[*item]
		cost    int64
		live    int64
	}{
		{"one entry, main tier", Options[*item]{MaxCost: 1, Strong: -1}, 1, 1},
		{"one entry, strong tier", Options[*item]{MaxCost: -1, Strong: 1}, 1, 1},
		{"one entry in each", Options[*item]{MaxCost: 1, Strong: 1}, 1, 2},
		{"oversize only", Options[*item]{MaxCost: 1, Strong: 1}, 2, 1},
		{"nothing", Options[*item]{MaxCost: -1, Strong: -1}, 1, 0},
		{"three of unequal cost", Options[*item]{MaxCost: 3, Strong: -1}, 0, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.OnEvict = func(_ Key, i *item) {
				if i.closed.Load() != 0 {
					t.Error("OnEvict got a closed item")
				}
			}
			c, k := newTestCache(t, tt.options)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 2000 {
				id := rng.Uint64N(6)
				cost := tt.cost
				if cost == 0 {
					cost = int64(id%3) - 1 // below 1 counts as 1
				}
				r, _ := mustBuild(t, c, k, Key{id, id << 8}, cost)
				if live := c.Stats().Live; live > tt.live+1 {
					t.Fatalf("%d live with one in use, want at most %d", live, tt.live+1)
				}
				r.Release()
				if live := c.Stats().Live; live > tt.live {
					t.Fatalf("%d live, want at most %d", live, tt.live)
				}
			}
			s := c.Stats()
			if s.Builds == 0 || s.Builds != uint64(s.Live)+s.Evictions+unkept(s, tt.options) {
				t.Errorf("the builds don't add up: %+v", s)
			}
		})
	}
}

// unkept returns how many refused computations no tier took.
func unkept(s Stats, o Options[*item]) uint64 {
	if o.Strong > 0 {
		return 0
	}
	return s.Refusals
}

func TestStrongOnlyKeepsTheLast(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{MaxCost: -1, Strong: 1})
	for _, step := range []struct {
		id   uint64
		want Source
	}{{1, SourceBuilt}, {1, SourceStrong}, {2, SourceBuilt}, {1, SourceBuilt}, {1, SourceStrong}} {
		r, source := mustBuild(t, c, k, Key{step.id, 0}, 1)
		if source != step.want {
			t.Errorf("key %d: source %v, want %v", step.id, source, step.want)
		}
		r.Release()
	}
}

func TestEvictedIsClosedAfterLastRelease(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{MaxCost: -1, Strong: 1})
	r, _ := mustBuild(t, c, k, Key{1, 0}, 1)
	r.Retain()
	other, _ := mustBuild(t, c, k, Key{2, 0}, 1)
	other.Release()
	for _, want := range []int{0, 1} {
		checkItem(t, Key{1, 0}, r)
		r.Release()
		if _, closed := k.count(); closed != want {
			t.Fatalf("%d items closed, want %d", closed, want)
		}
	}
}

func TestClear(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{MaxCost: 10, OnEvict: func(Key, *item) { t.Error("Clear is no eviction") }})
	for id := range uint64(5) {
		r, _ := mustBuild(t, c, k, Key{id, 1}, 1+10*int64(id%2))
		r.Release()
	}
	held, _ := c.Get(Key{4, 1})
	c.Clear()
	if s := c.Stats(); s.Live != 1 || s.Cost != 0 || s.Strong != 0 || s.Evictions != 0 {
		t.Errorf("stats %+v", s)
	}
	checkItem(t, Key{4, 1}, held)
	held.Release()
	r, source := mustBuild(t, c, k, Key{4, 1}, 1)
	if source != SourceBuilt {
		t.Errorf("source %v", source)
	}
	r.Release()
}

func TestClosedCache(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{})
	held, _ := mustBuild(t, c, k, Key{1, 1}, 1)
	unused, _ := mustBuild(t, c, k, Key{2, 2}, 1)
	unused.Release()
	c.Close()
	c.Close()
	checkItem(t, Key{1, 1}, held)
	if unused.Value().closed.Load() != 1 {
		t.Error("an unused computation outlived Close")
	}
	held.Release()
	if _, ok := c.Get(Key{1, 1}); ok {
		t.Error("hit in a closed cache")
	}
	_, source, err := c.GetOrBuild(t.Context(), Key{1, 1}, k.build(0, 1))
	if !errors.Is(err, ErrClosed) || source != SourceNone {
		t.Errorf("got %v, %v", source, err)
	}
	c.Clear()
	if s := c.Stats(); s.Live != 0 || s.Cost != 0 || s.Builds != 2 {
		t.Errorf("stats %+v", s)
	}
}

func TestSourceString(t *testing.T) {
	for s, want := range map[Source]string{
		SourceNone: "none", SourceCache: "cache", SourceStrong: "strong", SourceShared: "shared", SourceBuilt: "built",
	} {
		if s.String() != want {
			t.Errorf("%d: %q, want %q", s, s, want)
		}
	}
}
