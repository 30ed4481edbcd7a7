package executor

import (
	"sync"
	"sync/atomic"
)

// fairMutex is a mutex for short work that one goroutine takes again and again, as recording does for
// each op, while others need it now and then. Somebody who sleeps for a sync.Mutex finds it taken again
// when he wakes, until he has waited for a millisecond, each time anew. Here those who come while
// somebody sleeps wait behind him. The zero value is unlocked.
type fairMutex struct {
	mu       sync.Mutex
	sleeping atomic.Bool // the holder of turn waits for mu
	turn     sync.Mutex
}

// Lock takes the mutex.
func (m *fairMutex) Lock() {
	if m.sleeping.Load() || !m.mu.TryLock() {
		m.lockSlow()
	}
}

// Unlock gives the mutex back.
func (m *fairMutex) Unlock() { m.mu.Unlock() }

// spins is how often Lock tries before it sleeps: for about as long as the work of a few ops, so that
// two goroutines that record at once need not wake each other for each op.
const spins = 100

func (m *fairMutex) lockSlow() {
	for i := 0; i < spins && !m.sleeping.Load(); i++ {
		if m.mu.TryLock() {
			return
		}
	}
	m.turn.Lock()
	m.sleeping.Store(true)
	m.mu.Lock()
	m.sleeping.Store(false)
	m.turn.Unlock()
}
