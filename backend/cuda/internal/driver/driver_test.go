//go:build cuda && linux && cgo

package driver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
)

// start opens a fake with n devices.
func start(t testing.TB, n int) (*fakecuda.Fake, *Driver) {
	t.Helper()
	f := fakecuda.New(t)
	f.Set("devices", n)
	d, err := Open(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return f, d
}

// closing closes something at the end of the test.
func closing[T interface{ Close() error }](t testing.TB) func(x T, err error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := x.Close(); err != nil {
				t.Errorf("close again: %v", err)
			}
		})
		return x
	}
}

func must[T any](t testing.TB) func(x T, err error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// retain makes the context of a device.
func retain(t testing.TB, d *Driver, i int) *Context {
	t.Helper()
	return closing[*Context](t)(must[*Device](t)(d.Device(i)).Retain())
}

// setup is one device with a context and a stream.
func setup(t testing.TB) (*fakecuda.Fake, *Context, *Stream) {
	t.Helper()
	f, d := start(t, 1)
	c := retain(t, d, 0)
	return f, c, closing[*Stream](t)(c.NewStream(0))
}

// after returns the calls of some functions, with their arguments.
func after(calls []string, name string) []string {
	var out []string
	for _, c := range calls {
		if fn, _, _ := strings.Cut(c, " "); fn == name {
			out = append(out, c)
		}
	}
	return out
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name    string
		without []string
		set     map[string]int
		is      error
		text    []string
	}{
		{"good", nil, nil, nil, nil},
		{"no device", nil, map[string]int{"devices": 0}, ErrNoDevice, []string{"cuInit", "no CUDA-capable device", "CUDA_ERROR_NO_DEVICE"}},
		{"old", nil, map[string]int{"version": 11040}, ErrOldDriver, []string{"CUDA 11.4", "12.0 is needed"}},
		{"a function is missing", []string{"cuMemPoolTrimTo"}, nil, ErrOldDriver, []string{"cuMemPoolTrimTo", "12.9"}},
		{"the version, too", []string{"cuDriverGetVersion"}, nil, ErrOldDriver, []string{"has no cuDriverGetVersion"}},
		{"another version of libraries", nil, map[string]int{"init": 803}, ErrOldDriver, []string{"cuInit", "803"}},
		{"unknown", nil, map[string]int{"init": 999}, nil, []string{"cuInit: error 999"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fakecuda.New(t, c.without...)
			for k, v := range c.set {
				f.Set(k, v)
			}
			d, err := Open(f.Path)
			if (err == nil) != (c.text == nil) || (err == nil) != (d != nil) {
				t.Fatalf("got %v, %v", d, err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			for _, text := range c.text {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
			if err == nil && (d.Version() != 12090 || d.Version().String() != "12.9" || d.Path() != f.Path) {
				t.Errorf("version %v of %s", d.Version(), d.Path())
			}
		})
	}
}

func TestOpenFindsTheLibrary(t *testing.T) {
	f := fakecuda.New(t)
	for _, c := range []struct{ path, env string }{
		{f.Path, "/nowhere"}, {filepath.Dir(f.Path), ""}, {"", f.Path}, {"", filepath.Dir(f.Path)},
	} {
		t.Setenv(EnvDriver, c.env)
		d, err := Open(c.path)
		if err != nil {
			t.Errorf("path %q, environment %q: %v", c.path, c.env, err)
		} else if d.Path() != f.Path {
			t.Errorf("path %q, environment %q: opened %s", c.path, c.env, d.Path())
		}
	}
	t.Setenv(EnvDriver, "/nowhere/libcuda.so.1")
	_, err := Open("")
	var load *LoadError
	if !errors.Is(err, ErrNoDriver) || !errors.As(err, &load) || len(load.Reasons) != 1 {
		t.Fatalf("got %v", err)
	}
	const want = "no NVIDIA driver: libcuda.so.1 could not be opened: /nowhere/libcuda.so.1: cannot open shared object file: No such file or directory"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	empty := t.TempDir()
	_, err = Open(empty)
	if !errors.As(err, &load) || len(load.Reasons) != 1 {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestDevices(t *testing.T) {
	f, d := start(t, 3)
	if n, err := d.NumDevices(); n != 3 || err != nil {
		t.Fatalf("%d devices, %v", n, err)
	}
	for _, i := range []int{-1, 3} {
		_, err := d.Device(i)
		want := fmt.Sprintf("cuda:%d: no such CUDA device: there are 3", i)
		if !errors.Is(err, ErrNoDevice) || err.Error() != want {
			t.Errorf("device %d: %v, want %s", i, err, want)
		}
	}
	g := must[*Device](t)(d.Device(2))
	p, err := g.Properties()
	want := Properties{
		Name: "Fake GPU 2", UUID: "GPU-a2a3a4a5-a6a7-a8a9-aaab-acadaeafb0b1", Major: 9, Memory: 1 << 30, L2: 50 << 20,
		SMs: 132, WarpSize: 32, Pools: true, MaxThreadsPerBlock: 1024, MaxThreadsPerSM: 2048, MaxGridX: 1<<31 - 1,
		MaxBlockX: 1024, RegistersPerBlock: 65536, SharedPerBlock: 49152, SharedPerBlockMax: 232448, SharedPerSM: 233472,
	}
	if err != nil || p != want {
		t.Errorf("got  %+v, %v\nwant %+v", p, err, want)
	}
	if g.Index() != 2 || p.Arch() != "sm_90" {
		t.Errorf("index %d, %s", g.Index(), p.Arch())
	}
	for _, c := range []struct {
		peer, peers int
		want        bool
	}{{0, 1, true}, {2, 1, false}, {0, 0, false}} {
		f.Set("peers", c.peers)
		if can, err := g.CanAccess(must[*Device](t)(d.Device(c.peer))); can != c.want || err != nil {
			t.Errorf("access to %d: %v, %v", c.peer, can, err)
		}
	}
	for _, call := range []string{"cuDeviceGetName", "cuDeviceGetUuid_v2", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute"} {
		f.Fail(call, 999, 0, true)
		var e *Error
		if _, err := g.Properties(); !errors.As(err, &e) || e.Code != 999 {
			t.Errorf("%s fails: %v", call, err)
		}
	}
}

func TestContext(t *testing.T) {
	f, d := start(t, 2)
	a, b := retain(t, d, 0), retain(t, d, 1)
	again := must[*Context](t)(a.Device().Retain())
	if f.Live()["context"] != 2 {
		t.Errorf("%v live", f.Live())
	}
	check(t, again.Close())
	free, total, err := a.MemInfo()
	if free != 1<<30 || total != 1<<30 || err != nil {
		t.Errorf("%d of %d free, %v", free, total, err)
	}
	if least, greatest, err := a.StreamPriorities(); least != 0 || greatest != -5 || err != nil {
		t.Errorf("priorities %d to %d, %v", least, greatest, err)
	}
	for range 2 { // twice is no error
		check(t, a.EnablePeer(b))
	}
	check(t, a.Err())
}

// Each call that fails is an error that names it.
func TestErrors(t *testing.T) {
	f, c, _ := setup(t)
	for _, x := range []struct {
		code int
		is   []error
		lost bool
	}{
		{1, []error{ErrInvalid}, false},
		{2, []error{ErrOutOfMemory}, false},
		{100, []error{ErrNoDevice}, false},
		{200, []error{ErrImage}, false},
		{209, []error{ErrImage}, false},
		{214, nil, true},
		{222, []error{ErrOldDriver}, false},
		{400, []error{ErrInvalid}, false},
		{700, []error{ErrIllegalAddress, ErrLost}, true},
		{702, nil, true},
		{709, nil, true},
		{710, nil, true},
		{715, nil, true},
		{716, nil, true},
		{719, []error{ErrLost}, true},
		{801, []error{ErrNotSupported}, false},
		{900, []error{ErrNotSupported}, false},
		{999, nil, false},
	} {
		f.Fail("cuMemGetInfo_v2", x.code, 0, true)
		_, _, err := c.MemInfo()
		var e *Error
		if !errors.As(err, &e) || e.Code != x.code || e.Call != "cuMemGetInfo" || !strings.HasPrefix(err.Error(), "cuda:0: cuMemGetInfo: ") {
			t.Errorf("code %d: %v", x.code, err)
		}
		for _, is := range x.is {
			if !errors.Is(err, is) {
				t.Errorf("%v is not %v", err, is)
			}
		}
		if IsLost(err) != x.lost {
			t.Errorf("%v: lost is %v", err, IsLost(err))
		}
	}
	f.Fail("cuMemGetInfo_v2", 719, 0, true)
	_, _, err := c.MemInfo()
	const want = "cuda:0: cuMemGetInfo: unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFailuresToMake(t *testing.T) {
	f, c, _ := setup(t)
	for _, x := range []struct {
		call string
		make func() error
	}{
		{"cuDevicePrimaryCtxRetain", func() error { _, err := c.Device().Retain(); return err }},
		{"cuStreamCreateWithPriority", func() error { _, err := c.NewStream(0); return err }},
		{"cuEventCreate", func() error { _, err := c.NewEvent(true); return err }},
		{"cuMemPoolCreate", func() error { _, err := c.NewPool(0); return err }},
		{"cuMemPoolSetAttribute", func() error { _, err := c.NewPool(0); return err }},
		{"cuMemHostAlloc", func() error { _, err := c.NewHostMem(1); return err }},
		{"cuModuleLoadData", func() error { _, err := c.LoadModule(fakecuda.Cubin(90)); return err }},
	} {
		f.Fail(x.call, 2, 0, true)
		if err := x.make(); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%s: %v", x.call, err)
		}
	}
}

// A kernel that traps loses its device's context; the other device goes on, and
// the device is usable again after all have released the context.
func TestLostContext(t *testing.T) {
	for _, x := range []struct {
		code uint64
		is   error
	}{{700, ErrIllegalAddress}, {719, ErrLost}} {
		t.Run(fmt.Sprint(x.code), func(t *testing.T) {
			_, d := start(t, 2)
			bad := must[*Context](t)(must[*Device](t)(d.Device(0)).Retain())
			good := retain(t, d, 1)
			m := must[*Module](t)(bad.LoadModule(fakecuda.Cubin(90, "kernel trap 1")))
			trap := must[*Function](t)(m.Function("trap"))
			s := must[*Stream](t)(bad.NewStream(0))
			check(t, trap.Launch(s, Launch{}, []uint64{x.code}))
			err := s.Wait(context.Background())
			if !IsLost(err) || !errors.Is(err, x.is) {
				t.Errorf("the wait says %v", err)
			}
			if _, err := bad.NewStream(0); !errors.Is(err, x.is) {
				t.Errorf("a later call says %v", err)
			}
			if err := bad.Err(); !errors.Is(err, x.is) {
				t.Errorf("the context says %v", err)
			}
			other := closing[*Stream](t)(good.NewStream(0))
			check(t, other.Wait(context.Background()))
			for _, c := range []interface{ Close() error }{m, s} {
				if err := c.Close(); !IsLost(err) {
					t.Errorf("closing %T says %v", c, err)
				}
			}
			check(t, bad.Close())
			again := retain(t, d, 0)
			check(t, again.Err())
			check(t, closing[*Stream](t)(again.NewStream(0)).Wait(context.Background()))
		})
	}
}
