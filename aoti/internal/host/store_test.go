//go:build linux && cgo

package host

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// over returns memory as a slice of elements like those of a.
func over[T any](a []T, mem []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[0])), len(mem)/int(unsafe.Sizeof(a[0])))
}

// What memory of C held before a pointer is written there is nobody's business:
// with a write barrier the runtime would end the process over an address that is
// in Go's heap but in no object.
func TestStorePointerLooksAtNothing(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	const size = 40_001 // the rest of the last page belongs to no object
	heap := [][]byte{make([]byte, size)}
	t.Cleanup(func() { runtime.KeepAlive(heap) }) // on the heap, and alive
	stale := uintptr(unsafe.Pointer(&heap[0][0])) + size + 100
	m := &Instance{lib: &Library{}}
	defer m.pin.Unpin()
	m.in = over(m.in, mem[:2048])
	slot := unsafe.Pointer(&mem[2048])
	input, err := hostmem.Wrap(ir.MakeShape(ir.F32, 2), ir.Device{}, make([]byte, 8), func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer input.Release()
	word := uintptr(slot)
	c := call{sig: &signature{}, args: []int64{int64(word)}}
	out := new(tensor)
	type link struct{ next *link }
	var chain *link // keeps the collector marking, and so the barrier on, for a while
	for range 300_000 {
		chain = &link{chain}
	}
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for range 20 {
			runtime.GC()
		}
	}()
	for done := false; !done; {
		select {
		case <-collected:
			done = true
		default:
		}
		for range 100 {
			*(*uintptr)(unsafe.Pointer(&m.in[0].data)) = stale
			if err := m.describe(t.Context(), &m.in[0], input); err != nil {
				t.Fatal(err)
			}
			*(*uintptr)(slot) = stale
			c.give(0, out)
		}
		m.pin.Unpin()
	}
	if m.in[0].data == nil || *(*uintptr)(slot) != uintptr(unsafe.Pointer(out)) {
		t.Error("nothing was stored")
	}
	runtime.KeepAlive(chain)
}
