package executor

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/ir"
)

// defaultInFlight is enough for a device to find its next step while the host is
// told that one is done and enqueues another.
const defaultInFlight = 3

// flight is a computation in the queue of a device that keeps the order of its
// work (backend.QueueModel). Its outputs may be given to further work of that
// device before it has landed.
type flight struct {
	ahead  *flight       // the one that it follows, nil once that has landed
	landed chan struct{} // closed when the work is done
	err    error         // of the work; set before
}

func (f *flight) hasLanded() bool {
	select {
	case <-f.landed:
		return true
	default:
		return false
	}
}

// deviceQueue bounds the flights of a device.
type deviceQueue struct {
	places *semaphore.Weighted // a flight takes one
	flying []*flight           // guarded by core.mu
}

// queue returns the queue of a device.
func (c *core) queue(d ir.Device) *deviceQueue {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[d]
	if q == nil {
		n := c.cfg.InFlight
		if n == 0 {
			n = defaultInFlight
		}
		q = &deviceQueue{places: semaphore.NewWeighted(int64(max(n, 1)))}
		c.queues[d] = q
	}
	return q
}

// takeOff notes a flight, for which the caller has a place.
func (c *core) takeOff(q *deviceQueue) *flight {
	f := &flight{landed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(q.flying); n > 0 {
		f.ahead = q.flying[n-1]
	}
	q.flying = append(q.flying, f)
	return f
}

// await waits for the work of a flight, p. Only the first in the queue asks the
// device, which may take a processor; the others are told that it is their turn.
func (f *flight) await(p *container.Pending) error {
	if f.ahead != nil {
		<-f.ahead.landed
		f.ahead = nil // else each would keep all before it
	}
	return p.Wait(context.Background())
}

// land ends a flight.
func (c *core) land(q *deviceQueue, f *flight, err error) {
	c.mu.Lock()
	q.flying = slices.DeleteFunc(q.flying, func(g *flight) bool { return g == f })
	c.mu.Unlock()
	f.err = err
	close(f.landed)
	q.places.Release(1)
}

// waitFlights waits for what is in the queues of the devices, all of them for
// none, and reports whether there was anything.
func (c *core) waitFlights(ctx context.Context, devices []ir.Device) (waited bool, err error) {
	c.mu.Lock()
	var all []*flight
	for d, q := range c.queues {
		if wanted(d, devices) {
			all = append(all, q.flying...)
		}
	}
	c.mu.Unlock()
	for _, f := range all {
		select {
		case <-f.landed:
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
	return len(all) > 0, nil
}

// follows keeps the flights of the parameters that have not landed: by the order
// of their device they will, before what is computed from them.
func (a *Async) follows() {
	for _, p := range a.params {
		if f := p.flight; f != nil && !f.hasLanded() && !slices.Contains(a.ahead, f) {
			a.ahead = append(a.ahead, f)
		}
	}
}

// inputErr returns the failure of a parameter that was computed ahead.
func (a *Async) inputErr() error {
	for _, f := range a.ahead {
		if <-f.landed; f.err != nil {
			return fmt.Errorf("loris: an input of the step on %v failed: %w", a.Device, f.err)
		}
	}
	return nil
}
