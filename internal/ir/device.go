package ir

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// DeviceType is a kind of device, such as "cpu". The kinds are registered by
// the backends that serve them.
type DeviceType uint8

// Device is one device: a type and an ordinal. The zero Device means "any":
// a constant that has not met a device yet.
type Device struct {
	Type  DeviceType
	Index uint8
}

var deviceTypes = struct {
	sync.RWMutex
	names []string
}{names: []string{"any"}}

// RegisterDeviceType returns the device type with the given name, which is
// made at the first call. Names are lower-case words without digits or colons.
func RegisterDeviceType(name string) DeviceType {
	deviceTypes.Lock()
	defer deviceTypes.Unlock()
	for i, n := range deviceTypes.names {
		if n == name {
			return DeviceType(i)
		}
	}
	if name == "" || strings.ContainsAny(name, ":0123456789 ") || len(deviceTypes.names) > 255 {
		panic(fmt.Errorf("%w: cannot register device type %q", ErrDevice, name))
	}
	deviceTypes.names = append(deviceTypes.names, name)
	return DeviceType(len(deviceTypes.names) - 1)
}

// String returns the registered name.
func (t DeviceType) String() string {
	deviceTypes.RLock()
	defer deviceTypes.RUnlock()
	if int(t) < len(deviceTypes.names) {
		return deviceTypes.names[t]
	}
	return "devicetype" + strconv.Itoa(int(t))
}

// IsAny reports whether d is the zero Device.
func (d Device) IsAny() bool { return d == Device{} }

// String returns, for example, "cpu:0".
func (d Device) String() string {
	if d.IsAny() {
		return "any"
	}
	return d.Type.String() + ":" + strconv.Itoa(int(d.Index))
}

// MarshalText returns what String does, for JSON and logs.
func (d Device) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Less orders devices by type and index: the fixed order in which several are
// locked.
func (d Device) Less(o Device) bool {
	if d.Type != o.Type {
		return d.Type < o.Type
	}
	return d.Index < o.Index
}

// ParseDevice reads "cpu" or "cpu:1". A type that no backend has registered
// is an error wrapping ErrDevice that lists those there are.
func ParseDevice(s string) (Device, error) {
	name, idx, has := strings.Cut(s, ":")
	var d Device
	if has {
		n, err := strconv.ParseUint(idx, 10, 8)
		if err != nil {
			return d, fmt.Errorf("%w: %q: the ordinal must be 0 to 255", ErrDevice, s)
		}
		d.Index = uint8(n)
	}
	deviceTypes.RLock()
	defer deviceTypes.RUnlock()
	for i, n := range deviceTypes.names[1:] {
		if n == name {
			d.Type = DeviceType(i + 1)
			return d, nil
		}
	}
	return d, fmt.Errorf("%w: %q: the device types are %s", ErrDevice, s, strings.Join(deviceTypes.names[1:], ", "))
}
