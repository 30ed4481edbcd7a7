package hostmem

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// Storage of dropped buffers is found though the collector has no reason of its own to look for it,
// and so much fresh storage is made in between that not every block can have been.
func TestDroppedStorageIsFound(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	a, shape := NewAllocator(), ir.MakeShape(ir.U8, 1<<20)
	before := a.BytesInUse(ir.Device{})
	const most = 4 << 10
	for i := range most {
		b, err := a.New(shape, ir.Device{})
		if err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(b)
		if int64(i)<<20 > a.BytesInUse(ir.Device{})-before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("none of %d MiB that were dropped was found", most)
}
