package executor_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/executor"
)

// What forks compute runs on a device at a time, a graph that they have in common too, unless the
// sessions are bounded together.
func TestForksRunBesideEachOther(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config executor.Config
		beside bool
	}{
		{"unbounded", executor.Config{Instances: 2}, true},
		{"WithThreads", executor.Config{Threads: 1}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			run, entered, release := blocking()
			f.running = run
			tt.config.Device = fakeDevice(0)
			s := newSession(t, tt.config)
			var wg sync.WaitGroup
			ys, errs := make([]*executor.Tensor, 2), make([]error, 2)
			for i := range ys {
				g := s.Fork()
				ys[i] = sum(t, g)
				wg.Go(func() { errs[i] = g.MarkStep(ctx) })
			}
			<-entered
			if tt.beside {
				<-entered
			} else {
				select {
				case <-entered:
					t.Error("two runs are under way")
				case <-time.After(10 * time.Millisecond):
				}
			}
			release()
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for _, y := range ys {
				want(t, y, 2, 4)
			}
		})
	}
}
