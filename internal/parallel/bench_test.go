package parallel

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// BenchmarkForkJoin measures what a parallel region costs beside its work: two units
// that spin for the named time, back to back and after a pause.
func BenchmarkForkJoin(b *testing.B) {
	for _, unit := range []time.Duration{0, 5 * time.Microsecond, 25 * time.Microsecond, 100 * time.Microsecond} {
		for _, pause := range []time.Duration{0, 20 * time.Microsecond, time.Millisecond} {
			b.Run(fmt.Sprintf("%v/pause %v", unit, pause), func(b *testing.B) {
				body := func(lo, hi int) {
					for ; lo < hi; lo++ {
						busyWait(unit)
					}
				}
				least, sum := time.Duration(math.MaxInt64), time.Duration(0)
				for b.Loop() {
					busyWait(min(pause, 20*time.Microsecond))
					if pause > 20*time.Microsecond {
						time.Sleep(pause)
					}
					start := time.Now()
					For(2, 1, body)
					d := time.Since(start)
					least, sum = min(least, d), sum+d
				}
				b.ReportMetric(float64(least.Nanoseconds())/1e3, "best-µs")
				b.ReportMetric(float64(sum.Nanoseconds())/1e3/float64(b.N), "region-µs")
			})
		}
	}
}

func busyWait(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}
