//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
)

const addSource = `
extern "C" __global__ void add(unsigned* to, const unsigned* a, const unsigned* b, unsigned n) {
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) to[i] = a[i] + b[i];
}
extern "C" __global__ void traps(unsigned* to) { __trap(); }
`

// loadKernel loads a kernel of addSource.
func loadKernel(t testing.TB, d *device, name string) *driver.Function {
	t.Helper()
	c, err := d.compiler()
	check(t, err)
	cubin, _, err := c.Compile(addSource, "add.cu", d.props.Arch(), nil)
	check(t, err)
	m, err := d.ctx.LoadModule(cubin)
	check(t, err)
	d.atClose(m.Close)
	f, err := m.Function(name)
	check(t, err)
	return f
}

func words(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// sum enqueues the sum of two buffers in a stream of its own, as a model would,
// into a new buffer, or over a.
func sum(ctx context.Context, d *device, add *driver.Function, a, b *buffer, inPlace bool) (*buffer, error) {
	s, err := d.stream()
	if err != nil {
		return nil, err
	}
	defer d.putStream(s)
	out := a
	if inPlace {
		err = a.mem.waitIdle(s)
		a.Retain()
	} else {
		var m *memory
		if m, err = d.alloc(ctx, s, a.shape.Bytes()); err == nil {
			out = newBuffer(a.shape, m, 0)
		}
	}
	if err != nil {
		return nil, d.check(err)
	}
	n := uint64(a.shape.Numel())
	err = errors.Join(a.waitReady(s), b.waitReady(s),
		add.Launch(s, driver.Launch{Block: driver.Dim{X: 64}}, []uint64{uint64(out.address()), uint64(a.address()), uint64(b.address()), n}))
	if err != nil {
		return nil, d.check(err)
	}
	at, err := d.record(s)
	if err != nil {
		return nil, err
	}
	defer at.release()
	if !inPlace {
		a.mem.use(at)
	}
	b.mem.use(at)
	out.mem.markReady(at)
	return out, nil
}

// Whatever order the streams' work is done in, buffers have their contents when
// they are read and memory serves again only when it is not used any more.
func TestOrderOfStreams(t *testing.T) {
	seeds := 6
	if !longtest.Enabled() {
		seeds = 3
	}
	for seed := range seeds {
		f, b := newFake(t, 1)
		f.Set("shuffle", 1+seed)
		d := open(t, b, 0)
		add := loadKernel(t, d, "add")
		s := ir.MakeShape(ir.I32, 3)
		var wg sync.WaitGroup
		for g := range uint32(3) {
			wg.Go(func() {
				x, err := b.Upload(t.Context(), s, gpu(0), words(1, 2, g))
				check(t, err)
				acc := x.(*buffer)
				var seen []backend.Buffer // acc, before it is written over
				var was [][]byte
				first := uint32(1)
				var held *driver.Stream
				other := func() { // makes what follows use another stream than the last
					s, err := d.stream()
					check(t, err)
					if held != nil {
						d.putStream(held)
					}
					held = s
				}
				for step := range uint32(10) {
					y, err := b.Upload(t.Context(), s, gpu(0), words(step, 1, 0))
					check(t, err)
					over := step%3 == 1
					if over {
						snap, err := b.Copy(t.Context(), acc, gpu(0))
						check(t, err)
						other()
						seen, was = append(seen, snap), append(was, words(first, 2+step, g))
					}
					next, err := sum(t.Context(), d, add, acc, y.(*buffer), over)
					check(t, err)
					other()
					copied, err := b.Copy(t.Context(), next, gpu(0))
					check(t, err)
					other()
					for _, gone := range []*buffer{acc, y.(*buffer), next} {
						gone.Release()
					}
					acc = copied.(*buffer)
					first += step
				}
				for i, snap := range seen {
					if got, err := snap.Bytes(t.Context()); err != nil || string(got) != string(was[i]) {
						t.Errorf("seed %d: snapshot %d is %v, %v, want %v", seed, i, got, err, was[i])
					}
					snap.Release()
				}
				got, err := acc.Bytes(t.Context())
				if want := words(46, 12, g); err != nil || string(got) != string(want) {
					t.Errorf("seed %d: got %v, %v, want %v", seed, got, err, want)
				}
				acc.Release()
			})
		}
		wg.Wait()
		if n := b.BytesInUse(gpu(0)); n != 0 {
			t.Errorf("%d bytes in use", n)
		}
	}
}

func TestMemoryStats(t *testing.T) {
	_, b := newFake(t, 2)
	if st, ok := b.MemoryStats(gpu(0)); ok {
		t.Errorf("of a device that is not in use: %+v", st)
	}
	one, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, 1000), gpu(0), make([]byte, 1000))
	check(t, err)
	two, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, 500), gpu(0), make([]byte, 500))
	check(t, err)
	two.Release()
	st, ok := b.MemoryStats(gpu(0))
	want := backend.MemoryStats{InUse: 1000, Peak: 1500, Reserved: 1500, Pinned: st.Pinned, Free: 1<<30 - 1500, Total: 1 << 30}
	if !ok || st != want || st.Pinned < smallBytes {
		t.Errorf("got %+v, want %+v", st, want)
	}
	one.Release()
}

