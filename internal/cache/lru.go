package cache

import "github.com/hashicorp/golang-lru/v2/simplelru"

// lru is a simplelru.LRU that returns the value which leaves instead of passing it to a callback,
// since that value is released without the locks under which an lru is used. It is not safe for
// concurrent use.
type lru[K comparable, V any] struct {
	kept     *simplelru.LRU[K, V] // nil keeps nothing
	capacity int
}

// newLRU returns an empty lru; a capacity of zero or less keeps nothing.
func newLRU[K comparable, V any](capacity int) *lru[K, V] {
	kept, err := simplelru.NewLRU[K, V](capacity, nil)
	if err != nil { // there is no capacity
		return &lru[K, V]{}
	}
	return &lru[K, V]{kept, capacity}
}

// get returns the value of the key and makes it the newest.
func (l *lru[K, V]) get(key K) (value V, ok bool) {
	if l.kept == nil {
		return value, false
	}
	return l.kept.Get(key)
}

// put stores the value as the newest one and returns the value that leaves for it, if any: the
// former value of the key, the oldest value, or, without capacity, the value itself.
func (l *lru[K, V]) put(key K, value V) (out V, displaced bool) {
	if l.kept == nil {
		return value, true
	}
	if out, displaced = l.kept.Peek(key); !displaced && l.kept.Len() == l.capacity {
		_, out, displaced = l.kept.RemoveOldest()
	}
	l.kept.Add(key, value)
	return out, displaced
}

// clear empties l and returns the values, oldest first.
func (l *lru[K, V]) clear() []V {
	if l.kept == nil {
		return nil
	}
	values := l.kept.Values()
	l.kept.Purge()
	return values
}

func (l *lru[K, V]) len() int {
	if l.kept == nil {
		return 0
	}
	return l.kept.Len()
}
