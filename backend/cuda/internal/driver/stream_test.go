//go:build cuda && linux && cgo

package driver

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
)

var background = context.Background()

func TestWaiting(t *testing.T) {
	f, c, s := setup(t)
	e := closing[*Event](t)(c.NewEvent(false))
	done := func(want bool) {
		t.Helper()
		for _, x := range []interface{ Done() (bool, error) }{e, s} {
			if got, err := x.Done(); got != want || err != nil {
				t.Errorf("%T: done is %v, %v; want %v", x, got, err, want)
			}
		}
	}
	done(true)
	check(t, e.Wait(background))
	f.Hold()
	check(t, e.Record(s))
	done(false)
	cancelled, cancel := context.WithCancel(background)
	cancel()
	deadline, stop := context.WithTimeout(background, 1)
	defer stop()
	for _, x := range []interface{ Wait(context.Context) error }{e, s} {
		if err := x.Wait(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: a cancelled wait says %v", x, err)
		}
		if err := x.Wait(deadline); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T: a wait past its time says %v", x, err)
		}
	}
	waited := make(chan error)
	go func() { waited <- e.Wait(background) }()
	f.Resume()
	check(t, <-waited)
	check(t, s.Wait(background))
	done(true)
	check(t, e.Wait(cancelled)) // what is done needs no waiting
}

