//go:build linux && (amd64 || arm64) && !noasm

package code

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
)

func TestCall(t *testing.T) {
	var fs []*Func
	for i := range 100 {
		f, err := New(adder(int32(i)))
		if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f)
	}
	for i, f := range fs {
		v := int64(1000)
		f.Call(unsafe.Pointer(&v))
		if v != int64(1000+i) {
			t.Errorf("function %d gave %d", i, v)
		}
	}
}

func TestCallAllocatesNothing(t *testing.T) {
	f, err := New(adder(1))
	if err != nil {
		t.Fatal(err)
	}
	var v int64
	if n := testing.AllocsPerRun(100, func() { f.Call(unsafe.Pointer(&v)) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// TestMemoryComesBack fills a chunk with functions that nobody keeps and waits
// for their cleanups.
func TestMemoryComesBack(t *testing.T) {
	first, err := New(adder(1))
	if err != nil {
		t.Fatal(err)
	}
	arena.mu.Lock()
	c := arena.now
	arena.mu.Unlock()
	for range chunkSize / 4096 {
		if _, err := New(adder(2)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.KeepAlive(first)
	first = nil
	users := 1
	for range 100 {
		runtime.GC()
		arena.mu.Lock()
		users = c.users
		arena.mu.Unlock()
		if users == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("a chunk still has %d users", users)
}

func BenchmarkCall(b *testing.B) {
	f, err := New(adder(1))
	if err != nil {
		b.Fatal(err)
	}
	var v int64
	for b.Loop() {
		f.Call(unsafe.Pointer(&v))
	}
}
