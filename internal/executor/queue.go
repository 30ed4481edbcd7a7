package executor

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/internal/ir"
)

// defaultInFlight is enough for a device to find its next computation in its queue while the
// host learns that one is done and enqueues another.
const defaultInFlight = 3

// submission is a computation in the queue of a device that runs its work in order
// (backend.QueueModel). Further work of that device may take its outputs before it is done.
type submission struct {
	prev *submission   // the one before it in the queue; nil once that is done
	done chan struct{} // closed when the work is done
	err  error         // of the work; set before done is closed
}

// isDone reports whether the work is done, without waiting.
func (f *submission) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// deviceQueue bounds the submissions of a device.
type deviceQueue struct {
	slots     *semaphore.Weighted // each submission holds one
	submitted []*submission       // not done yet, in order; guarded by core.mu
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
		q = &deviceQueue{slots: semaphore.NewWeighted(int64(max(n, 1)))}
		c.queues[d] = q
	}
	return q
}

// submit appends a submission to a queue of which the caller holds a slot.
func (c *core) submit(q *deviceQueue) *submission {
	f := &submission{done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(q.submitted); n > 0 {
		f.prev = q.submitted[n-1]
	}
	q.submitted = append(q.submitted, f)
	return f
}

// await waits for the work p of a submission. Only the first in the queue asks the device,
// which may take a processor; each other one waits for its predecessor first.
func (f *submission) await(p *container.Pending) error {
	if f.prev != nil {
		<-f.prev.done
		f.prev = nil // otherwise each submission would keep all before it alive
	}
	return p.Wait(context.Background())
}

// complete removes a submission from its queue and wakes those who wait for it.
func (c *core) complete(q *deviceQueue, f *submission, err error) {
	c.mu.Lock()
	q.submitted = slices.DeleteFunc(q.submitted, func(g *submission) bool { return g == f })
	c.mu.Unlock()
	f.err = err
	close(f.done)
	q.slots.Release(1)
}

// waitSubmissions waits for what is in the queues of the devices, all of them if none is
// given, and reports whether there was anything.
func (c *core) waitSubmissions(ctx context.Context, devices []ir.Device) (waited bool, err error) {
	c.mu.Lock()
	var all []*submission
	for d, q := range c.queues {
		if wanted(d, devices) {
			all = append(all, q.submitted...)
		}
	}
	c.mu.Unlock()
	for _, f := range all {
		select {
		case <-f.done:
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
	return len(all) > 0, nil
}

// noteQueuedInputs keeps the submissions that compute parameters and are not done yet. The
// order of their device completes them before what is computed from them.
func (a *Async) noteQueuedInputs() {
	for _, p := range a.params {
		if f := p.submission; f != nil && !f.isDone() && !slices.Contains(a.queuedInputs, f) {
			a.queuedInputs = append(a.queuedInputs, f)
		}
	}
}

// queuedInputErr waits for the submissions that noteQueuedInputs kept and returns the first
// error among them.
func (a *Async) queuedInputErr() error {
	for _, f := range a.queuedInputs {
		if <-f.done; f.err != nil {
			return fmt.Errorf("loris: an input of the step on %v failed: %w", a.Device, f.err)
		}
	}
	return nil
}
