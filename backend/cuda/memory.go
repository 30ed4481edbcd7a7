//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
)

// memory is a piece of a device's memory with a count of references; a new one
// has one. One that is dropped without release is found by the garbage
// collector.
type memory struct {
	*block
	refs    atomic.Int32
	cleanup runtime.Cleanup
}

// block is the allocation of a memory, and the order of its uses. It does not
// know the memory, which must be unreachable for the collector to find it.
type block struct {
	dev   *device
	ptr   driver.DevicePtr // 0 if there are no bytes
	bytes int64
	home  *driver.Stream // it was allocated for the work in it; nil with a deleter

	deleter func() // of memory that is the caller's, see FromBlob; else nil

	mu sync.Mutex
	// ready is the event after which the contents are there; nil says that work in
	// home makes them. Guarded by mu.
	ready *event
	// uses are the events after which streams no longer use the memory, at most one
	// of each stream. Guarded by mu.
	uses []*event
	// reports are of the faults that the contents may come from. Guarded by mu.
	reports []*report
}

// alloc returns memory for work that follows in a stream, aligned to 256 bytes.
// When there is none, it releases what nobody uses any more; then the error is an
// *OutOfMemory. It waits for that until ctx is done.
func (d *device) alloc(ctx context.Context, s *driver.Stream, bytes int) (*memory, error) {
	if err := d.lostErr(); err != nil {
		return nil, err
	}
	ptr, err := d.pool.Alloc(s, int64(bytes))
	if errors.Is(err, driver.ErrOutOfMemory) {
		ptr, err = d.allocUnderPressure(ctx, s, int64(bytes))
	}
	if err != nil {
		return nil, d.check(err)
	}
	b := &block{dev: d, ptr: ptr, bytes: int64(bytes), home: s}
	d.mu.Lock()
	d.live[b] = struct{}{}
	d.mu.Unlock()
	now := d.inUse.Add(b.bytes)
	for {
		peak := d.peak.Load()
		if now <= peak || d.peak.CompareAndSwap(peak, now) {
			break
		}
	}
	if now > d.collectAt.Load() {
		d.collectSoon(now)
	}
	m := &memory{block: b}
	m.refs.Store(1)
	m.collected()
	return m, nil
}

// collected has memory that is dropped without release freed when it is unreachable.
func (m *memory) collected() { m.cleanup = runtime.AddCleanup(m, (*block).free, m.block) }

func (m *memory) retain() *memory {
	m.refs.Add(1)
	return m
}

// release drops a reference. With the last the memory is freed, in the order of
// the streams that use it.
func (m *memory) release() {
	switch n := m.refs.Add(-1); {
	case n == 0:
		m.cleanup.Stop()
		m.free()
	case n < 0:
		panic("cuda: memory was released more often than retained")
	}
	runtime.KeepAlive(m)
}

// markReady says that the contents are there after an event, which may be of
// any stream. Earlier events are dropped: the writer has waited for them by
// waitIdle.
func (b *block) markReady(m *event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	b.ready = m.retain()
}

// forget drops the events; mu is held.
func (b *block) forget() {
	if b.ready != nil {
		b.ready.release()
	}
	for _, m := range b.uses {
		m.release()
	}
	b.ready, b.uses = nil, b.uses[:0]
}

// use says that the memory is read until an event.
func (b *block) use(m *event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.retain()
	i := slices.IndexFunc(b.uses, func(u *event) bool { return u.stream == m.stream })
	if i < 0 {
		b.uses = append(b.uses, m)
		return
	}
	b.uses[i].release()
	b.uses[i] = m
}

// waitReady makes the work that follows in a stream, which may be of another
// device, wait for the contents. For errors see event.before.
func (b *block) waitReady(s *driver.Stream) error {
	m, err := b.readyAt(s)
	if m == nil {
		return err
	}
	defer m.release()
	return m.before(s)
}

// readyAt returns the event after which the contents are there, as a new
// reference; nil if work in s comes after them anyway.
func (b *block) readyAt(s *driver.Stream) (*event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ready == nil && b.home == s:
		return nil, nil
	case b.ready == nil:
		m, err := b.dev.record(b.home)
		if err != nil {
			return nil, err
		}
		b.ready = m
	case b.ready.stream == s:
		return nil, nil
	}
	return b.ready.retain(), nil
}

// waitIdle makes the work that follows in a stream, which may write over the
// memory, wait for everything that was said to make or to read the contents.
func (b *block) waitIdle(s *driver.Stream) error {
	if err := b.waitReady(s); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.uses {
		if err := m.before(s); err != nil {
			return err
		}
	}
	return nil
}

// free gives the allocation back to the pool, behind the work of all streams that
// use it. Errors can only be that the device is lost, which is kept.
func (b *block) free() {
	if b.deleter != nil {
		b.giveBack()
		return
	}
	d := b.dev
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed {
		return
	}
	d.mu.Lock()
	delete(d.live, b)
	d.mu.Unlock()
	d.inUse.Add(-b.bytes)
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.forget()
	if d.lost.Load() == nil {
		_ = d.check(b.freeInOrder())
	}
}

// freeInOrder frees in the stream that the memory was allocated for, or, if
// others use it too, in one that waits for all of them; mu is held.
func (b *block) freeInOrder() error {
	others := slices.DeleteFunc(slices.Clone(b.uses), func(m *event) bool { return m.stream == b.home || m.passed.Load() })
	if m := b.ready; m != nil && m.stream != b.home && !m.passed.Load() {
		others = append(others, m)
	}
	s := b.home
	if len(others) > 0 {
		s = b.dev.reclaim
		m, err := b.dev.record(b.home)
		if err != nil {
			return err
		}
		defer m.release()
		others = append(others, m)
	}
	for _, m := range others {
		// What a lost device did with the memory is over.
		if err := m.before(s); err != nil && (m.d == b.dev || m.d.lost.Load() == nil) {
			return err
		}
	}
	return s.Free(b.ptr)
}
