package hostmem

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// Devices are the devices of a backend whose buffers are an Allocator's: those
// of a type with the indices from 0 to Count-1.
type Devices struct {
	Type  ir.DeviceType
	Count int
}

// Check returns an error wrapping ir.ErrDevice if d is none of the devices.
func (x Devices) Check(d ir.Device) error {
	if d.Type != x.Type || int(d.Index) >= x.Count {
		return fmt.Errorf("%v: %w: %v is none of the backend's %d", x.Type, ir.ErrDevice, d, x.Count)
	}
	return nil
}

// Upload copies host data into a buffer of the allocator. It returns an error
// wrapping ir.ErrShape if data does not have the size of the shape, and one
// wrapping ir.ErrDevice if d is none of the devices.
func (x Devices) Upload(a *Allocator, s ir.Shape, d ir.Device, data []byte) (*Buffer, error) {
	if err := x.Check(d); err != nil {
		return nil, err
	}
	b, err := a.FromBytes(s, d, data)
	if err != nil {
		return nil, fmt.Errorf("%v: upload: %w", x.Type, err)
	}
	return b, nil
}