// A wait whose context is cancelled meanwhile returns; the work goes on.
func TestCancelWhileWaiting(t *testing.T) {
	f, c, s := setup(t)
	e := closing[*Event](t)(c.NewEvent(false))
	f.Hold()
	check(t, e.Record(s))
	ctx, cancel := context.WithCancel(background)
	asked := 0
	err := poll(ctx, func() (bool, error) {
		if asked++; asked == 5 {
			cancel()
		}
		return e.Done()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.Resume()
	check(t, s.Wait(background))
}

func TestEventTimes(t *testing.T) {
	f, c, s := setup(t)
	a, b := closing[*Event](t)(c.NewEvent(true)), closing[*Event](t)(c.NewEvent(true))
	plain := closing[*Event](t)(c.NewEvent(false))
	if _, err := b.Since(a); !errors.Is(err, ErrInvalid) {
		t.Errorf("before it was recorded: %v", err)
	}
	for _, e := range []*Event{a, b, plain} {
		check(t, e.Record(s))
	}
	check(t, s.Wait(background))
	if d, err := b.Since(a); d < 0 || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := plain.Since(a); !errors.Is(err, ErrInvalid) {
		t.Errorf("without timing: %v", err)
	}
	if flags := after(f.Calls(), "cuEventCreate"); !reflect.DeepEqual(flags, []string{"cuEventCreate flags=0", "cuEventCreate flags=0", "cuEventCreate flags=2"}) {
		t.Error(flags)
	}
	other := closing[*Stream](t)(c.NewStream(-1))
	check(t, other.WaitEvent(b))
	wrapped := c.WrapStream(other.Handle())
	check(t, wrapped.Wait(background))
	check(t, wrapped.Close())
	check(t, other.Wait(background)) // it is still there
	if wrapped.Context() != c {
		t.Error("the context is another")
	}
}

// pool makes a pool and memory of n bytes, which is freed at the end.
func pool(t testing.TB, s *Stream, n int64) (*MemPool, DevicePtr) {
	t.Helper()
	p := closing[*MemPool](t)(s.Context().NewPool(-1))
	return p, alloc(t, p, s, n)
}

func alloc(t testing.TB, p *MemPool, s *Stream, n int64) DevicePtr {
	t.Helper()
	ptr := must[DevicePtr](t)(p.Alloc(s, n))
	t.Cleanup(func() {
		check(t, s.Free(ptr))
		check(t, s.Wait(background))
	})
	return ptr
}

func TestCopies(t *testing.T) {
	f, c, s := setup(t)
	p, x := pool(t, s, 64)
	y := alloc(t, p, s, 64)
	host := closing[*HostMem](t)(c.NewHostMem(64))
	for i := range host.Bytes() {
		host.Bytes()[i] = byte(i)
	}
	// Pinned memory is read in its turn, not before.
	f.Hold()
	check(t, s.CopyIn(x, host.Bytes()[:32]))
	host.Bytes()[0] = 99
	f.Resume()
	check(t, s.CopyIn(x+32, []byte(strings.Repeat("z", 32)))) // Go's memory, at once
	check(t, s.Copy(y, x, 64))
	got := make([]byte, 64)
	check(t, s.CopyOut(got, y))
	if got[0] != 99 || got[1] != 1 || got[31] != 31 || got[32] != 'z' || got[63] != 'z' {
		t.Errorf("copied %v", got)
	}
	for _, c := range []struct {
		elem int
		v    uint32
		want []byte
	}{
		{1, 0x05, []byte{5, 5, 5, 5}}, {2, 0x0102, []byte{2, 1, 2, 1}}, {4, 0x01020304, []byte{4, 3, 2, 1}},
	} {
		check(t, s.Set(x, c.v, c.elem, int64(8/c.elem)))
		check(t, s.CopyOut(host.Bytes()[:10], x))
		check(t, s.Wait(background))
		if !bytes.Equal(host.Bytes()[:4], c.want) || !bytes.Equal(host.Bytes()[4:8], c.want) || host.Bytes()[9] != 9 && host.Bytes()[9] != got[9] {
			t.Errorf("set %d bytes to %#x: %v", c.elem, c.v, host.Bytes()[:10])
		}
	}
	if err := s.Set(x, 0, 3, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("elements of 3 bytes: %v", err)
	}
	f.Calls()
	check(t, errors.Join(s.CopyIn(x, nil), s.CopyOut(nil, x), s.Copy(x, y, 0), s.Set(x, 1, 4, 0), s.Free(0),
		s.CopyPeer(x, c, y, c, 0)))
	if calls := f.Calls(); len(calls) != 0 {
		t.Errorf("nothing was to be done: %v", calls)
	}
}

func TestCopyBetweenDevices(t *testing.T) {
	f, d := start(t, 2)
	c0, c1 := retain(t, d, 0), retain(t, d, 1)
	s0, s1 := closing[*Stream](t)(c0.NewStream(0)), closing[*Stream](t)(c1.NewStream(0))
	p0, x0 := pool(t, s0, 16)
	_, x1 := pool(t, s1, 16)
	check(t, p0.AllowPeer(c1.Device()))
	check(t, s0.CopyIn(x0, []byte("sixteen bytes ..")))
	ready := closing[*Event](t)(c0.NewEvent(false))
	check(t, ready.Record(s0))
	check(t, s1.WaitEvent(ready))
	check(t, s1.CopyPeer(x1, c1, x0, c0, 16))
	got := make([]byte, 16)
	check(t, s1.CopyOut(got, x1))
	if string(got) != "sixteen bytes .." {
		t.Errorf("got %q", got)
	}
	if err := ready.Record(s1); !errors.Is(err, ErrInvalid) {
		t.Errorf("an event in a stream of another device: %v", err)
	}
	if a := after(f.Calls(), "cuMemPoolSetAccess"); !reflect.DeepEqual(a, []string{"cuMemPoolSetAccess device=1 flags=3"}) {
		t.Error(a)
	}
}

func TestCopyBeyondMemory(t *testing.T) {
	_, d := start(t, 1)
	c := must[*Context](t)(must[*Device](t)(d.Device(0)).Retain())
	s := must[*Stream](t)(c.NewStream(0))
	p := must[*MemPool](t)(c.NewPool(0))
	x := must[DevicePtr](t)(p.Alloc(s, 16))
	y := must[DevicePtr](t)(p.Alloc(s, 16))
	check(t, s.Free(y))
	check(t, s.Free(x))
	check(t, s.Wait(background))
	if err := s.CopyIn(x, make([]byte, 16)); !errors.Is(err, ErrIllegalAddress) || !IsLost(err) {
		t.Errorf("memory that is freed: %v", err)
	}
	for _, x := range []interface{ Close() error }{p, s} {
		if err := x.Close(); !IsLost(err) {
			t.Errorf("closing %T says %v", x, err)
		}
	}
	check(t, c.Close())
}

func TestOutOfMemory(t *testing.T) {
	f, c, s := setup(t)
	f.Set("memory", 10<<20)
	p := closing[*MemPool](t)(c.NewPool(-1))
	a := must[DevicePtr](t)(p.Alloc(s, 4<<20))
	b := must[DevicePtr](t)(p.Alloc(s, 3<<20))
	check(t, s.Free(b))
	check(t, s.Wait(background))
	if st, err := p.Stats(); st != (PoolStats{4 << 20, 7 << 20, 7 << 20}) || err != nil {
		t.Errorf("%+v, %v", st, err)
	}
	other := closing[*MemPool](t)(c.NewPool(1 << 20))
	_, err := other.Alloc(s, 5<<20)
	var full *MemoryError
	if !errors.Is(err, ErrOutOfMemory) || !errors.As(err, &full) {
		t.Fatalf("got %v", err)
	}
	const want = "cuda:0: out of memory: 5.0 MiB wanted; the pool has 0 bytes in use and 0 bytes reserved, the device 3.0 MiB of 10.0 MiB free"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	check(t, p.Trim(0)) // gives back what b had
	x, err := other.Alloc(s, 5<<20)
	check(t, err)
	check(t, errors.Join(s.Free(a), s.Free(x), s.Wait(background)))
	if got := after(f.Calls(), "cuMemPoolSetAttribute"); !reflect.DeepEqual(got, []string{
		"cuMemPoolSetAttribute 4=18446744073709551615", "cuMemPoolSetAttribute 4=1048576"}) {
		t.Error(got)
	}
	if x, err := p.Alloc(s, 0); x != 0 || err != nil {
		t.Errorf("no bytes are at %#x, %v", x, err)
	}
	if _, err := p.Alloc(s, -1); !errors.Is(err, ErrInvalid) {
		t.Errorf("-1 bytes: %v", err)
	}
	for _, n := range []int{0, -1} {
		if _, err := c.NewHostMem(n); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d bytes of pinned memory: %v", n, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB", 3 << 30: "3.0 GiB", 1 << 60: "1048576.0 TiB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// capture captures the launch of fill_u32 for a value and copies more.
func capture(t *testing.T, s *Stream, fill *Function, x DevicePtr, v uint64, copies int) *Graph {
	t.Helper()
	check(t, s.BeginCapture())
	check(t, fill.Launch(s, Launch{}, []uint64{uint64(x), v, 2}))
	for range copies {
		check(t, s.Copy(x+8, x, 8))
	}
	return closing[*Graph](t)(s.EndCapture())
}

func TestGraphs(t *testing.T) {
	f, c, s := setup(t)
	_, x := pool(t, s, 16)
	m := closing[*Module](t)(c.LoadModule(fakecuda.Cubin(90, "kernel fill_u32 3")))
	fill := must[*Function](t)(m.Function("fill_u32"))
	check(t, s.Set(x, 0, 1, 16))
	memory := func() []byte {
		t.Helper()
		got := make([]byte, 16)
		check(t, s.CopyOut(got, x))
		return got
	}
	g := capture(t, s, fill, x, 1, 1)
	if got := memory(); !bytes.Equal(got, make([]byte, 16)) {
		t.Errorf("capturing did the work: %v", got)
	}
	if n, err := g.Nodes(); n != 2 || err != nil {
		t.Errorf("%d nodes, %v", n, err)
	}
	exec := closing[*GraphExec](t)(g.Instantiate())
	check(t, exec.Launch(s))
	if got := memory(); got[0] != 1 || got[4] != 1 || got[8] != 1 || got[12] != 1 {
		t.Errorf("after a launch: %v", got)
	}
	if n := len(after(f.Calls(), "cuGraphLaunch")); n != 1 {
		t.Errorf("%d launches", n)
	}
}

// TestGraphNodes makes a graph of kernels and captured work, and replaces pieces.
func TestGraphNodes(t *testing.T) {
	_, c, s := setup(t)
	_, x := pool(t, s, 32)
	m := closing[*Module](t)(c.LoadModule(fakecuda.Cubin(90, "kernel fill_u32 3")))
	fill := must[*Function](t)(m.Function("fill_u32"))
	check(t, s.Set(x, 0, 1, 32))
	params := func(at DevicePtr, v uint64) []uint64 { return []uint64{uint64(at), v, 2} }
	g := closing[*Graph](t)(c.NewGraph())
	first := must[Node](t)(g.AddKernel(Node{}, fill, Launch{}, params(x, 1)))
	child := must[Node](t)(g.AddChild(first, capture(t, s, fill, x+16, 2, 1)))
	last := must[Node](t)(g.AddKernel(child, fill, Launch{}, params(x+8, 3)))
	exec := closing[*GraphExec](t)(g.Instantiate())
	expect := func(what string, want ...uint32) {
		t.Helper()
		check(t, exec.Launch(s))
		if got := numbers(t, s, x, 8); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("as it was made", 1, 1, 3, 3, 2, 2, 2, 2)
	check(t, exec.SetKernel(last, fill, Launch{}, params(x+8, 4)))
	expect("with another parameter", 1, 1, 4, 4, 2, 2, 2, 2)
	check(t, exec.SetKernel(first, fill, Launch{}, params(x+8, 9)))
	check(t, exec.SetChild(child, capture(t, s, fill, x, 7, 1)))
	expect("with other places", 7, 7, 4, 4, 2, 2, 2, 2)
	if err := exec.SetChild(child, capture(t, s, fill, x, 8, 2)); !errors.Is(err, ErrGraphChanged) {
		t.Errorf("another structure: %v", err)
	}
	for _, l := range []Launch{{Block: Dim{X: 2048}}, {Cooperative: true}, {Cluster: Dim{X: 2}}} {
		if err := exec.SetKernel(first, fill, l, params(x, 1)); !errors.Is(err, ErrInvalid) {
			t.Errorf("a launch of %v: %v", l, err)
		}
		if _, err := g.AddKernel(last, fill, l, params(x, 1)); !errors.Is(err, ErrInvalid) {
			t.Errorf("a launch of %v in a graph: %v", l, err)
		}
	}
	expect("after what was refused", 7, 7, 4, 4, 2, 2, 2, 2)
}

func TestCapture(t *testing.T) {
	f, c, s := setup(t)
	p, x := pool(t, s, 16)
	if yes, err := s.Capturing(); yes || err != nil {
		t.Errorf("capturing: %v, %v", yes, err)
	}
	if _, err := s.EndCapture(); err == nil || !strings.Contains(err.Error(), "cuStreamEndCapture: error 903") {
		t.Errorf("the end of none: %v", err)
	}
	check(t, s.BeginCapture())
	if yes, err := s.Capturing(); !yes || err != nil {
		t.Errorf("capturing: %v, %v", yes, err)
	}
	// A second stream joins in by an event and is joined by another.
	other := closing[*Stream](t)(c.NewStream(0))
	fork, join := closing[*Event](t)(c.NewEvent(false)), closing[*Event](t)(c.NewEvent(false))
	check(t, errors.Join(fork.Record(s), other.WaitEvent(fork), other.Set(x, 9, 1, 16), join.Record(other), s.WaitEvent(join)))
	for _, err := range []error{s.Wait(background), s.CopyIn(x, []byte("memory of Go"))} {
		if !errors.Is(err, ErrNotSupported) {
			t.Errorf("in a capture: %v", err)
		}
	}
	if _, err := p.Alloc(s, 16); !errors.Is(err, ErrNotSupported) {
		t.Errorf("memory in a capture: %v", err)
	}
	g := closing[*Graph](t)(s.EndCapture())
	if n, err := g.Nodes(); n != 1 || err != nil {
		t.Errorf("%d nodes, %v", n, err)
	}
	if yes, err := other.Capturing(); yes || err != nil {
		t.Errorf("the other stream is capturing: %v, %v", yes, err)
	}
	if got := after(f.Calls(), "cuStreamBeginCapture_v2"); !reflect.DeepEqual(got, []string{"cuStreamBeginCapture_v2 mode=2"}) {
		t.Error(got)
	}
}
