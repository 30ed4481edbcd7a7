//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	b := New(Libraries{})
	backend.Register(b)
	accelerator.Register(DeviceType.String(), b)
}

// Libraries says where CUDA's libraries are: files, or folders that have them
// under their usual names. Where a path is empty the environment says it
// (LORIS_LIBCUDA, LORIS_LIBNVRTC, LORIS_LIBCUBLASLT), and else the loader looks.
type Libraries struct{ Driver, NVRTC, CUBLASLt string }

// Backend computes Programs on NVIDIA GPUs. The zero value is not usable; see
// New.
type Backend struct {
	libs Libraries
	tf32 atomic.Bool  // see AllowTF32
	tune atomic.Int64 // see TuneProducts

	mu      sync.Mutex
	drv     *driver.Driver   // guarded by mu; nil until it is opened
	nvrtc   *driver.Compiler // guarded by mu; nil until it is opened
	lt      *driver.BLAS     // guarded by mu; nil until it is opened
	devices map[int]*device  // guarded by mu: those in use

	listeners sync.Map // the functions of OnMemoryPressure, by keys of its own
}

// New returns a backend over these libraries, which are opened when they are
// first needed. The one that is registered uses those of the machine.
func New(libs Libraries) *Backend {
	b := &Backend{libs: libs, devices: map[int]*device{}}
	b.TuneProducts(tuneBudget)
	return b
}

// DeviceType returns "cuda".
func (*Backend) DeviceType() ir.DeviceType { return DeviceType }

// Version changes when compiled artefacts of before must not be used.
func (*Backend) Version() string { return "cuda-1" }

// NumDevices returns how many GPUs there are, or why none can be used: an error
// that is ErrNoDriver, ErrOldDriver or ErrNoDevice.
func (b *Backend) NumDevices() (int, error) {
	d, err := b.driver()
	if err != nil {
		return 0, err
	}
	n, err := d.NumDevices()
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	return n, nil
}

// driver opens the driver once; what failed is tried again.
func (b *Backend) driver() (*driver.Driver, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.driverLocked()
}

func (b *Backend) driverLocked() (*driver.Driver, error) {
	if b.drv == nil {
		d, err := driver.Open(b.libs.Driver)
		if err != nil {
			return nil, fmt.Errorf("cuda: %w", err)
		}
		b.drv = d
	}
	return b.drv, nil
}

// device opens a GPU once; what failed is tried again. Errors are ir.ErrDevice
// as well as what the driver says.
func (b *Backend) device(i int) (*device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.devices[i]; d != nil {
		return d, d.lostErr()
	}
	drv, err := b.driverLocked()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ir.ErrDevice, err)
	}
	d, err := openDevice(b, drv, i)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ir.ErrDevice, err)
	}
	b.devices[i] = d
	return d, nil
}

// of returns the GPU that an ir.Device names.
func (b *Backend) of(d ir.Device) (*device, error) {
	if d.Type != DeviceType {
		return nil, fmt.Errorf("cuda: %w: %v is none of the backend's", ir.ErrDevice, d)
	}
	return b.device(int(d.Index))
}

// opened returns a GPU if it is in use, else nil.
func (b *Backend) opened(d ir.Device) *device {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.Type != DeviceType {
		return nil
	}
	return b.devices[int(d.Index)]
}

// compiler opens NVRTC once; what failed is tried again.
func (b *Backend) compiler() (*driver.Compiler, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nvrtc == nil {
		drv, err := b.driverLocked()
		if err != nil {
			return nil, err
		}
		if b.nvrtc, err = driver.OpenCompiler(b.libs.NVRTC, drv.Version()); err != nil {
			return nil, fmt.Errorf("cuda: %w", err)
		}
	}
	return b.nvrtc, nil
}

// blas opens cuBLASLt once; what failed is tried again.
func (b *Backend) blas() (*driver.BLAS, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lt == nil {
		drv, err := b.driverLocked()
		if err != nil {
			return nil, err
		}
		if b.lt, err = driver.OpenBLAS(b.libs.CUBLASLt, drv.Version()); err != nil {
			return nil, fmt.Errorf("cuda: %w", err)
		}
	}
	return b.lt, nil
}

// BytesInUse returns the bytes of live buffers and workspaces on a device.
func (b *Backend) BytesInUse(d ir.Device) int64 {
	if g := b.opened(d); g != nil {
		return g.inUse.Load()
	}
	return 0
}

// Close frees all that the backend holds on the GPUs, buffers that are not
// released included, and gives them back. Its models must be closed, and nothing
// may be under way. The backend may be used again, the buffers of before not.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.devices {
		d.rest()
	}
	var errs []error
	for i, d := range b.devices {
		errs = append(errs, d.close())
		delete(b.devices, i)
	}
	return errors.Join(errs...)
}
