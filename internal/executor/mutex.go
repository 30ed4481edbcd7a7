package executor

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// fairMutex is a mutex for short work that one goroutine takes again and again, as recording does for
// each op, while others need it now and then. Somebody who sleeps for a sync.Mutex finds it taken again
// when he wakes, until he has waited for a millisecond, each time anew. Here those who come when
// somebody has slept for longer than patience wait behind him. Those who come sooner go before him: if
// all waited, each of many goroutines would have to be woken after the one before, which takes longer
// than the work, for as long as they come faster than that. The zero value is unlocked.
type fairMutex struct {
	mu    sync.Mutex
	since atomic.Int64 // when the holder of turn began to sleep for mu, after epoch, or 0
	turn  sync.Mutex
}

// patience is how long one sleeps before others wait behind him.
const patience = 50 * time.Microsecond

var epoch = time.Now()

// Lock takes the mutex.
func (m *fairMutex) Lock() {
	if m.since.Load() != 0 || !m.mu.TryLock() {
		m.lockSlow()
	}
}

// Unlock gives the mutex back.
func (m *fairMutex) Unlock() { m.mu.Unlock() }

// Lock tries spins times, for about as long as the work of a few ops, lets other goroutines run, which
// is cheaper than to sleep and to be woken, and begins again, yields times in all before it sleeps.
const (
	spins  = 100
	yields = 20
)

func (m *fairMutex) lockSlow() {
	for range yields {
		if since := m.since.Load(); since != 0 && time.Since(epoch)-time.Duration(since) > patience {
			break
		}
		for range spins {
			if m.mu.TryLock() {
				return
			}
		}
		runtime.Gosched()
	}
	m.turn.Lock()
	m.since.Store(int64(time.Since(epoch)))
	m.mu.Lock()
	m.since.Store(0)
	m.turn.Unlock()
}
