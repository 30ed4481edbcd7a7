//go:build linux && cgo

package host

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ctest"
	"github.com/loris-ml/loris/internal/ir"
	_ "github.com/loris-ml/loris/internal/openmp"
	"github.com/loris-ml/loris/internal/sanitizer"
)

// leakCheck fails the test if it leaves tensors behind.
func leakCheck(t *testing.T) {
	t.Helper()
	bytes, handles := BytesInUse(), Handles()
	t.Cleanup(func() {
		if b, h := BytesInUse(), Handles(); b != bytes || h != handles {
			t.Errorf("%d bytes and %d handles before, %d and %d after", bytes, handles, b, h)
		}
	})
}

func TestTensorFunctions(t *testing.T) {
	var flags []string
	if sanitizer.Address {
		flags = append(flags, "-DASAN")
	}
	lib := ctest.Open(t, ctest.Build(t, "testdata/c/tensor.c", flags...))
	for _, name := range []string{"make", "refusals", "views", "convert", "record", "atexit", "threads"} {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if text := lib.Call("test_"+name, nil); text != "" {
				t.Error(text)
			}
		})
	}
}

func TestNoWarnings(t *testing.T) { ctest.NoWarnings(t) }

// A failing check is an exception in the library, also right in a function that
// C calls; in a parallel region it is the failure of what comes next.
func TestChecksThrow(t *testing.T) {
	lib := ctest.Open(t, ctest.Build(t, "testdata/c/throw.cpp"))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if text := lib.Call("test_throw", nil); text != "" {
		t.Error(text)
	}
}

func TestBorrowAndLend(t *testing.T) {
	leakCheck(t)
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	s := ir.MakeShape(ir.U8, 2, 4)
	var pin runtime.Pinner
	defer pin.Unpin()
	b, err := borrow(s, data, &pin)
	if err != nil {
		t.Fatal(err)
	}
	l, err := describe(b)
	if err != nil || l.shape != s || l.bytes != 8 || l.strides[0] != 4 {
		t.Errorf("%+v, %v", l, err)
	}
	o, err := newTensor(s)
	if err != nil {
		t.Fatal(err)
	}
	copy(tensorBytes(o), data)
	// Dense memory is lent as it is, and lives as long as the buffer.
	for name, h := range map[string]*tensor{"borrowed": b, "own": o} {
		mem := tensorBytes(h)
		lent, err := lend(h, s)
		release(h)
		if err != nil {
			t.Fatal(err)
		}
		if d := lent.Data(); &d[0] != &mem[0] || !bytes.Equal(d, data) || lent.Shape() != s {
			t.Errorf("%s: %v of %v", name, d, lent.Shape())
		}
		lent.Release()
	}
	if _, err := borrow(s, data[:3], &pin); err == nil || !strings.Contains(err.Error(), "8 bytes") {
		t.Errorf("3 bytes for %v: %v", s, err)
	}
}

func TestPool(t *testing.T) {
	defer SetPoolLimit(256 << 20)
	SetPoolLimit(0)
	if n := PooledBytes(); n != 0 {
		t.Errorf("%d bytes are kept where none may be", n)
	}
	SetPoolLimit(1 << 20)
	for range 4 {
		a, err := newTensor(ir.MakeShape(ir.U8, 300<<10))
		if err != nil {
			t.Fatal(err)
		}
		b, err := newTensor(ir.MakeShape(ir.U8, 900<<10))
		if err != nil {
			t.Fatal(err)
		}
		release(a)
		release(b)
	}
	if n := PooledBytes(); n == 0 || n > 1<<20 {
		t.Errorf("%d bytes are kept of at most %d", n, 1<<20)
	}
	Trim()
	if n := PooledBytes(); n != 0 {
		t.Errorf("%d bytes are kept after Trim", n)
	}
}
