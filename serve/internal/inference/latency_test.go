package inference

import (
	"testing"
	"time"
)

// Every time counts in the step that its bounds say, and a quantile is off by a step's width at most.
func TestLatencies(t *testing.T) {
	for d := time.Duration(0); d < time.Minute; d = d*5/4 + 1 {
		var l Latencies
		l.Add(d)
		for i, n := range l {
			if n == 1 && (d < latencyStep(i) || (d >= latencyStep(i+1) && i < len(l)-1)) {
				t.Errorf("%v counts in %v to %v", d, latencyStep(i), latencyStep(i+1))
			}
		}
	}
	var l Latencies
	l.Add(-time.Second)
	l.Add(100 * time.Hour)
	before := l
	if before.Quantile(0.25) > time.Microsecond || before.Quantile(1) < 30*time.Second {
		t.Error(before.Quantile(0.25), before.Quantile(1))
	}
	for i := range 1000 {
		l.Add(time.Duration(i) * time.Millisecond)
	}
	since := l.Since(&before)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99} {
		want := time.Duration(q * float64(time.Second))
		if got := since.Quantile(q); got < want*3/4 || got > want*5/4 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if none := new(Latencies); none.Quantile(0.5) != 0 {
		t.Error(none.Quantile(0.5))
	}
}
