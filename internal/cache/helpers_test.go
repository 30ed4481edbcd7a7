package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// item is a cached value that knows whether it was closed.
type item struct {
	id     uint64
	closed atomic.Int32
}

// tracker makes items and checks how they end.
type tracker struct {
	mu    sync.Mutex
	items []*item
}

func (k *tracker) make(id uint64) *item {
	i := &item{id: id}
	k.mu.Lock()
	k.items = append(k.items, i)
	k.mu.Unlock()
	return i
}

// build returns a BuildFunc for an item of the cost.
func (k *tracker) build(id uint64, cost int64) BuildFunc[*item] {
	return func(context.Context) (*item, int64, error) { return k.make(id), cost, nil }
}

func (k *tracker) close(i *item) { i.closed.Add(1) }

// count returns how many items were made and how many of them are closed.
func (k *tracker) count() (made, closed int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range k.items {
		if i.closed.Load() > 0 {
			closed++
		}
	}
	return len(k.items), closed
}

// checkAllClosedOnce fails the test unless every item was closed exactly once.
func (k *tracker) checkAllClosedOnce(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range k.items {
		if n := i.closed.Load(); n != 1 {
			t.Errorf("item %d was closed %d times", i.id, n)
		}
	}
}

// newTestCache returns a cache that is closed, and whose items are checked, at
// the end of the test.
func newTestCache(t *testing.T, o Options[*item]) (*Computations[*item], *tracker) {
	k := new(tracker)
	o.Close = k.close
	c := NewComputations(o)
	t.Cleanup(func() {
		c.Close()
		k.checkAllClosedOnce(t)
		if n := c.Stats().Live; n != 0 {
			t.Errorf("%d computations are live at the end", n)
		}
	})
	return c, k
}

// mustBuild calls GetOrBuild, checks the value and returns the reference.
func mustBuild(t *testing.T, c *Computations[*item], k *tracker, key Key, cost int64) (*Ref[*item], Source) {
	t.Helper()
	r, source, err := c.GetOrBuild(t.Context(), key, k.build(key.Lo^key.Hi, cost))
	if err != nil {
		t.Fatal(err)
	}
	checkItem(t, key, r)
	return r, source
}

// checkItem fails the test unless r is the open item of the key.
func checkItem(t *testing.T, key Key, r *Ref[*item]) {
	t.Helper()
	if got, want := r.Value().id, key.Lo^key.Hi; got != want {
		t.Errorf("key %v: got item %d, want %d", key, got, want)
	}
	if r.Value().closed.Load() != 0 {
		t.Errorf("key %v: got a closed item", key)
	}
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}
