package dist

import (
	"context"
	"sync"
	"time"
)

// bounded is the context of a part of a rank: it ends with the world's, with the caller's and after the
// limit. Err asks them and costs no timer; engines that wait in channels have Done make one. The limit
// counts from the first question: what does not wait does not look at the clock.
type bounded struct {
	w      *world
	caller context.Context

	mu   sync.Mutex
	late time.Time       // when the limit is over; zero until somebody asks
	done context.Context // nil until Done is called
	stop func()
}

// ended returns the cause that ends the part but for the limit.
func (b *bounded) ended() error {
	if err := context.Cause(b.w.ctx); err != nil {
		return err
	}
	return context.Cause(b.caller)
}

// Deadline implements context.Context.
func (b *bounded) Deadline() (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.deadline(time.Now()), true
}

// deadline returns when the limit is over; b.mu is held.
func (b *bounded) deadline(now time.Time) time.Time {
	if b.late.IsZero() {
		b.late = now.Add(b.w.limit)
	}
	return b.late
}

// Err returns the cause, which context.Cause then returns, too.
func (b *bounded) Err() error {
	if err := b.ended(); err != nil {
		return err
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !now.Before(b.deadline(now)) {
		return b.w.late
	}
	return nil
}

// Value implements context.Context.
func (b *bounded) Value(key any) any { return b.w.ctx.Value(key) }

// Done implements context.Context.
func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		ctx, cancel := context.WithDeadline(b.w.ctx, b.deadline(time.Now()))
		unwatch := context.AfterFunc(b.caller, cancel)
		b.done, b.stop = ctx, func() { unwatch(); cancel() }
	}
	return b.done.Done()
}

// begin makes b the context of another part.
func (b *bounded) begin(caller context.Context) { b.caller = caller }

// end frees what the part's context has made.
func (b *bounded) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop != nil {
		b.stop()
	}
	b.caller, b.done, b.stop, b.late = nil, nil, nil, time.Time{}
}
