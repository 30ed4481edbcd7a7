package inference

import (
	"math/bits"
	"time"
)

// Latencies counts times, in four steps for each doubling from a microsecond on, up to a minute
// or so; longer ones count as the longest.
type Latencies [104]uint64

// Add counts one time.
func (l *Latencies) Add(d time.Duration) {
	n := uint64(max(d, 0) / time.Microsecond)
	at := n
	if n >= 4 {
		e := bits.Len64(n) - 1
		at = uint64(e-1)*4 + n>>(e-2)&3
	}
	l[min(at, uint64(len(l)-1))]++
}

// latencyStep returns the least time that counts in a step.
func latencyStep(at int) time.Duration {
	if at < 4 {
		return time.Duration(at) * time.Microsecond
	}
	e := at/4 + 1
	return time.Duration(4+at%4) << (e - 2) * time.Microsecond
}

// Since returns the times that were counted after before was copied.
func (l *Latencies) Since(before *Latencies) Latencies {
	var d Latencies
	for i := range l {
		d[i] = l[i] - before[i]
	}
	return d
}

// Quantile returns the time that a share q of the times do not exceed, to within the width of a step;
// 0 if nothing was counted.
func (l *Latencies) Quantile(q float64) time.Duration {
	total := uint64(0)
	for _, n := range l {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank, seen := q*float64(total), 0.0
	for i, n := range l {
		if seen += float64(n); n > 0 && seen >= rank {
			from, to := latencyStep(i), latencyStep(i+1)
			return to - time.Duration((seen-rank)/float64(n)*float64(to-from))
		}
	}
	return latencyStep(len(l))
}
