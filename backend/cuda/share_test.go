//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

const negate = "program @p {\n %x = parameter \"x\" : f32[2]\n return neg(%x)\n}"

// borrowed returns a buffer over memory that the test allocated in a stream of its own, where the
// elements are made by work that is still ahead, and what the deleter closes.
func borrowed(t *testing.T, b *Backend, s *driver.Stream, x ...float64) (backend.Buffer, <-chan struct{}) {
	t.Helper()
	d := open(t, b, 0)
	shape := ir.MakeShape(ir.F32, len(x))
	ptr, err := d.pool.Alloc(s, int64(shape.Bytes()))
	check(t, err)
	host, err := d.ctx.NewHostMem(shape.Bytes())
	check(t, err)
	copy(host.Bytes(), elements.EncodeFloats(ir.F32, x))
	check(t, s.CopyIn(ptr, host.Bytes()))
	gone := make(chan struct{})
	buf, err := b.FromBlob(gpu(0), uintptr(ptr), shape, s.Handle(), func() {
		check(t, s.Free(ptr))
		check(t, s.Wait(t.Context()))
		check(t, host.Close())
		close(gone)
	})
	check(t, err)
	return buf, gone
}

func newStream(t *testing.T, b *Backend) *driver.Stream {
	t.Helper()
	s, err := open(t, b, 0).ctx.NewStream(0)
	check(t, err)
	return s
}

// within waits until the deleter was called.
func within(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the deleter is not called")
	}
}

// TestFromBlob has a model compute with memory of the caller's whose contents are made by work that
// is held back. The deleter waits for the model, and a donated one is not written over.
func TestFromBlob(t *testing.T) {
	f, b := newFake(t, 1)
	s := newStream(t, b)
	defer s.Close()
	m := compiled(t, b, negate)
	f.Hold()
	x, gone := borrowed(t, b, s, 1, 2)
	outs, err := m.Run(t.Context(), []backend.Buffer{x}, []bool{true})
	check(t, err)
	x.Release()
	select {
	case <-gone:
		t.Error("the deleter is called while the device has work on the memory")
	case <-time.After(10 * time.Millisecond):
	}
	f.Resume()
	within(t, gone)
	data, err := outs[0].Bytes(t.Context())
	check(t, err)
	if y := elements.DecodeFloats(ir.F32, data); y[0] != -1 || y[1] != -2 {
		t.Errorf("got %v", y)
	}
	outs[0].Release()
}

// TestFromBlobAfterClose checks that the deleter is called when the device is not in use any more.
func TestFromBlobAfterClose(t *testing.T) {
	_, b := newFake(t, 1)
	shape := ir.MakeShape(ir.F32, 1)
	d := open(t, b, 0)
	s := newStream(t, b)
	ptr, err := d.pool.Alloc(s, 4)
	check(t, err)
	gone := make(chan struct{})
	x, err := b.FromBlob(gpu(0), uintptr(ptr), shape, s.Handle(), func() { close(gone) })
	check(t, err)
	check(t, s.Free(ptr))
	check(t, s.Wait(t.Context()))
	check(t, s.Close())
	check(t, b.Close())
	x.Release()
	within(t, gone)
}

// TestDataPtr reads a result in a stream of the caller's, by work that is held back: the memory is
// freed behind it.
func TestDataPtr(t *testing.T) {
	f, b := newFake(t, 1)
	s := newStream(t, b)
	defer s.Close()
	host, err := open(t, b, 0).ctx.NewHostMem(8)
	check(t, err)
	defer host.Close()
	m := compiled(t, b, negate)
	x := floats(t, b, 1, 2)
	f.Hold()
	outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
	check(t, err)
	for range 3 { // a use may come again
		ptr, done, err := DataPtr(outs[0], s.Handle())
		check(t, err)
		check(t, s.CopyOut(host.Bytes(), driver.DevicePtr(ptr)))
		check(t, done())
		check(t, done())
	}
	outs[0].Release() // poisons the memory as soon as the stand-in frees it
	f.Resume()
	check(t, s.Wait(t.Context()))
	if y := elements.DecodeFloats(ir.F32, host.Bytes()); y[0] != -1 || y[1] != -2 {
		t.Errorf("got %v", y)
	}
}

