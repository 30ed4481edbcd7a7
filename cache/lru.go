package cache

// lru is a map bounded by its number of entries: one more displaces the entry
// that was used least recently. It is not safe for concurrent use. A capacity
// of zero or less keeps nothing.
type lru[K comparable, V any] struct {
	capacity int
	entries  map[K]*lruEntry[K, V]
	ring     lruEntry[K, V] // sentinel: next is the newest entry, prev the oldest
}

type lruEntry[K comparable, V any] struct {
	next, prev *lruEntry[K, V]
	key        K
	value      V
}

func newLRU[K comparable, V any](capacity int) *lru[K, V] {
	l := &lru[K, V]{capacity: capacity, entries: make(map[K]*lruEntry[K, V])}
	l.ring.next, l.ring.prev = &l.ring, &l.ring
	return l
}

// get returns the value of the key and makes it the newest.
func (l *lru[K, V]) get(key K) (value V, ok bool) {
	e := l.entries[key]
	if e == nil {
		return value, false
	}
	if l.ring.next != e {
		e.unlink()
		l.pushFront(e)
	}
	return e.value, true
}

// put stores the value as the newest one and returns what had to leave for it,
// if anything: the former value of the key, the oldest value, or, without
// capacity, the value itself.
func (l *lru[K, V]) put(key K, value V) (out V, displaced bool) {
	if l.capacity <= 0 {
		return value, true
	}
	if e := l.entries[key]; e != nil {
		out, e.value = e.value, value
		l.get(key)
		return out, true
	}
	if len(l.entries) >= l.capacity {
		oldest := l.ring.prev
		oldest.unlink()
		delete(l.entries, oldest.key)
		out, displaced = oldest.value, true
	}
	e := &lruEntry[K, V]{key: key, value: value}
	l.entries[key] = e
	l.pushFront(e)
	return out, displaced
}

// clear empties l and returns the values, oldest first.
func (l *lru[K, V]) clear() []V {
	values := make([]V, 0, len(l.entries))
	for e := l.ring.prev; e != &l.ring; e = e.prev {
		values = append(values, e.value)
	}
	clear(l.entries)
	l.ring.next, l.ring.prev = &l.ring, &l.ring
	return values
}

func (l *lru[K, V]) len() int { return len(l.entries) }

func (e *lruEntry[K, V]) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
}

func (l *lru[K, V]) pushFront(e *lruEntry[K, V]) {
	e.prev, e.next = &l.ring, l.ring.next
	e.prev.next, e.next.prev = e, e
}
