package executor

import (
	"sync"
	"testing"
)

// Goroutines that take the mutex again and again exclude each other and one that sleeps for it, and
// all come to an end.
func TestFairMutexExcludes(t *testing.T) {
	const often, seldom = 20_000, 200
	var m fairMutex
	var wg sync.WaitGroup
	count := 0
	take := func(n int, work func()) {
		wg.Go(func() {
			for range n {
				m.Lock()
				count++
				work()
				m.Unlock()
			}
		})
	}
	sink := 0
	for range 3 {
		take(often, func() {
			for i := range 100 {
				sink += i
			}
		})
	}
	take(seldom, func() {})
	take(seldom, func() {})
	wg.Wait()
	if want := 3*often + 2*seldom; count != want {
		t.Errorf("counted %d of %d", count, want)
	}
}
