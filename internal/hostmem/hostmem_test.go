package hostmem

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

var (
	_   backend.Buffer = (*Buffer)(nil)
	dev                = ir.Device{Type: 1, Index: 2}
)

func TestClasses(t *testing.T) {
	prev := 0
	for c := range 150 {
		size := classSize(c)
		if size <= prev || size%Align != 0 {
			t.Fatalf("class %d has %d bytes after %d", c, size, prev)
		}
		for _, n := range []int{prev + 1, size - 1, size} {
			if got := classOf(n); got != c {
				t.Errorf("classOf(%d) = %d, want %d", n, got, c)
			}
		}
		if prev >= 4*Align && (size-prev)*4 > prev {
			t.Errorf("class %d wastes up to %d of %d bytes", c, size-prev, size)
		}
		prev = size
	}
	if c := classOf(1<<62 - 1); c >= numClasses {
		t.Errorf("the largest class is %d", c)
	}
}

func TestBufferAlignmentAndReuse(t *testing.T) {
	a := NewAllocator()
	for _, n := range []int{1, 3, 16, 100, 5000, 1 << 20} {
		s := ir.MakeShape(ir.F32, n)
		b := must(a.New(s, dev))
		p := unsafe.SliceData(b.Data())
		if uintptr(unsafe.Pointer(p))%Align != 0 {
			t.Errorf("%v is at %p", s, p)
		}
		if len(b.Data()) != 4*n || len(Slice[float32](b)) != n {
			t.Errorf("%v has %d bytes", s, len(b.Data()))
		}
		b.Release()
		again := must(a.New(s, dev))
		if unsafe.SliceData(again.Data()) != p {
			t.Errorf("the storage of %v is not reused", s)
		}
		again.Release()
	}
}

func TestAccounting(t *testing.T) {
	a := NewAllocator()
	x := must(a.New(ir.MakeShape(ir.F32, 10), dev))
	y := must(a.NewZeroed(ir.MakeShape(ir.F64, 3), dev))
	z := must(a.New(ir.MakeShape(ir.F64, 0), dev))
	other := must(a.New(ir.MakeShape(ir.U8, 7), ir.Device{Type: 1}))
	if got := a.BytesInUse(dev); got != 64 {
		t.Errorf("in use %d bytes, want 64", got)
	}
	v := x.View(ir.MakeShape(ir.I16, 4, 5))
	x.Release()
	if got := a.BytesInUse(dev); got != 64 {
		t.Errorf("in use %d bytes with a view left, want 64", got)
	}
	for _, b := range []*Buffer{y, z, v, other} {
		b.Release()
	}
	if got := a.BytesInUse(dev) + a.BytesInUse(ir.Device{}); got != 0 {
		t.Errorf("in use %d bytes at the end", got)
	}
	if a.PooledBytes() == 0 {
		t.Error("nothing is pooled")
	}
	a.Trim()
	if got := a.PooledBytes(); got != 0 {
		t.Errorf("%d bytes are pooled after Trim", got)
	}
}

func TestPoolLimit(t *testing.T) {
	a := NewAllocator()
	a.SetPoolLimit(1 << 16)
	small, big := ir.MakeShape(ir.U8, 1<<15), ir.MakeShape(ir.U8, 1<<16)
	x, y, z := must(a.New(small, dev)), must(a.New(small, dev)), must(a.New(big, dev))
	x.Release()
	y.Release()
	if got := a.PooledBytes(); got != 1<<16 {
		t.Errorf("%d bytes are pooled, want %d", got, 1<<16)
	}
	z.Release() // the other classes make room
	if got := a.PooledBytes(); got != 1<<16 || len(a.free[classOf(1<<16)]) != 1 {
		t.Errorf("%d bytes are pooled, want one block of %d", got, 1<<16)
	}
	huge := must(a.New(ir.MakeShape(ir.U8, 1<<17), dev))
	huge.Release()
	if got := a.PooledBytes(); got != 1<<16 {
		t.Errorf("%d bytes are pooled after a block over the limit", got)
	}
	a.SetPoolLimit(0)
	if got := a.PooledBytes(); got != 0 {
		t.Errorf("%d bytes are pooled with limit 0", got)
	}
}

