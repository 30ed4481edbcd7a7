package parallel

import (
	"sync/atomic"
	"time"
)

// Loop is one parallel loop, as an observer gets it. The goroutines of a loop have Threads times
// Wall together; Busy of that is work, Late what passed before goroutines that came began, and the
// rest is waiting at the end, and goroutines that never came.
type Loop struct {
	// Threads is how many goroutines the loop was cut for, and Joined how many did a part of it.
	Threads, Joined int
	// Wall is the time of the loop.
	Wall time.Duration
	// Busy is the time in which goroutines did units, and Late what passed from the beginning of
	// the loop until they began, in all of them together.
	Busy, Late time.Duration
}

// observer is what Observe was given, or nil.
var observer atomic.Pointer[func(Loop)]

// Observe makes fn get every loop of several goroutines that begins from now on, from the goroutine
// that called it; nil ends that.
func Observe(fn func(Loop)) {
	if fn == nil {
		observer.Store(nil)
		return
	}
	observer.Store(&fn)
}

// clock measures a loop that is observed.
type clock struct {
	begin      time.Time
	joined     atomic.Int32
	busy, late atomic.Int64
}

// measure runs a loop that is observed.
func (j *job) measure(fn func(Loop)) {
	c := &clock{begin: time.Now()}
	j.clock = c
	j.start(len(j.parts))
	j.clock = nil
	fn(Loop{
		Threads: len(j.parts), Joined: int(c.joined.Load()), Wall: time.Since(c.begin),
		Busy: time.Duration(c.busy.Load()), Late: time.Duration(c.late.Load()),
	})
}

// enter notes that a goroutine begins, and returns what notes that it is done.
func (c *clock) enter() func() {
	began := time.Now()
	c.joined.Add(1)
	c.late.Add(int64(began.Sub(c.begin)))
	return func() { c.busy.Add(int64(time.Since(began))) }
}
