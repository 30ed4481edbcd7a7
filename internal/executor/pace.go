package executor

import (
	"sync/atomic"
	"time"
)

// pace is how the runs of a computation have gone, which decides who runs it next.
type pace struct {
	took  atomic.Int64 // nanoseconds that the last run held the device; 0 before the first
	pause atomic.Int64 // nanoseconds from when the caller had the last run scheduled to what it asked of its session next; 0 before that
}

// atOnce is what a goroutine on another processor takes to begin, and its data to follow it there: the
// caller of a computation runs it by itself if it would do less than that meanwhile.
var atOnce = 10 * time.Microsecond

// handOver is how many times as much it costs to give a computation to another processor where callers pause no longer
// between two of them: both processors fall asleep and wake each other. On two virtual processors a recorded training
// step of 50 µs, after which the caller recorded for 20, took 85 to 95 µs so, and 73 on the caller's.
const handOver = 3

// longest is how long a computation may have taken last for the caller to run it by itself because it would only
// wait otherwise. What it asks of the session is answered later by so much if it does not.
const longest = 200 * time.Microsecond

// prompt reports whether the caller loses nothing by running the computation by itself. Beside other sessions it
// would keep their goroutines from its processor, and be taken off it with the device's lock.
func (p *pace) prompt(alone bool) bool {
	took, pause := time.Duration(p.took.Load()), time.Duration(p.pause.Load())
	return took > 0 && (took <= atOnce/2 || alone && took <= longest && pause > 0 && pause <= handOver*atOnce)
}

// epoch is what pauses are counted from.
var epoch = time.Now()

// scheduled notes that the caller has a run of a computation scheduled and goes on.
func (s *Session) scheduled(p *pace) {
	if took := time.Duration(p.took.Load()); took <= atOnce/2 || took > longest {
		return // the pause does not matter
	}
	s.returned.Store(int64(time.Since(epoch)))
	s.last.Store(p)
}

// resumed notes that the caller wants something of the session again.
func (s *Session) resumed() {
	if s.last.Load() == nil {
		return
	}
	if p := s.last.Swap(nil); p != nil {
		p.pause.Store(max(int64(time.Since(epoch))-s.returned.Load(), 1))
	}
}
