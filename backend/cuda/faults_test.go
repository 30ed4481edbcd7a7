//go:build cuda && linux && cgo

package cuda_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
)

// negated computes something new on the session's device.
func negated(t *testing.T, s *loris.Session, x ...float32) (got []float32, err error) {
	t.Helper()
	var y *loris.Tensor
	if err := loris.Try(func() { y = s.With().FromSlice(x, len(x)).Neg() }); err != nil {
		return nil, err
	}
	return y.Float32s(t.Context())
}

// What keeps GPUs from being used is an error of its own kind, which says more.
func TestGPUsThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(f *fakecuda.Fake, l *cuda.Libraries)
		want    error
		text    string
	}{
		{"no driver", func(_ *fakecuda.Fake, l *cuda.Libraries) { l.Driver = "/nowhere/libcuda.so.1" }, cuda.ErrNoDriver, "no NVIDIA driver: libcuda.so.1 could not be opened"},
		{"old driver", func(f *fakecuda.Fake, _ *cuda.Libraries) { f.Set("version", 11080) }, cuda.ErrOldDriver, "is for CUDA 11.8, and CUDA 12.0 is needed"},
		{"no device", func(f *fakecuda.Fake, _ *cuda.Libraries) { f.Set("devices", 0) }, cuda.ErrNoDevice, "no CUDA-capable device is detected"},
		{"a device that is not given away", func(f *fakecuda.Fake, _ *cuda.Libraries) {
			f.Fail("cuDevicePrimaryCtxRetain", 101, 0, true)
		}, cuda.ErrNoDevice, "cuda:0: cuDevicePrimaryCtxRetain"},
		{"no room for a context", func(f *fakecuda.Fake, _ *cuda.Libraries) {
			f.Fail("cuMemPoolCreate", 2, 0, true)
		}, cuda.ErrOutOfMemory, "cuda:0: cuMemPoolCreate: out of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fakecuda.New(t)
			l := cuda.Libraries{Driver: f.Path, NVRTC: f.Path, CUBLASLt: f.Path}
			c.prepare(f, &l)
			b := cuda.New(l)
			defer b.Close()
			s := loris.FromSlice([]float32{1}, 1).Shape()
			_, err := b.Upload(t.Context(), s, loris.CUDA(0), make([]byte, 4))
			if !errors.Is(err, c.want) || !errors.Is(err, loris.ErrDevice) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A failure to open a device is not for ever.
func TestDeviceOpensLater(t *testing.T) {
	f := onFake(t)
	for _, call := range []string{"cuInit", "cuDeviceGetName", "cuDevicePrimaryCtxRetain", "cuMemPoolCreate"} {
		f.Fail(call, 2, 0, true)
		s, err := loris.New(loris.WithDevice(loris.CUDA(0)))
		if err == nil {
			_, err = negated(t, s, 1)
			s.Close(t.Context())
		}
		if !errors.Is(err, loris.ErrDevice) || !strings.Contains(err.Error(), call) {
			t.Errorf("%s: got %v", call, err)
		}
	}
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	if got, err := negated(t, s, 1); err != nil || got[0] != -1 {
		t.Errorf("got %v, %v", got, err)
	}
}

// The libraries that compilations want may be missing, too, and kernels may not
// compile.
func TestCompilationsThatFail(t *testing.T) {
	f := onFake(t)
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	x := s.With().FromSlice([]float32{1, 4}, 2)
	f.Fail("nvrtcCompileProgram", 6, 0, true)
	if _, err := x.Neg().Float32s(t.Context()); !errors.Is(err, cuda.ErrCompile) || !strings.Contains(err.Error(), "kernel ") {
		t.Errorf("a kernel that does not compile: %v", err)
	}
	f.Fail("cuModuleLoadData", 209, 0, true)
	if _, err := x.Neg().Float32s(t.Context()); err == nil || !strings.Contains(err.Error(), "cuModuleLoadData") {
		t.Errorf("a kernel that does not load: %v", err)
	}
	if got, err := x.Neg().Float32s(t.Context()); err != nil || !slices.Equal(got, []float32{-1, -4}) {
		t.Errorf("after that: %v, %v", got, err)
	}
}

func TestExhaustedDevice(t *testing.T) {
	f := onFake(t)
	f.Set("memory", 1<<20)
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	m := s.With()
	x := m.FromSlice([]float32{1, 4}, 2)
	_, err := m.Full(2, 1<<19).Add(x.Sum()).Float32s(t.Context())
	var e *cuda.OutOfMemory
	if !errors.As(err, &e) || e.Device != loris.CUDA(0) || e.Wanted != 1<<21 || e.Total != 1<<20 {
		t.Fatalf("got %v", err)
	}
	// Whoever read the result has heard of it, and that is all.
	if got, err := x.Neg().Float32s(t.Context()); err != nil || !slices.Equal(got, []float32{-1, -4}) {
		t.Errorf("after that: %v, %v", got, err)
	}
}

// A kernel that traps, or a context that is lost by itself, ends the use of that
// device: all that is read or done there from then on is the same error, at once.
// Other devices and the process go on.
func TestLostDevice(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(f *fakecuda.Fake)
		want error
		text string
	}{
		{"a kernel traps", func(f *fakecuda.Fake) { f.Set("trap", 1) }, cuda.ErrLost, "unspecified launch failure"},
		{"at a launch", func(f *fakecuda.Fake) { f.Fail("cuLaunchKernel", 700, 0, false) }, cuda.ErrIllegalAddress, "illegal memory access"},
		{"at an allocation", func(f *fakecuda.Fake) { f.Fail("cuMemAllocFromPoolAsync", 719, 0, false) }, cuda.ErrLost, "unspecified launch failure"},
		{"at an event", func(f *fakecuda.Fake) { f.Fail("cuEventRecord", 719, 0, false) }, cuda.ErrLost, "unspecified launch failure"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := onFake(t)
			f.Set("devices", 2)
			bad, good := session(t, loris.CUDA(0)), session(t, loris.CUDA(1))
			defer bad.Close(t.Context())
			defer good.Close(t.Context())
			there, err := bad.With().FromSlice([]float32{3, 4}, 2).To(t.Context(), loris.CUDA(0))
			if err != nil {
				t.Fatal(err)
			}
			before, err := there.Abs().Float32s(t.Context())
			if err != nil || !slices.Equal(before, []float32{3, 4}) {
				t.Fatalf("before: %v, %v", before, err)
			}
			c.lose(f)
			lost := func(what string, err error) {
				t.Helper()
				var e *cuda.LostError
				if !errors.As(err, &e) || e.Device != loris.CUDA(0) || !errors.Is(err, c.want) || !errors.Is(err, loris.ErrDevice) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			_, err = there.Neg().Float32s(t.Context())
			lost("the work", err)
			f.Heal()
			f.Calls()
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					fork := bad.Fork()
					_, err := there.Float32s(t.Context())
					lost("what was there", err)
					_, err = negated(t, fork, 5)
					lost("a new computation", err)
					copied, err := there.To(t.Context(), loris.CUDA(1))
					if err == nil {
						_, err = copied.Float32s(t.Context())
					}
					lost("a copy of it", err)
				})
			}
			wg.Wait()
			if got, err := negated(t, good, 7); err != nil || got[0] != -7 {
				t.Errorf("the other device: %v, %v", got, err)
			}
			launches := slices.DeleteFunc(f.Calls(), func(call string) bool { return !strings.HasPrefix(call, "cuLaunchKernel") })
			if len(launches) != 1 {
				t.Errorf("the lost device was asked: %q", launches)
			}
		})
	}
}

