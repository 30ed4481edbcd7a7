package loris

import (
	"math"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/null"
	"github.com/loris-ml/loris/internal/ref"
)

// Device is where tensors are and ops run: a type such as "cpu" and an ordinal.
type Device = ir.Device

// The devices that every build has.
var (
	// CPU is the default device: the processors of the host.
	CPU = cpu.Device
	// Ref is the device of the reference backend, whose scalar loops define each op.
	Ref = ref.Device
	// Null is a device that computes nothing and returns zeros, to measure recording.
	Null = Device{Type: null.DeviceType}
)

// CUDA returns an NVIDIA GPU by its index, from 0 on. Programs that are built with
// -tags cuda, for linux with cgo, can use GPUs. Using one that does not exist, or any in
// other builds, is an error that wraps ErrDevice and says why.
func CUDA(index int) Device {
	if index < 0 || index > math.MaxUint8 {
		panic(ir.NewOpError("cuda", ErrDevice, nil, "the index %d is not from 0 to %d", index, math.MaxUint8))
	}
	return Device{Type: cuda.DeviceType, Index: uint8(index)}
}

// ParseDevice reads "cpu" or "cuda:1". A type that this build lacks is an error wrapping
// ErrDevice that lists the types that it has.
func ParseDevice(s string) (Device, error) { return ir.ParseDevice(s) }

// Devices returns the devices that can be used now, in order.
func Devices() []Device {
	var out []Device
	for _, b := range backend.All() {
		n, err := b.NumDevices()
		if err != nil {
			continue
		}
		for i := range n {
			out = append(out, Device{Type: b.DeviceType(), Index: uint8(i)})
		}
	}
	return out
}