// TestDataPtrIsNotDonated checks that memory is not written over before the use ends.
func TestDataPtrIsNotDonated(t *testing.T) {
	_, b := newFake(t, 1)
	s := newStream(t, b)
	defer s.Close()
	m := compiled(t, b, negate)
	x := floats(t, b, 1, 2)
	ptr, done, err := DataPtr(x, s.Handle())
	check(t, err)
	outs, err := m.Run(t.Context(), []backend.Buffer{x}, []bool{true})
	check(t, err)
	if at := outs[0].(*buffer).address(); uintptr(at) == ptr {
		t.Error("the result has the memory that is in use")
	}
	check(t, done())
	outs[0].Release()
}

// TestRecordEvent checks that an event of the caller's is behind the work that makes a result.
func TestRecordEvent(t *testing.T) {
	f, b := newFake(t, 1)
	e, err := open(t, b, 0).ctx.NewEvent(false)
	check(t, err)
	defer e.Close()
	m := compiled(t, b, negate)
	x := floats(t, b, 1, 2)
	f.Hold()
	outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
	check(t, err)
	check(t, RecordEvent(outs[0], e.Handle()))
	if done, err := e.Done(); done || err != nil {
		t.Errorf("the event is done before the work: %v, %v", done, err)
	}
	f.Resume()
	check(t, e.Wait(t.Context()))
	if done, err := m.Finished(); !done || err != nil {
		t.Errorf("the work is not done though the event is: %v, %v", done, err)
	}
	outs[0].Release()
}

// TestSharingErrors checks what is refused.
func TestSharingErrors(t *testing.T) {
	f, b := newFake(t, 2)
	shape := ir.MakeShape(ir.F32, 1)
	host, err := ref.New().Upload(t.Context(), shape, ref.Device, make([]byte, 4))
	check(t, err)
	defer host.Release()
	s := newStream(t, b)
	defer s.Close()
	other, err := open(t, b, 1).ctx.NewStream(0)
	check(t, err)
	defer other.Close()
	x := floats(t, b, 1)
	f.Calls()
	never := func() { t.Error("the deleter of a refused buffer is called") }
	blob := func(d ir.Device, ptr uintptr, s *driver.Stream, deleter func()) error {
		_, err := b.FromBlob(d, ptr, shape, s.Handle(), deleter)
		return err
	}
	_, _, onHost := DataPtr(host, s.Handle())
	for _, c := range []struct {
		name string
		err  error
		want error
		text string
	}{
		{"no memory", blob(gpu(0), 0, s, never), ir.ErrArg, "the address is 0"},
		{"no deleter", blob(gpu(0), 4096, s, nil), ir.ErrArg, "the deleter is nil"},
		{"another backend's device", blob(ref.Device, 4096, s, never), ir.ErrDevice, "ref"},
		{"a device that there is not", blob(gpu(7), 4096, s, never), ir.ErrDevice, "cuda:7"},
		{"a stream of another device", blob(gpu(0), 4096, other, never), nil, "cuEventRecord"},
		{"a buffer of the host", onHost, ir.ErrDevice, "ref"},
		{"an event for a buffer of the host", RecordEvent(host, 1), ir.ErrDevice, "ref"},
	} {
		if c.err == nil || c.want != nil && !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", c.name, c.err, c.want, c.text)
		}
	}
	_, done, err := DataPtr(x, s.Handle())
	check(t, err)
	f.Fail("cuEventRecord", 700, 0, false)
	if err := done(); !errors.Is(err, ErrLost) {
		t.Errorf("the end of a use on a lost device: %v", err)
	}
	if _, _, err := DataPtr(x, s.Handle()); !errors.Is(err, ErrLost) {
		t.Errorf("a pointer on a lost device: %v", err)
	}
	f.Heal()
}
