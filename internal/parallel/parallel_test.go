package parallel

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// TestParts checks that a goroutine begins with its own part of a job and then does
// all that is left of the others.
func TestParts(t *testing.T) {
	const n, chunk = 100, 7
	for threads := 1; threads <= 20; threads++ {
		for part := range 2 * threads {
			var seen []int
			j := &job{body: func(lo, hi int) {
				for ; lo < hi; lo++ {
					seen = append(seen, lo)
				}
			}}
			j.cut(n, chunk, threads)
			first := int(j.parts[part%len(j.parts)].next.Load())
			j.work(part, false)
			if seen[0] != first || first%chunk != 0 {
				t.Fatalf("%d threads, part %d: begins with %d, not %d", threads, part, seen[0], first)
			}
			slices.Sort(seen)
			for i, u := range seen {
				if u != i || len(seen) != n {
					t.Fatalf("%d threads, part %d: %d units, and %d where %d should be", threads, part, len(seen), u, i)
				}
			}
		}
	}
}

// TestWorkersSleep checks that workers fall asleep when there is no work, so that a
// process that computes nothing needs no processor, and come again when there is.
func TestWorkersSleep(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const patience = time.Minute
	for range 3 {
		var here atomic.Int32
		For(2, 1, func(_, _ int) {
			here.Add(1)
			for end := time.Now().Add(patience); here.Load() < 2 && time.Now().Before(end); {
				runtime.Gosched()
			}
		})
		if here.Load() != 2 {
			t.Fatal("no worker came")
		}
		for _, w := range *pool.workers.Load() {
			for end := time.Now().Add(patience); w.mail.Load() != parked; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("a worker is awake without work")
				}
			}
		}
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
	want := errors.New("broken")
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
	if n := pool.unmetered.Load(); n != 0 {
		t.Errorf("%d workers are counted after all have stopped", n)
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

// TestForManyCallers calls from more goroutines than there are processors, with
// pauses that let workers fall asleep and calls that are over before a worker
// comes.
func TestForManyCallers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 200 {
				n, threads := 1+rng.IntN(20), rng.IntN(6)
				var sum atomic.Int64
				ForThreads(threads, n, 1, func(lo, hi int) {
					for i := lo; i < hi; i++ {
						sum.Add(int64(i))
					}
				})
				if got := int(sum.Load()); got != n*(n-1)/2 {
					t.Errorf("units of %d sum to %d", n, got)
				}
				if rng.IntN(20) == 0 {
					time.Sleep(2 * spinTime)
				}
			}
		})
	}
	wg.Wait()
	if n := pool.unmetered.Load(); n != 0 {
		t.Errorf("%d goroutines are counted after all have stopped", n)
	}
}

// Loops run on somebody else's threads if there are such, by the bound of the
// call, and a panic still comes out of the loop.
func TestSetThreadPool(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer external.Store(nil)
	var asked []int
	SetThreadPool(func(threads int, work func()) {
		asked = append(asked, threads)
		var wg sync.WaitGroup
		for range threads {
			wg.Go(work)
		}
		wg.Wait()
	})
	var sum atomic.Int64
	ForThreads(3, 100, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sum.Add(int64(i))
		}
	})
	ForThreads(4, 2, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
	ForThreads(1, 3, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
	if got := sum.Load(); got != 4950+2+3 || !slices.Equal(asked, []int{3, 2}) {
		t.Errorf("sum %d on %v threads", got, asked)
	}
	defer func() {
		if r := recover(); r != "broken" {
			t.Errorf("recovered %v", r)
		}
	}()
	For(100, 1, func(lo, hi int) { panic("broken") })
}

func TestSetThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer SetThreads(0)
	for _, c := range []struct{ limit, procs, want int }{{0, 4, 4}, {1, 4, 1}, {3, 4, 3}, {9, 4, 4}, {-1, 2, 2}} {
		runtime.GOMAXPROCS(c.procs)
		SetThreads(c.limit)
		if got := Threads(); got != c.want {
			t.Errorf("limit %d of %d processors: %d", c.limit, c.procs, got)
		}
	}
	SetThreads(1)
	calls := 0
	For(100, 1, func(lo, hi int) { calls++ })
	if calls != 1 {
		t.Errorf("%d calls on one goroutine", calls)
	}
}

// An observer gets each loop that several goroutines were to do, with no more time than it took, and
// panics pass through it.
func TestObserve(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	var loops []Loop
	Observe(func(l Loop) { loops = append(loops, l) })
	defer Observe(nil)
	For(30, 1, func(lo, hi int) { time.Sleep(time.Millisecond) })
	For(1, 1, func(lo, hi int) {}) // on the caller alone
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		For(30, 1, func(lo, hi int) { panic("unit") })
	}()
	Observe(nil)
	For(30, 1, func(lo, hi int) {})
	if len(loops) != 2 {
		t.Fatalf("%d loops are seen, want 2", len(loops))
	}
	l := loops[0]
	if l.Threads != 3 || l.Joined < 1 || l.Joined > 3 || l.Busy < 10*time.Millisecond || l.Busy+l.Late > 3*l.Wall || l.Late < 0 {
		t.Errorf("%+v", l)
	}
}
