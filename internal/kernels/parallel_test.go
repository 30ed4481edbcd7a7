package kernels

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestForCovers checks that each unit is done exactly once, however the work is
// cut.
func TestForCovers(t *testing.T) {
	for _, procs := range []int{1, 2, 5} {
		old := runtime.GOMAXPROCS(procs)
		for _, n := range []int{0, 1, 2, 7, 100, 1001} {
			for _, grain := range []int{-1, 0, 1, 3, 1000, 5000} {
				seen := make([]atomic.Int32, n)
				For(n, grain, func(lo, hi int) {
					if lo >= hi || lo < 0 || hi > n {
						t.Errorf("n %d, grain %d: range %d to %d", n, grain, lo, hi)
						return
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
				})
				for i := range seen {
					if c := seen[i].Load(); c != 1 {
						t.Fatalf("n %d, grain %d: unit %d is done %d times", n, grain, i, c)
					}
				}
			}
		}
		runtime.GOMAXPROCS(old)
	}
}

// TestForSmall checks that little work stays on the calling goroutine and
// allocates nothing.
func TestForSmall(t *testing.T) {
	calls := 0
	body := func(lo, hi int) { calls += hi - lo }
	if n := testing.AllocsPerRun(100, func() { For(10, 10, body) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if calls != 101*10 {
		t.Errorf("%d units done", calls)
	}
}

func TestForPanic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	want := IndexError{7, 3}
	for range 50 {
		func() {
			defer func() {
				if r := recover(); r != want {
					t.Fatalf("recovered %v, want %v", r, want)
				}
			}()
			For(64, 1, func(lo, hi int) {
				if lo <= 40 && 40 < hi {
					panic(want)
				}
			})
		}()
	}
	if n := busy.Load(); n != 0 {
		t.Errorf("%d helpers are counted after all have stopped", n)
	}
}

// TestForNested checks that calls inside calls, and from many goroutines, end.
func TestForNested(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	var total atomic.Int64
	For(20, 1, func(lo, hi int) {
		for range hi - lo {
			For(30, 1, func(lo, hi int) { total.Add(int64(hi - lo)) })
		}
	})
	if got := total.Load(); got != 600 {
		t.Errorf("%d units, want 600", got)
	}
}
