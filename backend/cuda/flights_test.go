//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// TestFlights checks that runs are enqueued behind each other while the device
// works, as many as there are places for faults without waiting, and that each has
// its own results and faults.
func TestFlights(t *testing.T) {
	f, b := newFake(t, 1)
	m := compiled(t, b, `program @pick {
		%x = parameter "x" : f32[4]
		%i = parameter "i" : i64[2]
		return index_select(%x, dim=0, index=%i)
	}`)
	x := floats(t, b, 1, 2, 3, 4)
	pick := func(v ...int64) []backend.Buffer {
		return []backend.Buffer{x, uploaded(t, b, ir.MakeShape(ir.I64, 2), elements.EncodeInts(ir.I64, v))}
	}
	in := [][]backend.Buffer{pick(3, 0), pick(1, 9), pick(2, 2), pick(-7, 0), pick(0, 1), pick(0, 4)}
	wrong := map[int]bool{1: true, 3: true, 5: true}
	f.Hold()
	runs, outs := make([]backend.Run, len(in)), make([]backend.Buffer, len(in))
	begin := func(i int) {
		o, r, err := m.Start(t.Context(), in[i], nil)
		check(t, err)
		runs[i], outs[i] = r, o[0]
	}
	for i := range maxFlights {
		begin(i)
	}
	for i := range maxFlights {
		if done, err := runs[i].Finished(); done || err != nil {
			t.Errorf("run %d of a device that is held: %v, %v", i, done, err)
		}
	}
	go func() { time.Sleep(time.Millisecond); f.Resume() }()
	for i := maxFlights; i < len(in); i++ {
		begin(i) // waits for the oldest
	}
	for i := range runs {
		err := runs[i].Wait(t.Context())
		if wrong[i] != errors.Is(err, ir.ErrIndex) || !wrong[i] && err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		if done, again := runs[i].Finished(); !done || !errors.Is(again, err) && again.Error() != err.Error() {
			t.Errorf("run %d, asked again: %v, %v", i, done, again)
		}
	}
	for i, want := range map[int][2]float64{0: {4, 1}, 2: {3, 3}, 4: {1, 2}} {
		if y := got(t, outs[i]); y[0] != want[0] || y[1] != want[1] {
			t.Errorf("run %d: got %v, want %v", i, y, want)
		}
	}
	for i := range wrong {
		outs[i].Release()
	}
	if len(m.slots) != maxFlights || len(m.flights) != 0 {
		t.Errorf("%d of %d places are free, %d runs are kept", len(m.slots), maxFlights, len(m.flights))
	}
}
