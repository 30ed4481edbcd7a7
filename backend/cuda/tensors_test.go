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
)

// Tensors move between the host and GPUs, and the report says what is held.
func TestTensorsOnGPUs(t *testing.T) {
	f := onFake(t)
	f.Set("devices", 2)
	s := session(t, loris.CPU)
	defer s.Close(t.Context())
	want := []float32{1, 2, 3, 4, 5}
	x := s.With().FromSlice(want, 5)
	at := x
	for _, d := range []loris.Device{loris.CUDA(0), loris.CUDA(1), loris.CPU, loris.CUDA(1)} {
		next, err := at.To(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if next.Device() != d {
			t.Errorf("it is on %v, not on %v", next.Device(), d)
		}
		if got, err := next.Float32s(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("on %v: %v, %v", d, got, err)
		}
		at = next
	}
	calls := strings.Join(f.Calls(), "\n")
	if !strings.Contains(calls, "cuMemcpyPeerAsync 20") {
		t.Errorf("no direct copy in\n%s", calls)
	}
	r := s.Report()
	if m := r.Memory["cuda:1"]; m.InUse != r.MemoryInUse["cuda:1"] || m.InUse < 20 || m.Total != 1<<30 {
		t.Errorf("got %+v", r.Memory)
	}
	if text := r.String(); !strings.Contains(text, "cuda:1: ") || !strings.Contains(text, "free on the device") {
		t.Errorf("the report does not tell of memory:\n%s", text)
	}
}

func TestGPUsThatAreNotThere(t *testing.T) {
	onFake(t).Set("devices", 2)
	s := session(t, loris.CPU)
	defer s.Close(t.Context())
	_, err := s.With().FromSlice([]float32{1}, 1).To(t.Context(), loris.CUDA(2))
	if !errors.Is(err, loris.ErrDevice) || !strings.Contains(err.Error(), "cuda:2: there are 2 cuda devices") {
		t.Errorf("got %v", err)
	}
	if _, err := loris.New(loris.WithDevice(loris.CUDA(7))); !errors.Is(err, loris.ErrDevice) {
		t.Errorf("got %v", err)
	}
}

// What the data cache of a session keeps on a device makes room when memory is
// short there, as do tensors that nobody can reach.
func TestCachedDataMakesRoom(t *testing.T) {
	f := onFake(t)
	f.Set("memory", 1<<20)
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	table := make([]byte, 160<<10)
	for i := range 20 {
		table[0] = byte(i)
		x := s.With().Constant(table, loris.MakeShape(loris.U8, len(table)))
		if got, err := x.Narrow(0, 0, 1).Item(t.Context()); err != nil || got != float64(i) {
			t.Fatalf("table %d: %v, %v", i, got, err)
		}
	}
}

// TestSyncsOverDevices computes on two GPUs in one sync, from several goroutines that name the devices
// in either order: lockers are taken in one order, so that none waits for ever. When
// one device is lost the results on the other are there.
func TestSyncsOverDevices(t *testing.T) {
	f := onFake(t)
	f.Set("devices", 2)
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	bases := make([]*loris.Tensor, 2)
	for i := range bases {
		x, err := s.With().FromSlice([]float32{1, 2}, 2).To(t.Context(), loris.CUDA(i))
		if err != nil {
			t.Fatal(err)
		}
		bases[i] = x
	}
	// step returns what both devices computed in one sync, by device.
	step := func(s *loris.Session, first int) (results [2]*loris.Tensor, err error) {
		err = loris.Try(func() {
			for i, x := range bases {
				results[i] = x.Neg()
			}
		})
		if err == nil {
			err = s.Sync(t.Context(), results[first], results[1-first])
		}
		return results, err
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		fork := s.Fork()
		wg.Go(func() {
			for range 5 {
				results, err := step(fork, worker%2)
				if err != nil {
					t.Error(err)
					return
				}
				for i, y := range results {
					if got, err := y.Float32s(t.Context()); err != nil || !slices.Equal(got, []float32{-1, -2}) || y.Device() != loris.CUDA(i) {
						t.Errorf("on %v: %v, %v", y.Device(), got, err)
					}
				}
			}
		})
	}
	wg.Wait()
	f.Set("trap", 1)
	if _, err := bases[0].Neg().Float32s(t.Context()); !errors.Is(err, cuda.ErrLost) {
		t.Fatalf("a kernel that traps: %v", err)
	}
	for first := range 2 {
		results, err := step(s.Fork(), first)
		if err != nil && !errors.Is(err, cuda.ErrLost) { // the locker may tell of the fault at once
			t.Fatal(err)
		}
		if _, err := results[0].Float32s(t.Context()); !errors.Is(err, cuda.ErrLost) {
			t.Errorf("on the device that is lost: %v", err)
		}
		if got, err := results[1].Float32s(t.Context()); err != nil || !slices.Equal(got, []float32{-1, -2}) {
			t.Errorf("on the other: %v, %v", got, err)
		}
	}
}
