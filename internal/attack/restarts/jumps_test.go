//go:build linux

package restarts

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The clock of Go's runtime jumps, and what it measures durations with does not.
func TestClockJumps(t *testing.T) {
	if !clockJumps {
		t.Skip("the clock is replaced by assembly, which there is for amd64")
	}
	installClock()
	defer setAhead(0)
	for _, seconds := range []int64{3600, -1 << 29, 1 << 30} {
		begin := time.Now()
		setAhead(seconds)
		var real unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME, &real); err != nil {
			t.Fatal(err)
		}
		if d := time.Now().Unix() - real.Sec - seconds; d < 0 || d > 60 {
			t.Errorf("the clock is %d s off after it was set ahead by %d", d, seconds)
		}
		if d := time.Since(begin); d < 0 || d > time.Minute {
			t.Errorf("%v have passed", d)
		}
		setAhead(0)
	}
}
