//go:build cuda && linux && cgo

package driver

// #include "calls.h"
import "C"

import (
	"encoding/hex"
	"fmt"
)

// Device is one GPU.
type Device struct {
	drv   *Driver
	dev   C.CUdevice
	index int
}

// NumDevices returns how many GPUs the driver shows.
func (d *Driver) NumDevices() (int, error) {
	var n C.int
	if err := d.check("cuDeviceGetCount", C.lori_cu_device_count(d.c, &n)); err != nil {
		return 0, err
	}
	return int(n), nil
}

// Device returns the GPU of an index, or an error that is ErrNoDevice and says
// how many there are.
func (d *Driver) Device(index int) (*Device, error) {
	n, err := d.NumDevices()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= n {
		return nil, fmt.Errorf("cuda:%d: %w: there are %d", index, ErrNoDevice, n)
	}
	g := &Device{drv: d, index: index}
	if err := d.check("cuDeviceGet", C.lori_cu_device_get(d.c, C.int(index), &g.dev)); err != nil {
		return nil, fmt.Errorf("cuda:%d: %w", index, err)
	}
	return g, nil
}

// Index returns the number of the device.
func (g *Device) Index() int { return g.index }

// Properties are what is fixed about a device.
type Properties struct {
	Name         string
	UUID         string // as nvidia-smi writes it, "GPU-…"
	Major, Minor int    // compute capability
	Memory       int64  // bytes
	L2           int64  // bytes of the level-2 cache
	SMs          int    // multiprocessors
	WarpSize     int
	Pools        bool // it has stream-ordered memory pools

	MaxThreadsPerBlock int
	MaxThreadsPerSM    int
	MaxGridX           int
	MaxBlockX          int
	RegistersPerBlock  int
	SharedPerBlock     int // bytes that every kernel may use
	SharedPerBlockMax  int // bytes that Function.SetMaxDynamicShared may allow
	SharedPerSM        int // bytes
}

// Arch returns the name of the device's machine code, such as "sm_90".
func (p Properties) Arch() string { return fmt.Sprintf("sm_%d%d", p.Major, p.Minor) }

// Properties returns what is fixed about the device.
func (g *Device) Properties() (Properties, error) {
	var p Properties
	var name [256]C.char
	if err := g.check("cuDeviceGetName", C.lori_cu_device_name(g.drv.c, g.dev, &name[0], C.int(len(name)))); err != nil {
		return p, err
	}
	p.Name = C.GoString(&name[0])
	var id C.CUuuid
	if err := g.check("cuDeviceGetUuid", C.lori_cu_device_uuid(g.drv.c, g.dev, &id)); err != nil {
		return p, err
	}
	p.UUID = uuid(id)
	var memory C.size_t
	if err := g.check("cuDeviceTotalMem", C.lori_cu_device_memory(g.drv.c, g.dev, &memory)); err != nil {
		return p, err
	}
	p.Memory = int64(memory)
	var l2, pools int
	for _, a := range []struct {
		number C.uint
		to     *int
	}{
		{C.LORI_DEVICE_CC_MAJOR, &p.Major},
		{C.LORI_DEVICE_CC_MINOR, &p.Minor},
		{C.LORI_DEVICE_L2_BYTES, &l2},
		{C.LORI_DEVICE_SMS, &p.SMs},
		{C.LORI_DEVICE_WARP_SIZE, &p.WarpSize},
		{C.LORI_DEVICE_POOLS, &pools},
		{C.LORI_DEVICE_MAX_THREADS, &p.MaxThreadsPerBlock},
		{C.LORI_DEVICE_THREADS_PER_SM, &p.MaxThreadsPerSM},
		{C.LORI_DEVICE_MAX_GRID_X, &p.MaxGridX},
		{C.LORI_DEVICE_MAX_BLOCK_X, &p.MaxBlockX},
		{C.LORI_DEVICE_REGISTERS_PER_BLOCK, &p.RegistersPerBlock},
		{C.LORI_DEVICE_SHARED_PER_BLOCK, &p.SharedPerBlock},
		{C.LORI_DEVICE_SHARED_OPTIN, &p.SharedPerBlockMax},
		{C.LORI_DEVICE_SHARED_PER_SM, &p.SharedPerSM},
	} {
		var v C.int
		if err := g.check("cuDeviceGetAttribute", C.lori_cu_device_attribute(g.drv.c, g.dev, a.number, &v)); err != nil {
			return p, err
		}
		*a.to = int(v)
	}
	p.L2, p.Pools = int64(l2), pools != 0
	return p, nil
}

func uuid(id C.CUuuid) string {
	raw := make([]byte, len(id.bytes))
	for i, b := range id.bytes {
		raw[i] = byte(b)
	}
	h := hex.EncodeToString(raw)
	return "GPU-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// CanAccess reports whether the device can reach the memory of another one.
func (g *Device) CanAccess(peer *Device) (bool, error) {
	var can C.int
	err := g.check("cuDeviceCanAccessPeer", C.lori_cu_device_peer(g.drv.c, g.dev, peer.dev, &can))
	return can != 0, err
}

func (g *Device) check(call string, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return fmt.Errorf("cuda:%d: %w", g.index, g.drv.failure(call, r))
}
