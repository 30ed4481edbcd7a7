package executor

import (
	"runtime"
	"weak"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/ir"
)

// dropCachesOnPressure lets backends empty the data cache of a device that is short of memory.
// The backends hold only a weak pointer to the executor.
func (c *core) dropCachesOnPressure() {
	w := weak.Make(c)
	for _, b := range backend.All() {
		if mb, ok := b.(backend.MemoryBackend); ok {
			cancel := mb.OnMemoryPressure(func(d ir.Device) {
				if c := w.Value(); c != nil {
					c.data.Clear(d)
				}
			})
			runtime.AddCleanup(c, func(cancel func()) { cancel() }, cancel)
		}
	}
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
