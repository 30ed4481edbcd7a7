// Package limit measures what a machine can do at most: multiplications and
// additions of f32 in registers, and bytes to and from memory.
package limit

import (
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Machine is the limits of a number of threads.
type Machine struct {
	Threads int
	// ISA is the instructions that were measured with; FLOPS is 0 and the others are
	// of plain Go where there are none.
	ISA string
	// FLOPS is f32 operations a second, a fused multiplication and addition being
	// two.
	FLOPS float64
	// Triad is the bytes a second that are read and written for sums of two long
	// vectors, not counting that a line is read before it is written. Stream is the
	// same with stores that go past the caches.
	Triad, Stream float64
}

// loops are the measured code. All are given a number of rounds.
type loops struct {
	name     string
	lanes    int
	multiply func(rounds int)
	triad    func(a, b, c *float32, rounds int)
	stream   func(a, b, c *float32, rounds int)
}

const (
	sums    = 12 // vector operations in a round of multiply
	vectors = 4  // in a round of triad
	repeats = 5
)

// Measure finds the limits of the given number of threads, as the best of a few
// short runs. elements is the length of the vectors in memory; it should be far
// more than fits in the caches. It takes some tenths of a second.
func Measure(threads, elements int) Machine {
	before := runtime.GOMAXPROCS(max(threads, 1))
	defer runtime.GOMAXPROCS(before)
	m := Machine{Threads: max(threads, 1)}
	l := native()
	a, b, c := aligned(elements), aligned(elements), aligned(elements)
	bytes := 3 * 4 * float64(elements)
	if l == nil {
		m.ISA = "Go"
		m.Triad = bytes / parallel(m.Threads, func(t int) { add(part(a, t, m.Threads, 1), part(b, t, m.Threads, 1), part(c, t, m.Threads, 1)) })
		m.Stream = m.Triad
		return m
	}
	m.ISA = l.name
	const rounds = 2_000_000
	m.FLOPS = 2 * float64(sums*l.lanes*rounds*m.Threads) / parallel(m.Threads, func(int) { l.multiply(rounds) })
	unit := vectors * l.lanes
	vector := func(f func(a, b, c *float32, rounds int)) float64 {
		return bytes / parallel(m.Threads, func(t int) {
			x, y, z := part(a, t, m.Threads, unit), part(b, t, m.Threads, unit), part(c, t, m.Threads, unit)
			if n := len(x) / unit; n > 0 {
				f(&x[0], &y[0], &z[0], n)
			}
		})
	}
	m.Triad, m.Stream = vector(l.triad), vector(l.stream)
	return m
}

// Seconds is the least time of work with so many operations and bytes.
func (m Machine) Seconds(flop, bytes float64) float64 {
	var t float64
	if m.FLOPS > 0 {
		t = flop / m.FLOPS
	}
	if most := max(m.Triad, m.Stream); most > 0 {
		t = max(t, bytes/most)
	}
	return t
}

// String is one line for reports.
func (m Machine) String() string {
	return fmt.Sprintf("%d threads: %.0f GFLOP/s (%s FMA), triad %.1f GB/s, with streaming stores %.1f GB/s", m.Threads, m.FLOPS/1e9, m.ISA, m.Triad/1e9, m.Stream/1e9)
}

// aligned returns n elements that begin at a cache line and whose pages are there.
func aligned(n int) []float32 {
	mem := make([]float32, n+16)
	for i := range mem {
		mem[i] = 1
	}
	off := int(-uintptr(unsafe.Pointer(&mem[0]))&63) / 4
	return mem[off : off+n : off+n]
}

// part returns share t of threads, in whole units.
func part(x []float32, t, threads, unit int) []float32 {
	n := len(x) / unit
	return x[n*t/threads*unit : n*(t+1)/threads*unit]
}

func add(a, b, c []float32) {
	b, c = b[:len(a)], c[:len(a)]
	for i := range a {
		a[i] = b[i] + c[i]
	}
}

// parallel returns the seconds of the fastest of some runs of f on all threads.
func parallel(threads int, f func(thread int)) float64 {
	best := time.Duration(1<<63 - 1)
	for range repeats {
		var wg sync.WaitGroup
		begin := time.Now()
		for t := 1; t < threads; t++ {
			wg.Go(func() { f(t) })
		}
		f(0)
		wg.Wait()
		best = min(best, time.Since(begin))
	}
	return max(best, 1).Seconds()
}
