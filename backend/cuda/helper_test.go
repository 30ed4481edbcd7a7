//go:build cuda && linux && cgo

package cuda

import (
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/ir"
)

// newFake returns a stand-in with a backend over it, which is closed at the end
// of the test.
func newFake(t testing.TB, devices int) (*fakecuda.Fake, *Backend) {
	t.Helper()
	f := fakecuda.New(t)
	f.Set("devices", devices)
	b := New(Libraries{Driver: f.Path, NVRTC: f.Path, CUBLASLt: f.Path})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f, b
}

func gpu(i int) ir.Device { return ir.Device{Type: DeviceType, Index: uint8(i)} }

// open returns a device of a backend.
func open(t testing.TB, b *Backend, i int) *device {
	t.Helper()
	d, err := b.device(i)
	check(t, err)
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
