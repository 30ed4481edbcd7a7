package collective

import (
	"context"
	"sync/atomic"
)

// GPU is what a DeviceEngine knows of a device: its context, a CUcontext, and the address of the driver's
// cuCtxSetCurrent.
type GPU struct{ Context, SetCurrent uintptr }

// DeviceStarter starts engines for the collectives of groups on GPUs.
type DeviceStarter interface {
	// NewID returns what the ranks of a group know each other by: one of them calls it and gives it to all.
	NewID() ([]byte, error)
	// Start returns the engine of a rank. It waits for the others, until given returns an error.
	Start(given func() error, g GPU, rank, size int, id []byte) (DeviceEngine, error)
}

// DeviceEngine moves memory of GPUs between the ranks of a group.
type DeviceEngine interface {
	// Issue enqueues what DeviceOps say, all at once, in a stream. It may take until given returns
	// an error: the library meets other ranks at first.
	Issue(given func() error, stream uintptr, ops []DeviceOp) error
	// Err is what has gone wrong since.
	Err() error
	// Abort ends the engine, and what it has enqueued: the streams go on. Close ends one that has nothing
	// enqueued. Both may be called again.
	Abort()
	Close() error
}

// DeviceOp is one thing that an engine enqueues.
type DeviceOp struct {
	Kind    DeviceKind
	Peer    int // the other rank, or the root
	In, Out uintptr
	Bytes   int // of one rank's operand
}

// DeviceKind says what a DeviceOp does.
type DeviceKind int

// The kinds. Those of the whole group are alone in a list. Sums are in an order of the library's choice.
const (
	DeviceSend DeviceKind = iota
	DeviceRecv
	DeviceGather
	DeviceBroadcast
	DeviceSumF32
	DeviceSumF64
)

var devices atomic.Pointer[DeviceStarter]

// RegisterDevices makes a starter that of the process; the last one wins.
func RegisterDevices(s DeviceStarter) { devices.Store(&s) }

// Devices returns the process's starter, or nil.
func Devices() DeviceStarter {
	if s := devices.Load(); s != nil {
		return *s
	}
	return nil
}

// Transfer is a collective on a GPU. Uses are those that OnDevice leaves.
type Transfer struct {
	Use     *Use
	In, Out uintptr // dense
}

// DeviceCommunicator is a Communicator that runs collectives of GPUs, too.
type DeviceCommunicator interface {
	Communicator
	// Layout returns how many ranks a group has, and whether sums of long tensors may be the library's own.
	Layout(group string) (size int, library bool, err error)
	// StartOn enqueues transfers of one group in a stream: one collective of all ranks, or sends and
	// receives that go on at the same time. Then it calls record, which returns how to ask whether what is
	// in the stream by then is done. Requests are done when the transfers are; their memory may be used
	// in the stream's order.
	StartOn(ctx context.Context, ts []Transfer, g GPU, stream uintptr, record func() (func() (bool, error), error)) (Request, error)
}
