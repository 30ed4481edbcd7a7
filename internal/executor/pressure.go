package executor

import (
	"errors"
	"runtime"
	"weak"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

// dropCachesOnPressure lets backends empty the data cache of a device that is short of memory, and
// the process those of all devices that use the host's. They hold only a weak pointer to the executor.
func (c *core) dropCachesOnPressure() {
	w := weak.Make(c)
	clear := func(d ir.Device) {
		if c := w.Value(); c != nil {
			c.data.Clear(d)
		}
	}
	cancels := []func(){memlimit.OnPressure(func() {
		for _, b := range backend.All() {
			if !ownMemory(b) {
				clear(ir.Device{Type: b.DeviceType()})
			}
		}
	})}
	for _, b := range backend.All() {
		if mb, ok := b.(backend.MemoryBackend); ok {
			cancels = append(cancels, mb.OnMemoryPressure(clear))
		}
	}
	runtime.AddCleanup(c, func(cancels []func()) {
		for _, cancel := range cancels {
			cancel()
		}
	}, cancels)
}

// ownMemory reports whether the devices of a backend have memory of their own.
func ownMemory(b backend.Backend) bool {
	_, ok := b.(backend.MemoryBackend)
	return ok
}

// untouched reports whether a run failed for want of memory before it began, so that no input was
// overwritten.
func untouched(err error) bool {
	var oom *ir.OutOfMemory
	return errors.As(err, &oom) && !oom.Began
}

// memoryStats returns what the backend reports of a device's memory, if it reports anything.
func memoryStats(d ir.Device) (backend.MemoryStats, bool) {
	b, err := backend.For(d)
	if err != nil {
		return backend.MemoryStats{}, false
	}
	mb, ok := b.(backend.MemoryBackend)
	if !ok {
		return backend.MemoryStats{}, false
	}
	return mb.MemoryStats(d)
}
