package host

import (
	"sync/atomic"

	"github.com/loris-ml/loris/backend"
)

// Boxed is an input that a run may drop as soon as the library needs it no more,
// which may be before the run ends. The reference inside is dropped when the run
// is over at the latest, or by Drop if there was none.
type Boxed struct {
	backend.Buffer
	dropped atomic.Bool
}

// Drop drops the reference inside; once, however often it is called.
func (b *Boxed) Drop() {
	if b.dropped.CompareAndSwap(false, true) {
		b.Buffer.Release()
	}
}
