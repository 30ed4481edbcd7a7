//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/ir"
)

// allocShort allocates when there was no memory: after memory that waits in the
// pool has gone back to the device, after others have dropped what they can have
// again, and after a collection of garbage has released what nobody can reach.
// One goroutine at a time does so.
func (d *device) allocShort(ctx context.Context, s *driver.Stream, bytes int64) (driver.DevicePtr, error) {
	if err := d.relief.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer d.relief.Release(1)
	var err error
	for _, relieve := range []func(context.Context) error{d.trim, d.shed, d.collect} {
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

// exhausted tells what is held.
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

// trim waits for the frees that are ahead in streams and gives what the pool does
// not need back to the device.
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

// shed has others drop what they can have again.
func (d *device) shed(ctx context.Context) error {
	d.dropWorkspaces()
	d.unloadIdle()
	d.backend.shortage(d.id)
	return d.trim(ctx)
}

// Cleanups of what a collection found run by and by: collect waits until that of a
// mark, which the same collection finds, has run and nothing was freed for settle,
// and for maxSettle at most.
const (
	settle    = 2 * time.Millisecond
	maxSettle = time.Second
)

// collect releases the memory of garbage.
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

// nudge has garbage collected, in the background, when memory becomes short:
// buffers that were dropped weigh nothing to Go's collector. It is asked again
// when a sixteenth of the device's memory more is in use.
func (d *device) nudge(now int64) {
	at := d.nudgeAt.Load()
	if now <= at || !d.nudgeAt.CompareAndSwap(at, now+d.props.Memory/16) {
		return
	}
	go func() {
		runtime.GC()
		d.nudgeAt.Store(max(d.props.Memory/4*3, d.inUse.Load()+d.props.Memory/16))
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

// OnShortage has release called when memory of a device is short, until cancel is
// called.
func (b *Backend) OnShortage(release func(d ir.Device)) (cancel func()) {
	key := &release
	b.shed.Store(key, release)
	return func() { b.shed.Delete(key) }
}

// shortage calls those who can release memory.
func (b *Backend) shortage(d ir.Device) {
	b.shed.Range(func(_, release any) bool {
		release.(func(ir.Device))(d)
		return true
	})
}