// What is dropped without Release is found, and so is what others can do without.
func TestShortage(t *testing.T) {
	f, b := newFake(t, 1)
	const total, piece = 1 << 20, 100 << 10
	f.Set("memory", total)
	s := ir.MakeShape(ir.U8, piece)
	var kept []backend.Buffer
	cancel := b.OnMemoryPressure(func(d ir.Device) {
		for _, k := range kept {
			k.Release()
		}
		kept = nil
	})
	for range 50 { // five times the memory
		if _, err := b.Upload(t.Context(), s, gpu(0), make([]byte, piece)); err != nil {
			t.Fatal(err)
		}
	}
	for b.BytesInUse(gpu(0)) > 0 {
		check(t, open(t, b, 0).collect(t.Context()))
	}
	for range 9 {
		buf, err := b.Upload(t.Context(), s, gpu(0), make([]byte, piece))
		check(t, err)
		kept = append(kept, buf)
	}
	held, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, 3*piece), gpu(0), make([]byte, 3*piece))
	check(t, err)
	if kept != nil {
		t.Error("nobody was asked to release memory")
	}
	cancel()
	big := ir.MakeShape(ir.U8, total-3*piece+1)
	_, err = b.Upload(t.Context(), big, gpu(0), make([]byte, big.Bytes()))
	var e *OutOfMemory
	if !errors.As(err, &e) || !errors.Is(err, ErrOutOfMemory) {
		t.Fatalf("got %v", err)
	}
	want := OutOfMemory{Device: gpu(0), Wanted: int64(big.Bytes()), InUse: 3 * piece, Allocations: 1, Largest: 3 * piece, Reserved: 3 * piece, Free: total - 3*piece, Total: total, Err: e.Err}
	if *e != want {
		t.Errorf("got  %+v\nwant %+v", *e, want)
	}
	for _, text := range []string{"cuda:0: out of memory: 724 KiB wanted", "300 KiB in use by 1 buffers", "of 1.0 MiB free"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in %q", text, err)
		}
	}
	held.Release()
	buf, err := b.Upload(t.Context(), big, gpu(0), make([]byte, big.Bytes()))
	check(t, err)
	buf.Release()
}

// Waiting for memory ends with the context.
func TestShortageCancelled(t *testing.T) {
	f, b := newFake(t, 1)
	const total = 1 << 20
	f.Set("memory", total)
	s := ir.MakeShape(ir.U8, total)
	buf, err := b.Upload(t.Context(), s, gpu(0), make([]byte, total))
	check(t, err)
	_, err = buf.Bytes(t.Context())
	check(t, err)
	f.Hold()
	buf.Release() // which the stream does not come to
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := b.Upload(ctx, s, gpu(0), make([]byte, total))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.Resume()
	buf, err = b.Upload(t.Context(), s, gpu(0), make([]byte, total))
	check(t, err)
	buf.Release()
}

// Long before memory is exhausted garbage is looked for.
func TestNudge(t *testing.T) {
	f, b := newFake(t, 1)
	f.Set("memory", 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var bufs []backend.Buffer
	for range 15 {
		buf, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, 1<<16), gpu(0), make([]byte, 1<<16))
		check(t, err)
		bufs = append(bufs, buf)
	}
	for after.NumGC == before.NumGC { // it runs in the background
		runtime.Gosched()
		runtime.ReadMemStats(&after)
	}
	for _, buf := range bufs {
		buf.Release()
	}
}

func TestCopyBetweenDevices(t *testing.T) {
	for _, c := range []struct {
		peers  int
		direct string
	}{{1, "cuMemcpyPeerAsync"}, {0, "cuMemcpyDtoHAsync_v2"}} {
		t.Run(fmt.Sprint("peers ", c.peers), func(t *testing.T) {
			f, b := newFake(t, 2)
			f.Set("peers", c.peers)
			f.Set("shuffle", 7)
			for _, n := range []int{0, 5, 2*chunkBytes + 3} {
				want := pattern(n, 1)
				src, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, n), gpu(0), want)
				check(t, err)
				f.Calls()
				dst, err := b.Copy(t.Context(), src, gpu(1))
				check(t, err)
				src.Release()
				if calls := strings.Join(f.Calls(), "\n"); n > 0 && !strings.Contains(calls, c.direct) {
					t.Errorf("no %s in\n%s", c.direct, calls)
				}
				if got, err := dst.Bytes(t.Context()); err != nil || string(got) != string(want) || dst.Device() != gpu(1) {
					t.Errorf("%d bytes on %v differ, or %v", n, dst.Device(), err)
				}
				dst.Release()
			}
			for i := range 2 {
				if n := b.BytesInUse(gpu(i)); n != 0 {
					t.Errorf("%d bytes in use on %v", n, gpu(i))
				}
			}
		})
	}
}

// TestWorkspaces checks that models keep their workspaces between runs, as far as
// there is room, and lose them when memory is short.
func TestWorkspaces(t *testing.T) {
	f, b := newFake(t, 1)
	f.Set("memory", 1<<20) // of which a sixteenth may be kept
	text := `program @big {
		%x = parameter "x" : f32[4096]
		return cumsum(cumsum(%x, dim=0), dim=0)
	}`
	x := uploaded(t, b, ir.MakeShape(ir.F32, 4096), make([]byte, 1<<14))
	var kept int64
	for i := range 6 {
		m := compiled(t, b, strings.Replace(text, "big", fmt.Sprint("big", i), 1))
		for range 2 {
			outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
			check(t, err)
			outs[0].Release()
		}
		kept += int64(m.seq.Workspace)
		if (m.work != nil) != (kept <= 1<<16) {
			t.Errorf("model %d keeps its workspace: %v", i, m.work != nil)
		}
	}
	// All but what is kept can be had, and then that, too.
	before := b.BytesInUse(gpu(0))
	const rest = 1<<20 - 1<<15
	big, err := b.Upload(t.Context(), ir.MakeShape(ir.U8, rest), gpu(0), make([]byte, rest))
	check(t, err)
	if now := b.BytesInUse(gpu(0)) - rest; now > before-1<<15 {
		t.Errorf("%d bytes are in use beside the new ones, were %d", now, before)
	}
	big.Release()
}
