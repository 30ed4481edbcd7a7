// Package cuda finds NVIDIA GPUs. It is part of builds for linux with cgo and
// the build tag cuda, which need no headers and no library of CUDA and start on
// every machine; in other builds it says so.
package cuda

import (
	"errors"

	"github.com/loris-ml/loris/ir"
)

// DeviceType is "cuda". No backend serves it yet.
var DeviceType = ir.RegisterDeviceType("cuda")

// ErrNotBuilt says that this program was built without CUDA.
var ErrNotBuilt = errors.New("this program was built without CUDA")

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
