//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
)

// allocUnderPressure allocates when the pool has no memory. It tries again after the
// pool has returned its free memory to the device, after caches have been dropped,
// and after a garbage collection. One goroutine at a time does so.
func (d *device) allocUnderPressure(ctx context.Context, s *driver.Stream, bytes int64) (driver.DevicePtr, error) {
	if err := d.relief.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer d.relief.Release(1)
	var err error
	for _, relieve := range []func(context.Context) error{d.trim, d.dropCaches, d.collect} {
		if err := relieve(ctx); err != nil {
			return 0, err
		}
		var ptr driver.DevicePtr
		if ptr, err = d.pool.Alloc(s, bytes); !errors.Is(err, driver.ErrOutOfMemory) {
			return ptr, err
		}
	}
	return 0, d.exhausted(bytes, err)
}

// exhausted returns the error that says what is in use.
func (d *device) exhausted(wanted int64, err error) error {
	st := d.stats()
	e := &OutOfMemory{
		Device: d.id, Wanted: wanted, InUse: st.InUse, Reserved: st.Reserved, Free: st.Free, Total: st.Total, Err: err,
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e.Allocations = len(d.live)
	for b := range d.live {
		e.Largest = max(e.Largest, b.bytes)
	}
	return e
}

// trim waits for the frees that are enqueued in streams and has the pool return
// its free memory to the device.
func (d *device) trim(ctx context.Context) error {
	d.mu.Lock()
	all := append([]*driver.Stream{d.up, d.down, d.reclaim}, d.made...)
	d.mu.Unlock()
	for _, s := range all {
		if err := s.Wait(ctx); err != nil {
			return d.check(err)
		}
	}
	return d.check(d.pool.Trim(0))
}

// dropCaches releases memory that can be recomputed: workspaces, idle libraries,
// and what sessions cache.
func (d *device) dropCaches(ctx context.Context) error {
	d.dropWorkspaces()
	d.unloadIdle()
	d.backend.memoryPressure(d.id)
	return d.trim(ctx)
}

// Cleanups of what a collection found run by and by: collect waits until that of a
// mark, which the same collection finds, has run and nothing was freed for settle,
// and for maxSettle at most.
const (
	settle    = 2 * time.Millisecond
	maxSettle = time.Second
)

// collect runs the garbage collector and waits until it has released memory.
func (d *device) collect(ctx context.Context) error {
	found := make(chan struct{})
	mark := new(*int) // a pointer: tiny objects without any have no end of their own
	runtime.AddCleanup(mark, func(c chan struct{}) { close(c) }, found)
	runtime.GC()
	end := time.NewTimer(maxSettle)
	defer end.Stop()
	select {
	case <-found:
	case <-end.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for start, last := time.Now(), int64(-1); time.Since(start) < maxSettle; {
		now := d.inUse.Load()
		if now == last {
			break
		}
		last = now
		time.Sleep(settle)
	}
	return d.trim(ctx)
}

// collectSoon starts a garbage collection in the background when much of the
// device's memory is in use: Go's collector does not count buffers that were
// dropped. The next one starts when a sixteenth of the memory more is in use.
func (d *device) collectSoon(now int64) {
	at := d.collectAt.Load()
	if now <= at || !d.collectAt.CompareAndSwap(at, now+d.props.Memory/16) {
		return
	}
	go func() {
		runtime.GC()
		d.collectAt.Store(max(d.props.Memory/4*3, d.inUse.Load()+d.props.Memory/16))
	}()
}

// stats returns the bytes of the device. Numbers that cannot be had are zero.
func (d *device) stats() backend.MemoryStats {
	st := backend.MemoryStats{InUse: d.inUse.Load(), Peak: d.peak.Load(), Pinned: d.pinned.Load(), Total: d.props.Memory}
	if d.enter() != nil {
		return st
	}
	defer d.leave()
	if p, err := d.pool.Stats(); err == nil {
		st.Reserved = p.Reserved
	}
	if free, _, err := d.ctx.MemInfo(); err == nil {
		st.Free = free
	}
	return st
}

// MemoryStats returns the bytes of a device; false if it is not in use.
func (b *Backend) MemoryStats(d ir.Device) (backend.MemoryStats, bool) {
	g := b.opened(d)
	if g == nil {
		return backend.MemoryStats{}, false
	}
	return g.stats(), true
}

// OnMemoryPressure has release called when a device runs out of memory, until cancel is
// called.
func (b *Backend) OnMemoryPressure(release func(d ir.Device)) (cancel func()) {
	key := &release
	b.listeners.Store(key, release)
	return func() { b.listeners.Delete(key) }
}

// memoryPressure calls the functions of OnMemoryPressure.
func (b *Backend) memoryPressure(d ir.Device) {
	b.listeners.Range(func(_, release any) bool {
		release.(func(ir.Device))(d)
		return true
	})
}