// TestReopen checks that a device that was lost works again when it was reopened,
// that what was there stays lost, and what keeps it from being reopened.
func TestReopen(t *testing.T) {
	f := onFake(t)
	f.Set("devices", 2)
	other := session(t, loris.CUDA(1))
	defer other.Close(t.Context())
	if err := cuda.Reopen(t.Context(), 0); err != nil {
		t.Errorf("a device that is not in use: %v", err)
	}
	for round := range 3 {
		s := session(t, loris.CUDA(0))
		if got, err := negated(t, s, 1, 2); err != nil || !slices.Equal(got, []float32{-1, -2}) {
			t.Fatalf("round %d: %v, %v", round, got, err)
		}
		if err := cuda.Reopen(t.Context(), 0); err != nil {
			t.Errorf("a device that works: %v", err)
		}
		there, err := other.With().FromSlice([]float32{3}, 1).To(t.Context(), loris.CUDA(0))
		if err == nil {
			_, err = there.Float32s(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Set("trap", 1)
		if _, err := negated(t, s, 5); !errors.Is(err, cuda.ErrLost) {
			t.Fatalf("a kernel that traps: %v", err)
		}
		if err := cuda.Reopen(t.Context(), 0); !errors.Is(err, cuda.ErrInUse) || !strings.Contains(err.Error(), "close the sessions") {
			t.Errorf("while a session has models: %v", err)
		}
		early := session(t, loris.CUDA(0))
		if _, err := negated(t, early, 1); !errors.Is(err, cuda.ErrLost) {
			t.Errorf("a new session before that: %v", err)
		}
		_ = early.Close(t.Context())
		_ = s.Close(t.Context()) // which tells that the device was lost
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := cuda.Reopen(t.Context(), 0); err != nil {
					t.Errorf("reopen: %v", err)
				}
				_, err := there.Float32s(t.Context())
				var lost *cuda.LostError
				if !errors.As(err, &lost) || lost.Device != loris.CUDA(0) {
					t.Errorf("what was there: %v", err)
				}
			})
		}
		wg.Wait()
		if got, err := negated(t, other, 7); err != nil || got[0] != -7 {
			t.Errorf("the other device: %v, %v", got, err)
		}
	}
	// Copies between devices go on, too.
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	moved, err := s.With().FromSlice([]float32{8}, 1).Neg().To(t.Context(), loris.CUDA(1))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := moved.Float32s(t.Context()); err != nil || got[0] != -8 {
		t.Errorf("a copy to the other device: %v, %v", got, err)
	}
}

// TestReopenElsewhereInUse checks a context that others of the process have.
func TestReopenElsewhereInUse(t *testing.T) {
	f := onFake(t)
	s := session(t, loris.CUDA(0))
	second := cuda.New(cuda.Libraries{Driver: f.Path, NVRTC: f.Path, CUBLASLt: f.Path})
	held, err := second.Upload(t.Context(), loris.FromSlice([]float32{1}, 1).Shape(), loris.CUDA(0), make([]byte, 4))
	if err != nil {
		t.Fatal(err)
	}
	f.Set("trap", 1)
	if _, err := negated(t, s, 5); !errors.Is(err, cuda.ErrLost) {
		t.Fatalf("a kernel that traps: %v", err)
	}
	_ = s.Close(t.Context())
	if err := cuda.Reopen(t.Context(), 0); !errors.Is(err, cuda.ErrLost) || !strings.Contains(err.Error(), "another library") {
		t.Errorf("while another backend has it: %v", err)
	}
	held.Release()
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	s = session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	if got, err := negated(t, s, 1); err != nil || got[0] != -1 {
		t.Errorf("when that has closed: %v, %v", got, err)
	}
}
