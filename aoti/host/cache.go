//go:build linux && cgo

package host

/*
#include "op.h"
#include "tensor.h"
*/
import "C"

import (
	"runtime/cgo"
	"sync"
)

// weightCache is what is computed once from a constant and kept with it: weights
// packed for the dense kernels.
type weightCache struct {
	mu      sync.Mutex
	entries map[any]any // guarded by mu
}

// kept returns what make computes from a tensor's memory. Where that is a
// constant it is computed once for each key, which names the kind of result and
// all that it depends on besides the contents.
// Nobody writes bytes that are packed for oneDNN.
func kept[T any](t *tensor, key any, make func() T) T {
	if t.layout == C.LORI_MKLDNN {
		keepWith(t)
	}
	h := C.lori_storage_cache(t.storage, 0)
	if h == 0 {
		fresh := cgo.NewHandle(&weightCache{entries: map[any]any{}})
		if h = C.lori_storage_cache(t.storage, C.uintptr_t(fresh)); cgo.Handle(h) != fresh {
			fresh.Delete()
		}
		if h == 0 {
			return make() // no constant
		}
	}
	c := cgo.Handle(h).Value().(*weightCache)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.entries[key]; ok {
		return v.(T)
	}
	v := make()
	c.entries[key] = v
	return v
}

//export loriGoDropCache
func loriGoDropCache(h C.uintptr_t) { cgo.Handle(h).Delete() }

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
