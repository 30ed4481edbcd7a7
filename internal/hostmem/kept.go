package hostmem

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/loris-ml/loris/internal/memlimit"
)

// A buffer can keep what was computed from its contents, such as weights packed for products, until
// these change, the buffer is released or memory is short.

// steadyRuns is how many runs must have met the same contents before something is kept of them:
// weights in training are others at each step.
const steadyRuns = 3

// keptList is what a buffer keeps: of *keptEntry of any key.
type keptList struct {
	mu  sync.Mutex
	all []any // guarded by mu
}

type keptEntry[K comparable, V any] struct {
	key   K
	value *V
}

// Steady notes that a run, known by a number that others do not have, reads the contents, and reports
// whether so many have that something may be kept of them. It never may of wrapped memory, which
// others write.
func (b *Buffer) Steady(run uint64) bool {
	b = b.owner()
	if b == nil || b.given.Load() {
		return false
	}
	if b.runs.Load() >= steadyRuns {
		return true
	}
	return b.met.Swap(run) != run && b.runs.Add(1) >= steadyRuns
}

// Written says that the contents are about to change: nothing is kept any more.
func (b *Buffer) Written() {
	if b = b.owner(); b != nil && b.runs.Load() > 0 {
		b.runs.Store(0)
		b.drop()
	}
}

// givenOut says that somebody may write to the memory whenever no run reads it.
func (b *Buffer) givenOut() {
	if b = b.owner(); b != nil && !b.given.Swap(true) {
		b.drop()
	}
}

// Contents is Bytes for a caller who only reads: runs may go on to keep something of the contents. It
// is what backend.Contents looks for.
func (b *Buffer) Contents(context.Context) ([]byte, error) { return b.Data(), nil }

// owner returns the buffer that has the storage, nil where that is somebody else's or there is none.
func (b *Buffer) owner() *Buffer {
	for b.parent != nil {
		b = b.parent
	}
	if b.block == nil {
		return nil
	}
	return b
}

func (b *Buffer) drop() {
	if b.kept.Swap(nil) != nil {
		b.alloc.mu.Lock()
		delete(b.alloc.keeping, weak.Make(b))
		b.alloc.mu.Unlock()
	}
}

// dropKept drops what buffers keep.
func (a *Allocator) dropKept() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.keeping {
		if b := w.Value(); b != nil {
			b.kept.Store(nil)
		}
	}
	clear(a.keeping)
}

// Kept returns what a buffer keeps under a key, whose type names the kind of value and which has all
// that it depends on besides the contents; nil where it keeps none.
func Kept[K comparable, V any](b *Buffer, key *K) *V {
	if b = b.owner(); b == nil {
		return nil
	}
	l := b.kept.Load()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if e, ok := e.(*keptEntry[K, V]); ok && e.key == *key {
			return e.value
		}
	}
	return nil
}

// Keep has a buffer keep a value of so many bytes, which make computes, and returns it. It returns
// nil where buffers and what they keep would then take more than half of the limit of memory that
// NewWithin takes: the rest is for what cannot be had again. Two goroutines that find nothing kept
// may both make a value.
func Keep[K comparable, V any](b *Buffer, key K, bytes, limit int64, make func() *V) *V {
	if b = b.owner(); b == nil {
		return nil
	}
	if limit <= 0 {
		limit = memlimit.Default()
	}
	if memlimit.Sum(memlimit.Held(), bytes) > limit/2 || memlimit.Take(bytes, limit) != nil {
		return nil
	}
	v := make()
	runtime.AddCleanup(v, memlimit.Give, bytes)
	l := b.kept.Load()
	if l == nil {
		l = b.keeps()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.DeleteFunc(l.all, func(e any) bool {
		had, ok := e.(*keptEntry[K, V])
		return ok && had.key == key
	}), &keptEntry[K, V]{key, v})
	return v
}

// Keeps returns how many values a buffer keeps.
func (b *Buffer) Keeps() int {
	if b = b.owner(); b == nil {
		return 0
	}
	l := b.kept.Load()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// keeps makes the list of a buffer.
func (b *Buffer) keeps() *keptList {
	l := &keptList{}
	b.alloc.mu.Lock()
	defer b.alloc.mu.Unlock()
	if had := b.kept.Load(); had != nil {
		return had
	}
	b.kept.Store(l)
	if b.alloc.keeping == nil {
		b.alloc.keeping = map[weak.Pointer[Buffer]]struct{}{}
	}
	b.alloc.keeping[weak.Make(b)] = struct{}{}
	return l
}

// NextRun returns a number for a run that reads buffers, which no other run has.
func (a *Allocator) NextRun() uint64 { return a.runs.Add(1) }
