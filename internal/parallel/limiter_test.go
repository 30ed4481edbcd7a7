package parallel

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gauge counts goroutines that are somewhere at the same time.
type gauge struct{ now, most atomic.Int32 }

func (g *gauge) enter() {
	n := g.now.Add(1)
	for {
		m := g.most.Load()
		if n <= m || g.most.CompareAndSwap(m, n) {
			return
		}
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// nobody fails the test unless all permits are free and nobody waits.
func nobody(t *testing.T) {
	t.Helper()
	if taken, waiting, unmetered := permits.taken.Load(), permits.waiting.Load(), pool.unmetered.Load(); taken != 0 || waiting != 0 || unmetered != 0 {
		t.Errorf("%d permits are taken, %d wait and %d unmetered are counted after all have stopped", taken, waiting, unmetered)
	}
}

// TestLimiterBounds runs loops side by side whose limiters have different bounds: each
// keeps to its own, and all together to the processors.
func TestLimiterBounds(t *testing.T) {
	const procs = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	for _, own := range []bool{true, false} {
		if !own {
			SetThreadPool(goroutines)
			defer external.Store(nil)
		}
		var all gauge
		var wg sync.WaitGroup
		for _, threads := range []int{0, 1, 2, 3, 7, 2, 1} {
			wg.Go(func() {
				s := NewLimiter(threads)
				var mine gauge
				for range 20 {
					if err := s.Acquire(t.Context()); err != nil {
						t.Error(err)
						return
					}
					for range 5 {
						s.For(12, 1, func(lo, hi int) {
							mine.enter()
							all.enter()
							for range hi - lo {
								time.Sleep(10 * time.Microsecond)
							}
							all.leave()
							mine.leave()
						})
						if err := s.Yield(t.Context()); err != nil {
							t.Error(err)
						}
					}
					s.Release()
				}
				if most := int(mine.most.Load()); most > s.Threads() {
					t.Errorf("%d goroutines of at most %d", most, s.Threads())
				}
			})
		}
		wg.Wait()
		if most := all.most.Load(); most > procs {
			t.Errorf("%d goroutines on %d processors", most, procs)
		}
		nobody(t)
	}
}

// goroutines is a thread pool for SetThreadPool.
func goroutines(threads int, work func()) {
	var wg sync.WaitGroup
	for range threads {
		wg.Go(work)
	}
	wg.Wait()
}

// TestLimiterIsUsed has a loop whose units wait for each other: as many
// goroutines come as the limiter allows, where nobody else computes.
func TestLimiterIsUsed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for threads, want := range map[int]int32{0: 4, 1: 1, 3: 3, 9: 4} {
		s := NewLimiter(threads)
		if err := s.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		var here gauge
		var met atomic.Bool
		s.For(int(want), 1, func(lo, hi int) {
			here.enter()
			for ; lo < hi && !met.Load(); runtime.Gosched() {
				met.CompareAndSwap(false, here.now.Load() == want)
			}
			here.leave()
		})
		s.Release()
		if most := here.most.Load(); most != want {
			t.Errorf("%d goroutines came for a limit of %d, want %d", most, threads, want)
		}
	}
	nobody(t)
}

// TestPermits has more callers than processors: who waits is granted in order, or
// leaves when its context ends, and loops without permits run meanwhile.
func TestPermits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	first := NewLimiter(0)
	if err := first.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left, served := make(chan error), make(chan int, 2)
	waiting := func(n int32) {
		for permits.waiting.Load() != n {
			runtime.Gosched()
		}
	}
	go func() { left <- NewLimiter(0).Acquire(ctx) }()
	waiting(1)
	for i := range 2 {
		go func() {
			s := NewLimiter(0)
			if err := s.Acquire(t.Context()); err != nil {
				t.Error(err)
			}
			served <- i
			s.Release()
		}()
		waiting(int32(2 + i))
	}
	units := 0
	For(10, 1, func(lo, hi int) { units += hi - lo })
	(*Limiter)(nil).For(10, 1, func(lo, hi int) { units += hi - lo })
	if units != 20 {
		t.Errorf("%d units of unmetered are done, want 20", units)
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left had %v", err)
	}
	if err := first.Yield(t.Context()); err != nil {
		t.Error(err)
	}
	if a, b := <-served, <-served; a != 0 || b != 1 {
		t.Errorf("granted in the order %d, %d", a, b)
	}
	first.Release()
	first.Release() // does nothing
	nobody(t)
}

// TestLimiterPanics passes a panic on and leaves no permits taken.
func TestLimiterPanics(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for range 20 {
		func() {
			s := NewLimiter(0)
			if err := s.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if r := recover(); r != "broken" {
					t.Errorf("recovered %v", r)
				}
			}()
			defer s.Release()
			s.For(30, 1, func(lo, hi int) { panic("broken") })
		}()
	}
	nobody(t)
}
