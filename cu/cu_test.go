package cu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	gcu "gorgonia.org/cu"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/cu"
	"github.com/loris-ml/loris/cu/internal/standin"
	"github.com/loris-ml/loris/internal/graph"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin makes the shared context current for the test, and returns a session and a stream.
func begin(t *testing.T) (*loris.Session, gcu.Stream) {
	t.Helper()
	primary, err := cu.Context(loris.CUDA(0))
	check(t, err)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	check(t, gcu.SetCurrentContext(primary))
	s, err := loris.New(loris.WithDevice(loris.CUDA(0)))
	check(t, err)
	t.Cleanup(func() { check(t, s.Close(context.WithoutCancel(t.Context()))) })
	stream, err := gcu.MakeStream(gcu.NonBlocking)
	check(t, err)
	t.Cleanup(func() { check(t, stream.Destroy()) })
	return s, stream
}

// alloc returns device memory for n f32s.
func alloc(t *testing.T, n int) gcu.DevicePtr {
	t.Helper()
	ptr, err := gcu.MemAlloc(int64(4 * n))
	check(t, err)
	return ptr
}

// fill enqueues the writing of n f32s.
func fill(t *testing.T, ptr gcu.DevicePtr, v float32, n int, stream gcu.Stream) {
	t.Helper()
	check(t, gcu.MemsetD32Async(ptr, uint(math.Float32bits(v)), int64(n), stream))
}

