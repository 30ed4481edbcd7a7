package cache

import (
	"slices"
	"testing"
)

func TestRefMisuse(t *testing.T) {
	o := owner[int]{}
	r := o.newRef(Key{}, 1, 0)
	if r.Cost() != 1 {
		t.Errorf("cost %d, want 1", r.Cost())
	}
	r.Release()
	mustPanic(t, r.Release)
	r = o.newRef(Key{}, 1, 1)
	r.Release()
	mustPanic(t, r.Retain)
}

// Between ristretto's look-up and ours the entry can be evicted and released.
func TestUnacquirableIsAMiss(t *testing.T) {
	var closed int
	o := owner[int]{close: func(int) { closed++ }}
	s := newStore[int](100, nil)
	key := Key{1, 2}
	r := o.newRef(key, 1, 1)
	if !s.offer(r) {
		t.Fatal("refused")
	}
	r.refs.Store(0) // as if the last user had just released it
	if s.get(key) != nil {
		t.Error("got a reference to a dead value")
	}
	r.refs.Store(2)
	if got := s.get(key); got != r {
		t.Error("no reference to a live value")
	}
	r.Release()
	r.Release()
	s.close()
	if closed != 1 || o.live.Load() != 0 {
		t.Errorf("closed %d times, %d live", closed, o.live.Load())
	}
}

func TestKeyBytes(t *testing.T) {
	for _, key := range []Key{{}, {1, 2}, {0x0123456789abcdef, 0xfedcba9876543210}, {^uint64(0), 0}} {
		p := newProbe().(*probe)
		key.put(&p.raw)
		if lo, hi := splitKey(p.text); lo != key.Lo || hi != key.Hi {
			t.Errorf("%v became %x, %x", key, lo, hi)
		}
	}
	if got, want := (Key{Lo: 0xab, Hi: 1}).String(), "000000000000000100000000000000ab"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLRU(t *testing.T) {
	type out struct {
		value     int
		displaced bool
	}
	l := newLRU[string, int](2)
	put := func(k string, v int, want out) {
		t.Helper()
		v, displaced := l.put(k, v)
		if got := (out{v, displaced}); got != want {
			t.Errorf("put %s: got %+v, want %+v", k, got, want)
		}
	}
	put("a", 1, out{})
	put("b", 2, out{})
	if v, ok := l.get("a"); !ok || v != 1 {
		t.Errorf("a is %d, %v", v, ok)
	}
	put("c", 3, out{2, true})  // b was the oldest
	put("a", 10, out{1, true}) // replaced, and now the newest
	put("d", 4, out{3, true})
	if _, ok := l.get("c"); ok {
		t.Error("c is still there")
	}
	if got, want := l.clear(), []int{10, 4}; !slices.Equal(got, want) || l.len() != 0 {
		t.Errorf("cleared %v, want %v; %d left", got, want, l.len())
	}
	put("e", 5, out{})
	none := newLRU[string, int](-1)
	if v, displaced := none.put("a", 1); v != 1 || !displaced || none.len() != 0 {
		t.Errorf("without capacity: %d, %v", v, displaced)
	}
}
