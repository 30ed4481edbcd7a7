package dist

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestBounded ends the context of a part in each way, with and without somebody who waits in its channel,
// and uses it again.
func TestBounded(t *testing.T) {
	worlds, callers := errors.New("the world has failed"), errors.New("the caller has ended")
	for _, waits := range []bool{false, true} {
		for _, x := range []struct {
			name string
			end  func(w *world, caller context.CancelCauseFunc)
			want error
		}{
			{"world", func(w *world, _ context.CancelCauseFunc) { w.cancel(worlds) }, worlds},
			{"caller", func(_ *world, caller context.CancelCauseFunc) { caller(callers) }, callers},
			{"limit", func(*world, context.CancelCauseFunc) { time.Sleep(time.Minute) }, context.DeadlineExceeded},
		} {
			synctest.Test(t, func(t *testing.T) {
				w := &world{limit: time.Minute, late: context.DeadlineExceeded}
				w.ctx, w.cancel = context.WithCancelCause(t.Context())
				b := &bounded{w: w}
				b.begin(t.Context())
				time.Sleep(2 * time.Minute) // nobody asks
				if err := b.Err(); err != nil {
					t.Errorf("%s: %v before it ends", x.name, err)
				}
				b.end()
				caller, cancel := context.WithCancelCause(t.Context())
				b.begin(caller)
				if err := context.Cause(b); err != nil {
					t.Errorf("%s: %v when it is used again", x.name, err)
				}
				var done <-chan struct{}
				if waits {
					done = b.Done()
				}
				x.end(w, cancel)
				if waits {
					<-done
				}
				if err := context.Cause(b); !errors.Is(err, x.want) || b.Err() == nil {
					t.Errorf("%s: it ends with %v, want %v", x.name, err, x.want)
				}
				b.end()
				cancel(nil)
				w.cancel(nil)
			})
		}
	}
}
