package cuda

import (
	"errors"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
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
	// ErrLost says that a device can not be used any more by this process: a kernel
	// of it trapped, or CUDA gave it up. Every later use of the device says so, too;
	// other devices go on.
	ErrLost = driver.ErrLost
	// ErrCompile says that NVRTC did not compile a kernel.
	ErrCompile = driver.ErrCompile
)
