package executor

import (
	"runtime"
	"weak"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/ir"
)

// heedShortage empties the data cache of a device whose memory is short. The
// backends do not keep the executor alive.
func (c *core) heedShortage() {
	w := weak.Make(c)
	for _, b := range backend.All() {
		if mb, ok := b.(backend.MemoryBackend); ok {
			cancel := mb.OnShortage(func(d ir.Device) {
				if c := w.Value(); c != nil {
					c.scalars.Clear(d)
				}
			})
			runtime.AddCleanup(c, func(cancel func()) { cancel() }, cancel)
		}
	}
}

// memoryStats returns what a device's backend tells of its memory, if it does.
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