func TestMisusePanics(t *testing.T) {
	a := NewAllocator()
	released := func() *Buffer {
		b := must(a.New(ir.MakeShape(ir.F32, 4), dev))
		b.Release()
		return b
	}
	live := must(a.New(ir.MakeShape(ir.F32, 4), dev))
	defer live.Release()
	for name, c := range map[string]struct {
		f    func()
		want string
	}{
		"data":          {func() { released().Data() }, "used after its last Release"},
		"retain":        {func() { released().Retain() }, "retained after its last Release"},
		"release twice": {func() { released().Release() }, "released again after its last Release"},
		"wrong element": {func() { Slice[float64](live) }, "are not float64"},
		"misaligned":    {func() { View[float32](live.Data()[1:5]) }, "not a slice of float32"},
		"odd size":      {func() { View[float32](live.Data()[:5]) }, "not a slice of float32"},
		"view":          {func() { live.View(ir.MakeShape(ir.F32, 5)) }, "the sizes differ"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), c.want) {
					t.Errorf("panic %v, want %q", r, c.want)
				}
			}()
			c.f()
		})
	}
	if got := a.BytesInUse(dev); got != 16 {
		t.Errorf("in use %d bytes after misuse, want 16", got)
	}
}

func TestFromBytes(t *testing.T) {
	a := NewAllocator()
	s := ir.MakeShape(ir.I16, 2)
	b, err := a.FromBytes(s, dev, []byte{1, 0, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := Slice[int16](b); got[0] != 1 || got[1] != 256 {
		t.Errorf("got %v", got)
	}
	if !b.Unique() {
		t.Error("a new buffer is not unique")
	}
	b.Retain()
	if b.Unique() {
		t.Error("a shared buffer is unique")
	}
	b.Release()
	b.Release()
	if _, err := a.FromBytes(s, dev, make([]byte, 3)); err == nil {
		t.Error("3 bytes are taken for i16[2]")
	}
}

func TestDroppedBufferGivesItsAccountBack(t *testing.T) {
	a := NewAllocator()
	must(a.New(ir.MakeShape(ir.F32, 1000), dev))
	for range 1000 {
		runtime.GC()
		if a.BytesInUse(dev) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d bytes are in use after the collection", a.BytesInUse(dev))
}

func TestLeaks(t *testing.T) {
	a := NewAllocator()
	before := must(a.New(ir.MakeShape(ir.F32, 2), dev))
	leaks, stop := Track()
	defer stop()
	x := must(a.New(ir.MakeShape(ir.F32, 3), dev))
	y := must(a.New(ir.MakeShape(ir.F32, 4), dev))
	x.Release()
	l := leaks()
	if len(l) != 1 || l[0].Shape != y.Shape() || !strings.Contains(l[0].Stack, "TestLeaks") {
		t.Errorf("leaks %v, want one of %v", l, y.Shape())
	}
	y.Release()
	before.Release()
	if l := leaks(); len(l) != 0 {
		t.Errorf("leaks %v at the end", l)
	}
}

type fakeT struct {
	cleanup func()
	errors  []string
}

func (f *fakeT) Helper()           {}
func (f *fakeT) Cleanup(fn func()) { f.cleanup = fn }
func (f *fakeT) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func TestCheckLeaks(t *testing.T) {
	a := NewAllocator()
	var f fakeT
	CheckLeaks(&f)
	b := must(a.New(ir.MakeShape(ir.F32, 3), dev))
	f.cleanup()
	b.Release()
	if len(f.errors) != 1 || !strings.Contains(f.errors[0], "f32[3] is not released") {
		t.Errorf("errors %q", f.errors)
	}
}

func TestConcurrentUse(t *testing.T) {
	a := NewAllocator()
	a.SetPoolLimit(1 << 14)
	shared := must(a.New(ir.MakeShape(ir.U8, 100), dev))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				b := must(a.New(ir.MakeShape(ir.U8, 1+(i*37+g)%5000), dev))
				d := b.Data()
				for j := range d {
					d[j] = byte(g)
				}
				shared.Retain()
				for j := range d {
					if d[j] != byte(g) {
						t.Errorf("byte %d is %d: storage is shared", j, d[j])
						return
					}
				}
				shared.Release()
				b.Release()
			}
		})
	}
	wg.Wait()
	shared.Release()
	if got := a.BytesInUse(dev); got != 0 {
		t.Errorf("in use %d bytes at the end", got)
	}
}

