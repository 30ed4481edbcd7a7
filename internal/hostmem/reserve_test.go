package hostmem

import (
	"runtime/debug"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// TestReserve checks that memory is held from the first buffer on, but not beside a small memory limit.
func TestReserve(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, c := range []struct {
		limit int64
		held  bool
	}{{reserveLimit, true}, {reserveLimit - 1, false}} {
		debug.SetMemoryLimit(c.limit)
		a := NewAllocator()
		if n := a.reserve.mem.Cap(); n != 0 {
			t.Errorf("%d bytes are held before there is a buffer", n)
		}
		must(a.New(ir.MakeShape(ir.F32, 4), dev)).Release()
		if n := a.reserve.mem.Cap(); n >= reserveBytes != c.held {
			t.Errorf("beside a limit of %d bytes %d are held", c.limit, n)
		}
	}
}
