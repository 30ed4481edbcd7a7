// Package cuda is the backend of NVIDIA GPUs. It is part of builds for linux
// with cgo and the build tag cuda, which need no headers and no library of CUDA
// and start on every machine; in other builds it says so. The device type is
// "cuda".
//
// The package is experimental: it is tested on stand-ins for CUDA's libraries and
// has not run on a GPU yet. Its interface may change in any release.
//
// Nothing is opened before it is needed: the driver with the first question for
// a device, a device with its first buffer or model, NVRTC and cuBLASLt with the
// first model that wants them.
//
// # Order
//
// Work on a device is done in the order of streams, and no goroutine waits for it
// before its results are read. Each piece of memory knows the stream that it was
// allocated for, the event after which its contents are there, and the events
// after which other streams no longer use it. A stream that reads the memory waits
// for the first; one that frees it or writes over it waits for all. So buffers may
// be shared, donated and released before the work on them is done.
//
// # Faults
//
// When memory is short, unused memory is looked for and released before an
// allocation fails with an OutOfMemory, which says what is in use. A
// kernel that traps loses the device: that error is kept, and every later call for
// the device returns it at once, until Reopen.
package cuda

import (
	"github.com/loris-ml/loris/internal/ir"
)

// DeviceType is "cuda".
var DeviceType = ir.RegisterDeviceType("cuda")

// Info describes a GPU.
type Info struct {
	Index  int
	Name   string
	UUID   string // as nvidia-smi writes it
	Arch   string // of its machine code, such as "sm_90"
	Memory int64  // bytes
	SMs    int    // multiprocessors
	Driver string // the version of CUDA that the driver is for
}