// read waits for a stream and returns n f32s.
func read(t *testing.T, ptr gcu.DevicePtr, n int, stream gcu.Stream) []float32 {
	t.Helper()
	check(t, stream.Synchronize())
	raw := make([]byte, 4*n)
	check(t, gcu.MemcpyDtoH(unsafe.Pointer(&raw[0]), ptr, int64(len(raw))))
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// TestContext checks that both compute in the same context.
func TestContext(t *testing.T) {
	mine, err := cu.Context(loris.CUDA(0))
	check(t, err)
	dev, err := gcu.GetDevice(0)
	check(t, err)
	theirs, err := dev.RetainPrimaryCtx()
	check(t, err)
	defer func() { check(t, dev.ReleasePrimaryCtx()) }()
	if mine.String() != theirs.String() || mine == (gcu.CUContext{}) {
		t.Errorf("contexts %v and %v", mine, theirs)
	}
}

// TestFromDevicePtr computes with memory that a stream fills, once before and once after it is
// filled, and checks that it is given back when the tensor is gone.
func TestFromDevicePtr(t *testing.T) {
	s, stream := begin(t)
	resume := standin.Hold(t)
	ptr := alloc(t, 4)
	fill(t, ptr, 2, 4, stream)
	freed := make(chan struct{})
	y := compute(t, s, ptr, stream, func() { close(freed) })
	check(t, s.MarkStep(t.Context()))
	runtime.GC()
	select {
	case <-freed:
		t.Error("the memory is given back before the device has read it")
	case <-time.After(10 * time.Millisecond):
	}
	resume()
	got, err := y.Float32s(t.Context())
	check(t, err)
	if want := []float32{7, 7, 7, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for late := time.Now().Add(time.Minute); ; runtime.GC() {
		select {
		case <-freed:
			check(t, gcu.MemFree(ptr))
			return
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(late) {
			t.Fatal("the memory is not given back")
		}
	}
}

// compute returns 3x + 1 of a tensor x over memory, which nothing else has.
func compute(t *testing.T, s *loris.Session, ptr gcu.DevicePtr, stream gcu.Stream, deleter func()) *loris.Tensor {
	t.Helper()
	x, err := cu.FromDevicePtr(s, loris.CUDA(0), ptr, loris.MakeShape(loris.F32, 4), stream, deleter)
	check(t, err)
	return x.Mul(3.0).Add(1.0)
}

// TestDevicePtr reads a tensor that is pending in a stream, while its work is held back; the tensor
// is computed with afterwards.
func TestDevicePtr(t *testing.T) {
	s, stream := begin(t)
	x := s.With().FromSlice([]float32{1, 2, 3}, 3)
	resume := standin.Hold(t)
	y := x.Mul(2.0)
	to := alloc(t, 3)
	defer func() { check(t, gcu.MemFree(to)) }()
	ptr, done, err := cu.DevicePtr(t.Context(), y, stream)
	check(t, err)
	check(t, gcu.MemcpyDtoDAsync(to, ptr, 12, stream))
	check(t, done())
	z := y.Add(1.0)
	resume()
	if got, want := read(t, to, 3, stream), []float32{2, 4, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got, err := z.Float32s(t.Context())
	check(t, err)
	if want := []float32{3, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("computed from it: got %v, want %v", got, want)
	}
}

// TestEvents has Loris wait for an event of another stream, and checks that one that Loris records
// comes after the work.
func TestEvents(t *testing.T) {
	s, stream := begin(t)
	other, err := gcu.MakeStream(gcu.NonBlocking)
	check(t, err)
	defer func() { check(t, other.Destroy()) }()
	filled, err := gcu.MakeEvent(gcu.DisableTiming)
	check(t, err)
	defer func() { check(t, gcu.DestroyEvent(&filled)) }()
	computed, err := gcu.MakeEvent(gcu.DisableTiming)
	check(t, err)
	defer func() { check(t, gcu.DestroyEvent(&computed)) }()
	resume := standin.Hold(t)
	ptr := alloc(t, 4)
	fill(t, ptr, 5, 4, other)
	check(t, filled.Record(other))
	check(t, stream.Wait(filled, 0))
	y := compute(t, s, ptr, stream, func() {})
	check(t, cu.Record(t.Context(), y, computed))
	if err := computed.Query(); err == nil || err.Error() != "NotReady" {
		t.Errorf("the event is reached before the work: %v", err)
	}
	resume()
	check(t, other.Wait(computed, 0))
	at, done, err := cu.DevicePtr(t.Context(), y, other)
	check(t, err)
	if got, want := read(t, at, 4, other), []float32{16, 16, 16, 16}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	check(t, computed.Query())
	check(t, done())
}

// TestWithStream runs a compiled Program between what is in a stream and what follows.
func TestWithStream(t *testing.T) {
	_, stream := begin(t)
	d := loris.CUDA(0)
	be, err := backend.For(d)
	check(t, err)
	p, err := graph.Parse("program @p {\n %x = parameter \"x\" : f32[2]\n return neg(%x)\n}")
	check(t, err)
	m, err := be.Compile(t.Context(), p, d, backend.CompileOptions{})
	check(t, err)
	defer func() { check(t, m.Close()) }()
	x, err := be.Upload(t.Context(), loris.MakeShape(loris.F32, 2), d, make([]byte, 8))
	check(t, err)
	defer x.Release()
	resume := standin.Hold(t)
	before := alloc(t, 1)
	fill(t, before, 1, 1, stream)
	outs, err := m.Run(cu.WithStream(t.Context(), stream), []backend.Buffer{x}, nil)
	check(t, err)
	if err := stream.Query(); err == nil {
		t.Error("the stream is idle while the run is held back")
	}
	resume()
	check(t, stream.Synchronize())
	if done, err := m.(backend.AsyncModel).Finished(); !done || err != nil {
		t.Errorf("the stream went on before the run was done: %v, %v", done, err)
	}
	outs[0].Release()
}

// TestErrors checks what is refused.
func TestErrors(t *testing.T) {
	s, stream := begin(t)
	never := func() { t.Error("the deleter of refused memory is called") }
	shape := loris.MakeShape(loris.F32, 1)
	onCPU, err := loris.New()
	check(t, err)
	host := onCPU.With().FromSlice([]float32{1}, 1)
	ptr := alloc(t, 1)
	closed, err := loris.New(loris.WithDevice(loris.CUDA(0)))
	check(t, err)
	check(t, closed.Close(t.Context()))
	from := func(s *loris.Session, d loris.Device, ptr gcu.DevicePtr, deleter func()) error {
		_, err := cu.FromDevicePtr(s, d, ptr, shape, stream, deleter)
		return err
	}
	_, missing := cu.Context(loris.CUDA(63))
	_, _, hostErr := cu.DevicePtr(t.Context(), host, stream)
	_, _, nilErr := cu.DevicePtr(t.Context(), nil, stream)
	for _, c := range []struct {
		name      string
		err, want error
	}{
		{"the context of a device that there is not", missing, loris.ErrDevice},
		{"memory on the CPU", from(s, loris.CPU, ptr, never), loris.ErrDevice},
		{"no memory", from(s, loris.CUDA(0), 0, never), loris.ErrArg},
		{"no deleter", from(s, loris.CUDA(0), ptr, nil), loris.ErrArg},
		{"a closed session", from(closed, loris.CUDA(0), ptr, never), loris.ErrClosed},
		{"the pointer of a tensor on the CPU", hostErr, loris.ErrDevice},
		{"the pointer of no tensor", nilErr, loris.ErrArg},
		{"an event for a zero tensor", cu.Record(t.Context(), new(loris.Tensor), gcu.Event{}), loris.ErrArg},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.err, c.want)
		}
	}
	check(t, gcu.MemFree(ptr))
}
