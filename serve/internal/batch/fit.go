package batch

import (
	"math"
	"time"
)

// fit estimates what a run of n rows costs, a·n + b seconds, by least squares in which
// older runs count less.
type fit struct {
	w, n, t, nn, nt float64
}

// decay is the weight of a run relative to that of the one after it.
const decay = 0.98

func (f *fit) add(rows float64, took time.Duration) {
	s := took.Seconds()
	f.w = f.w*decay + 1
	f.n = f.n*decay + rows
	f.t = f.t*decay + s
	f.nn = f.nn*decay + rows*rows
	f.nt = f.nt*decay + rows*s
}

// line returns a and b; false as long as runs had one number of rows only.
func (f *fit) line() (a, b float64, ok bool) {
	det := f.w*f.nn - f.n*f.n
	if f.w < 2 || det < 1e-9*f.nn*f.w {
		return 0, 0, false
	}
	a = (f.w*f.nt - f.n*f.t) / det
	return a, (f.t - a*f.n) / f.w, true
}

// base returns b, what a run costs whatever its rows.
func (f *fit) base() (float64, bool) {
	_, b, ok := f.line()
	return max(b, 0), ok
}

// cost estimates a run of that many rows; of one that was never seen, as so many of the
// mean run.
func (f *fit) cost(rows float64) time.Duration {
	a, b, ok := f.line()
	seconds := a*rows + b
	if !ok && f.n > 0 {
		seconds = rows * f.t / f.n
	}
	return time.Duration(math.Max(seconds, 0) * float64(time.Second))
}
