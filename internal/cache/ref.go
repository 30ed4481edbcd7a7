package cache

import (
	"fmt"
	"sync/atomic"
)

// Ref is a counted reference to a cached value of type T. All holders of a
// value share one Ref; each Ref obtained from this package, and each call of
// Retain, must be matched by exactly one Release. The value must not be used
// after that.
type Ref[T any] struct {
	value T
	key   Key
	cost  int64
	owner *owner[T]

	// refs counts the holders, the cache being one of them while it keeps the
	// value. Once zero it stays zero.
	refs atomic.Int64

	// Set by the admission goroutine of the store, read after it said that it
	// was done with the Ref.
	refused bool
	evicted bool
}

// owner ends the lives of the values of one cache.
type owner[T any] struct {
	close func(T)
	live  atomic.Int64 // values made and not yet closed
}

// newRef returns a Ref that the caller holds.
func (o *owner[T]) newRef(key Key, value T, cost int64) *Ref[T] {
	r := &Ref[T]{value: value, key: key, cost: max(cost, 1), owner: o}
	r.refs.Store(1)
	o.live.Add(1)
	return r
}

// Value returns the value.
func (r *Ref[T]) Value() T { return r.value }

// Cost returns the cost in bytes under which the value was cached, at least 1.
func (r *Ref[T]) Cost() int64 { return r.cost }

// Retain adds a reference for another holder. The caller must hold one.
func (r *Ref[T]) Retain() {
	if r.refs.Add(1) < 2 {
		panic(fmt.Sprintf("cache: Retain of released value %v", r.key))
	}
}

// Release gives up one reference. If it was the last one and the cache has
// dropped the value, the value is closed before Release returns. Release
// panics if there is no reference left to give up.
func (r *Ref[T]) Release() {
	switch n := r.refs.Add(-1); {
	case n < 0:
		panic(fmt.Sprintf("cache: Release of released value %v", r.key))
	case n == 0:
		if r.owner.close != nil {
			r.owner.close(r.value)
		}
		r.owner.live.Add(-1)
	}
}

// acquire adds a reference unless the value has been closed, or is about to be.
func (r *Ref[T]) acquire() bool {
	for {
		n := r.refs.Load()
		if n <= 0 {
			return false
		}
		if r.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
