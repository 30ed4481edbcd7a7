//go:build linux && cgo

package host

/*
#include "op.h"
#include "tensor.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
)

// weightCache is what is computed once from a constant and kept with it: weights
// packed for the dense kernels. Looking something up takes no lock and allocates
// nothing, since small runs do little besides.
type weightCache struct {
	mu      sync.Mutex            // held to add an entry
	entries atomic.Pointer[[]any] // each a *keptEntry; a copy is made to add one
}

type keptEntry[K comparable, T any] struct {
	key   K
	value T
}

// caches is all that is kept, by the numbers under which C has it. (A cgo.Handle
// allocates when it is looked up.)
var caches cacheTable

type cacheTable struct {
	mu    sync.Mutex // held to change it
	free  []C.uintptr_t
	slots atomic.Pointer[[]atomic.Pointer[weightCache]] // number n is in slot n-1
}

func (t *cacheTable) add(c *weightCache) C.uintptr_t {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		var had []atomic.Pointer[weightCache]
		if all := t.slots.Load(); all != nil {
			had = *all
		}
		more := make([]atomic.Pointer[weightCache], max(16, 2*len(had)))
		for i := range more {
			if i < len(had) {
				more[i].Store(had[i].Load())
				continue
			}
			t.free = append(t.free, C.uintptr_t(i+1))
		}
		t.slots.Store(&more)
	}
	n := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	(*t.slots.Load())[n-1].Store(c)
	return n
}

func (t *cacheTable) at(n C.uintptr_t) *weightCache { return (*t.slots.Load())[n-1].Load() }

func (t *cacheTable) drop(n C.uintptr_t) {
	t.mu.Lock()
	defer t.mu.Unlock()
	(*t.slots.Load())[n-1].Store(nil)
	t.free = append(t.free, n)
}

// cacheOf returns what is kept with a tensor's memory; nil if that is no constant.
func cacheOf(t *tensor) *weightCache {
	h := C.lori_storage_cache(t.storage, 0)
	if h == 0 {
		if !isConstant(t) {
			return nil
		}
		fresh := caches.add(&weightCache{})
		if h = C.lori_storage_cache(t.storage, fresh); h != fresh {
			caches.drop(fresh)
		}
	}
	return caches.at(h)
}

// find returns the entry of a key.
func find[K comparable, T any](c *weightCache, key *K) (v T, ok bool) {
	all := c.entries.Load()
	if all == nil {
		return v, false
	}
	for _, e := range *all {
		if e, ok := e.(*keptEntry[K, T]); ok && e.key == *key {
			return e.value, true
		}
	}
	return v, false
}

// kept returns what make computes from a tensor's memory. Where that is a
// constant it is computed once for each key, whose type names the kind of result
// and which has all that it depends on besides the contents.
// Nobody writes bytes that are packed for oneDNN.
func kept[K comparable, T any](t *tensor, key K, make func() T) T {
	if t.layout == C.LORI_MKLDNN {
		keepWith(t)
	}
	c := cacheOf(t)
	if c == nil {
		return make()
	}
	if v, ok := find[K, T](c, &key); ok {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := find[K, T](c, &key); ok {
		return v
	}
	v := make()
	var had []any
	if all := c.entries.Load(); all != nil {
		had = *all
	}
	more := append(had[:len(had):len(had)], &keptEntry[K, T]{key, v})
	c.entries.Store(&more)
	return v
}

//export loriGoDropCache
func loriGoDropCache(h C.uintptr_t) { caches.drop(h) }

// keepWith says that nobody writes the memory of a tensor as long as it lives.
func keepWith(t *tensor) { C.lori_storage_constant(t.storage) }

// plans keeps a bounded number of results by what they were made from.
type plans[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V // guarded by mu
}

// maxPlans bounds each plans; it is emptied when it is full, which only shapes
// that change all the time bring about.
const maxPlans = 1024

func (p *plans[K, V]) get(key K, make func() V) V {
	p.mu.Lock()
	v, ok := p.all[key]
	p.mu.Unlock()
	if ok {
		return v
	}
	v = make()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil || len(p.all) >= maxPlans {
		p.all = map[K]V{}
	}
	p.all[key] = v
	return v
}

func isConstant(t *tensor) bool { return bool(C.lori_storage_is_constant(t.storage)) }
