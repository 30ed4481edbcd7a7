//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
)

func TestDevices(t *testing.T) {
	f := fakecuda.New(t)
	f.Set("devices", 2)
	t.Setenv(driver.EnvDriver, f.Path)
	got, err := Devices()
	want := []Info{
		{0, "Fake GPU 0", "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", "sm_90", 1 << 30, 132, "12.9"},
		{1, "Fake GPU 1", "GPU-a1a2a3a4-a5a6-a7a8-a9aa-abacadaeafb0", "sm_90", 1 << 30, 132, "12.9"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	for _, c := range []struct {
		call string
		code int
		is   error
	}{
		{"cuInit", 100, driver.ErrNoDevice},
		{"cuDeviceGetCount", 3, nil},
		{"cuDeviceGet", 101, driver.ErrNoDevice},
		{"cuDeviceGetName", 1, driver.ErrInvalid},
	} {
		f.Fail(c.call, c.code, 0, true)
		if got, err := Devices(); err == nil || got != nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.call) {
			t.Errorf("%s: %v, %v", c.call, got, err)
		}
	}
}

func TestNoDriver(t *testing.T) {
	t.Setenv(driver.EnvDriver, "/nowhere/libcuda.so.1")
	_, err := Devices()
	if !errors.Is(err, driver.ErrNoDriver) || !strings.HasPrefix(err.Error(), "cuda: no NVIDIA driver: libcuda.so.1 could not be opened: ") {
		t.Errorf("got %v", err)
	}
}
