//go:build linux

package native

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// guarded is a page of memory between two that can't be touched.
type guarded struct{ page []byte }

func newGuarded(t *testing.T) *guarded {
	size := unix.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 3*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	for _, edge := range [][]byte{mem[:size], mem[2*size:]} {
		if err := unix.Mprotect(edge, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return &guarded{mem[size : 2*size]}
}

// TestNothingOutsideIsTouched runs kernels on operands that begin or end where
// memory does. A fault ends the process, so the runs are in another one.
func TestNothingOutsideIsTouched(t *testing.T) {
	const env = "LORIS_NATIVE_GUARD"
	if os.Getenv(env) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNothingOutsideIsTouched$")
		cmd.Env = append(os.Environ(), env+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.4000s", err, out)
		}
		return
	}
	for _, isa := range Available() {
		for _, d := range looptest.Stored {
			for _, k := range guardKernels(d) {
				c, err := Compile(k, isa)
				if errors.Is(err, ErrUnsupported) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, cols := range lengths() {
					runGuarded(t, k, c, cols, false)
					runGuarded(t, k, c, cols, true)
				}
			}
		}
	}
}

func guardKernels(d ir.DType) (ks []*loop.Kernel) {
	compute := loop.ComputeDType(d)
	for _, in := range []loop.Stride{loop.Unit, loop.Free, loop.Fixed} {
		for _, out := range []loop.Stride{loop.Unit, loop.Free} {
			b := looptest.New(loop.None)
			x := b.Load(b.Arg(d, in, false))
			y := b.Load(b.Arg(d, loop.Unit, false))
			b.Store(b.Arg(d, out, true), b.Op(aten.Maximum, x, y))
			ks = append(ks, &b.Kernel)
		}
	}
	if d == ir.F32 || d == ir.F64 {
		k := centred(loop.Columns, d)
		k.Args[0].Ahead, k.Args[2].Ahead = true, true
		ks = append(ks, k)
	}
	for _, axis := range axes {
		b := looptest.New(axis)
		v := b.Reduce(aten.Amax, compute, b.Load(b.Arg(d, loop.Unit, false)))
		b.Final(b.StoreOf(b.Arg(d, loop.Unit, true), v))
		ks = append(ks, &b.Kernel)
	}
	return ks
}

var guards struct {
	pages [loop.MaxArgs]*guarded
}

func runGuarded(t *testing.T, k *loop.Kernel, c *Code, cols int, atEnd bool) {
	f := loop.Frame{Rows: 2, Cols: cols, Spill: looptest.Aligned(c.SpillBytes())}
	for i, a := range k.Args {
		if guards.pages[i] == nil {
			guards.pages[i] = newGuarded(t)
		}
		size := a.DType.Size()
		col := size
		switch {
		case a.Cols == loop.Fixed:
			col = 0
		case a.Cols == loop.Free:
			col = 3 * size
		}
		row := max(col*(cols-1)+size, size)
		f.Row[i], f.Col[i] = row, col
		at := 0
		if atEnd {
			at = len(guards.pages[i].page) - 2*row
		}
		f.Ptr[i] = unsafe.Pointer(&guards.pages[i].page[at])
	}
	c.Run(&f)
}

// TestCollections lets the collector work while goroutines are in native code.
func TestCollections(t *testing.T) {
	if len(Available()) == 0 {
		t.Skip("there is no native code here")
	}
	c, err := Compile(softmax(), Available()[0])
	if err != nil {
		t.Fatal(err)
	}
	stop := time.Now().Add(300 * time.Millisecond)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for time.Now().Before(stop) {
				x, y := make([]float32, 1<<12), make([]float32, 1<<12)
				f := loop.Frame{Rows: 4, Cols: 1 << 10, Spill: looptest.Aligned(c.SpillBytes())}
				f.Ptr[0], f.Ptr[1] = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0])
				f.Row[0], f.Row[1] = 4<<10, 4<<10
				c.Run(&f)
				if y[0] != 0x1p-10 {
					t.Errorf("softmax of equal numbers is %v", y[0])
					return
				}
			}
		})
	}
	for time.Now().Before(stop) {
		runtime.GC()
	}
	wg.Wait()
}

func TestRunAllocatesNothing(t *testing.T) {
	if len(Available()) == 0 {
		t.Skip("there is no native code here")
	}
	c, err := Compile(softmax(), Available()[0])
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 100), make([]float32, 100)
	spill := looptest.Aligned(c.SpillBytes())
	n := testing.AllocsPerRun(100, func() {
		f := loop.Frame{Rows: 1, Cols: 100, Spill: spill}
		f.Ptr[0], f.Ptr[1] = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0])
		c.Run(&f)
	})
	if n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// guardedMemory returns n bytes that end at a page that can't be touched.
func guardedMemory(n int) []byte {
	size := unix.Getpagesize()
	whole := (n + size - 1) / size * size
	mem, err := unix.Mmap(-1, 0, whole+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	if err := unix.Mprotect(mem[whole:], unix.PROT_NONE); err != nil {
		panic(err)
	}
	return mem[whole-n : whole : whole]
}

// freeGuarded ends the use of what guardedMemory returned, which begins in its first page.
func freeGuarded(mem []byte) {
	size := uintptr(unix.Getpagesize())
	first := unsafe.Pointer(&mem[0])
	before := uintptr(first) % size
	whole := (before + uintptr(len(mem)) + size - 1) / size * size
	if err := unix.MunmapPtr(unsafe.Add(first, -int(before)), whole+size); err != nil {
		panic(err)
	}
}
