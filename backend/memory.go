package backend

import (
	"context"

	"github.com/loris-ml/loris/internal/ir"
)

// HostBackend is a Backend whose buffers are memory of the host.
type HostBackend interface {
	Backend
	// UploadFrom is Upload of what fill writes to the buffer's memory, of which nothing is known
	// before. An error of fill is its error.
	UploadFrom(ctx context.Context, s ir.Shape, d ir.Device, fill func(data []byte) error) (Buffer, error)
}

// NumberBackend is a Backend that makes buffers of plain numbers with less than Upload does. A program may have
// new ones in each step, such as the rate of an optimiser.
type NumberBackend interface {
	Backend
	// UploadNumber is Upload of one element that is only read. It is not counted in BytesInUse.
	UploadNumber(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (Buffer, error)
}

// MemoryStats are the bytes of a device that has memory of its own.
type MemoryStats struct {
	InUse    int64 // of live buffers and workspaces
	Peak     int64 // the most that was ever in use
	Reserved int64 // taken from the device, free ones for reuse included
	Pinned   int64 // of the host, for transfers
	Free     int64 // of the device, for all processes
	Total    int64 // of the device
}

// MemoryBackend is a Backend whose devices have memory of their own. Its
// methods are safe for concurrent use.
type MemoryBackend interface {
	Backend
	// MemoryStats returns the bytes of a device; false if it is not in use.
	MemoryStats(d ir.Device) (MemoryStats, bool)
	// OnMemoryPressure has release called when a device runs out of memory, before an
	// allocation fails, until cancel is called: it is to drop what can be had again.
	// It runs on the goroutine that allocates, and must not wait for others.
	OnMemoryPressure(release func(d ir.Device)) (cancel func())
	// Copy returns a new buffer on a device of the backend with the contents of one
	// on another, or the same one. The copy goes on after it has returned.
	Copy(ctx context.Context, from Buffer, d ir.Device) (Buffer, error)
}