func BenchmarkNewRelease(b *testing.B) {
	a := NewAllocator()
	s := ir.MakeShape(ir.F32, 1024)
	b.ReportAllocs()
	for b.Loop() {
		must(a.New(s, dev)).Release()
	}
}

// TestWrapCollected wraps memory that needs no release: it is not the buffer's to give away or to write
// over, and releasing many costs each nothing of the others.
func TestWrapCollected(t *testing.T) {
	s, dev := ir.MakeShape(ir.F32, 2), ir.Device{}
	for range 3 {
		b, err := Wrap(s, dev, make([]byte, 8), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b.Unique() {
			t.Error("memory of somebody else counts as the buffer's own")
		}
		b.Retain()
		b.Release()
		if data, err := b.Bytes(t.Context()); len(data) != 8 || err != nil {
			t.Errorf("%d bytes, %v", len(data), err)
		}
		b.Release()
	}
}

func TestWrap(t *testing.T) {
	s := ir.MakeShape(ir.F32, 4)
	if _, err := Wrap(s, dev, make([]byte, 15), func() { t.Error("released") }); !errors.Is(err, ir.ErrShape) {
		t.Fatalf("15 bytes for %v: %v", s, err)
	}
	freed := 0
	mem := make([]byte, 16)
	b, err := Wrap(s, dev, mem, func() { freed++ })
	if err != nil {
		t.Fatal(err)
	}
	if &b.Data()[0] != &mem[0] || b.Unique() {
		t.Error("the wrapped memory is copied, or may be overwritten")
	}
	v := b.View(ir.MakeShape(ir.F32, 2, 2))
	b.Release()
	if freed != 0 {
		t.Error("released while a view is alive")
	}
	v.Release()
	if freed != 1 {
		t.Errorf("released %d times", freed)
	}
}

func TestWrapDropped(t *testing.T) {
	freed := make(chan struct{})
	if _, err := Wrap(ir.MakeShape(ir.U8, 1<<16), dev, make([]byte, 1<<16), func() { close(freed) }); err != nil {
		t.Fatal(err)
	}
	for {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// must returns the buffer of an allocation that cannot fail.
func must[B any](b B, err error) B {
	if err != nil {
		panic(err)
	}
	return b
}

// TestNumber checks that a number's buffer is aligned, has the element, and is neither counted nor unique.
func TestNumber(t *testing.T) {
	CheckLeaks(t)
	for _, d := range []ir.DType{ir.U8, ir.F16, ir.F32, ir.I64} {
		data := []byte{1, 2, 3, 4, 5, 6, 7, 8}[:d.Size()]
		b, err := Number(ir.MakeShape(d), dev, data)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Data(); string(got) != string(data) || misaligned(got) != 0 || b.Unique() {
			t.Errorf("%v: %v, misaligned by %d, unique: %v", d, got, misaligned(got), b.Unique())
		}
		b.Release()
	}
	if _, err := Number(ir.MakeShape(ir.F32), dev, make([]byte, 8)); !errors.Is(err, ir.ErrShape) {
		t.Errorf("8 bytes of a f32 are error %v", err)
	}
}
