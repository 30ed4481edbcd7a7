//go:build cuda && linux && cgo

package cuda

import (
	"fmt"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
)

// Devices returns the GPUs of this machine, or the reason why there are none: no
// driver, one that is too old, no GPU.
func Devices() ([]Info, error) {
	d, err := driver.Open("")
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	n, err := d.NumDevices()
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	infos := make([]Info, n)
	for i := range infos {
		g, err := d.Device(i)
		if err != nil {
			return nil, err
		}
		p, err := g.Properties()
		if err != nil {
			return nil, err
		}
		infos[i] = Info{
			Index: i, Name: p.Name, UUID: p.UUID, Arch: p.Arch(), Memory: p.Memory, SMs: p.SMs, Driver: d.Version().String(),
		}
	}
	return infos, nil
}
