package hostmem_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

func guarded(n int) (*hostmem.Allocator, *hostmem.Buffer) {
	a := hostmem.NewAllocator()
	a.Guard()
	return a, must(a.New(ir.MakeShape(ir.U8, n), ir.Device{Index: 1}))
}

// around returns memory that is not the buffer's, from its address on.
func around(b *hostmem.Buffer, off int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b.Data())), off))
}

func TestGuarded(t *testing.T) {
	for _, n := range []int{1, 15, 16, 100, 4095, 4096, 4097, 100_000} {
		a, b := guarded(n)
		data := b.Data()
		if at := uintptr(unsafe.Pointer(&data[0])); len(data) != n || at%16 != 0 || (at+uintptr(n)+15)&^15%uintptr(os.Getpagesize()) != 0 {
			t.Errorf("%d bytes are %d at %#x", n, len(data), at)
		}
		for i := range data {
			data[i] = byte(i)
		}
		if got := a.BytesInUse(b.Device()); got != int64(n) {
			t.Errorf("%d bytes in use, want %d", got, n)
		}
		b.Release()
		if got := a.BytesInUse(b.Device()); got != 0 {
			t.Errorf("%d bytes in use after the release", got)
		}
	}
}

func TestGuardedPaddingIsWritten(t *testing.T) {
	for _, off := range []int{-1, 100} {
		_, b := guarded(100)
		*around(b, off) = 0
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.Contains(r, "around a buffer of 100 bytes") {
					t.Errorf("a write at %d: %s", off, r)
				}
			}()
			b.Release()
		}()
	}
}

// TestGuardsStopAProcess touches guards, each in a process of its own.
func TestGuardsStopAProcess(t *testing.T) {
	const env = "HOSTMEM_GUARD"
	touch := map[string]int{"end": 4096, "beginning": -1}
	if off, ok := touch[os.Getenv(env)]; ok {
		_, b := guarded(4096)
		*around(b, off) = 0
		return
	}
	for side := range touch {
		cmd := exec.Command(os.Args[0], "-test.run=^TestGuardsStopAProcess$")
		cmd.Env = append(os.Environ(), env+"="+side)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "fault") {
			t.Errorf("a write past the %s: %v\n%.500s", side, err, out)
		}
	}
}
