package cuda

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
)

// What errors of this package are compared with by errors.Is.
var (
	// ErrNotBuilt says that this program was built without CUDA.
	ErrNotBuilt = errors.New("this program was built without CUDA")
	// ErrNoDriver says that this machine has no NVIDIA driver.
	ErrNoDriver = driver.ErrNoDriver
	// ErrOldDriver says that the driver, or a library of CUDA, is too old.
	ErrOldDriver = driver.ErrOldDriver
	// ErrNoLibrary says that NVRTC or cuBLASLt cannot be opened.
	ErrNoLibrary = driver.ErrNoLibrary
	// ErrNoDevice says that the driver sees no GPU, or none of that index.
	ErrNoDevice = driver.ErrNoDevice
	// ErrOutOfMemory says that the memory of a GPU, or pinned memory of the host,
	// is exhausted; see OutOfMemory.
	ErrOutOfMemory = driver.ErrOutOfMemory
	// ErrIllegalAddress says that a kernel touched memory that it must not. The
	// device is lost.
	ErrIllegalAddress = driver.ErrIllegalAddress
	// ErrLost says that a device can not be used any more: a kernel of it trapped, or
	// CUDA gave it up. Every later use of the device says so, too, until Reopen;
	// other devices go on.
	ErrLost = driver.ErrLost
	// ErrInUse says that a device cannot be reopened, as models on it are open.
	ErrInUse = errors.New("models on the device are open")
	// ErrCompile says that NVRTC did not compile a kernel.
	ErrCompile = driver.ErrCompile
)

// OutOfMemory is an allocation on a GPU that failed though all that could be
// released was.
type OutOfMemory struct {
	Device      ir.Device
	Wanted      int64 // bytes
	InUse       int64 // by live buffers and workspaces of this process
	Allocations int   // how many those are
	Largest     int64 // the bytes of the largest of them
	Reserved    int64 // taken from the device by this process
	Free        int64 // of the device
	Total       int64 // of the device
	Err         error // what CUDA said
}

// Error says what was wanted and what is held.
func (e *OutOfMemory) Error() string {
	return fmt.Sprintf("%v: %v: %s wanted; %s in use by %d buffers and workspaces, the largest %s; %s reserved; the device has %s of %s free",
		e.Device, ErrOutOfMemory, size(e.Wanted), size(e.InUse), e.Allocations, size(e.Largest), size(e.Reserved), size(e.Free), size(e.Total))
}

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Unwrap returns what CUDA said, which is ErrOutOfMemory, and what all devices say alike, an
// *ir.OutOfMemory.
func (e *OutOfMemory) Unwrap() []error {
	return []error{e.Err, &ir.OutOfMemory{Wanted: e.Wanted, Held: e.InUse, Limit: e.Total, Began: true}}
}

// LostError is every use of a device after the fault that it was lost by.
type LostError struct {
	Device ir.Device
	Err    error // the first that was seen of the fault
}

// Error names the device and the fault.
func (e *LostError) Error() string {
	return fmt.Sprintf("%v was lost, and cannot be used before it is reopened (cuda.Reopen): %v", e.Device, e.Err)
}

// Unwrap returns ir.ErrDevice and the fault, which is ErrLost.
func (e *LostError) Unwrap() []error { return []error{ir.ErrDevice, e.Err} }
