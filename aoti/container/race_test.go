package container_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/longtest"
)

var swapDuration = flag.Duration("swap.duration", 300*time.Millisecond, "how long TestSwapUnderLoad runs")

// runners is the number of goroutines that run.
const runners = 8

// load runs until stop is closed and checks that what each run saw is one
// version; it returns the number of runs. torn counts those that saw several.
func load(t *testing.T, c *container.Container, stop chan struct{}, torn *atomic.Int64) (*sync.WaitGroup, *atomic.Int64) {
	var wg sync.WaitGroup
	var runs atomic.Int64
	for range runners {
		wg.Go(func() {
			var v [outs]float32
			for {
				select {
				case <-stop:
					return
				default:
				}
				out, err := c.Run(ctx, x, nil)
				if err != nil {
					t.Error(err)
					return
				}
				for i, o := range out {
					v[i] = first(o)
					o.Release()
				}
				w := v[0]
				if v[1] != w || v[2] != w || v[3] != w || v[4] != 2*w || v[5] != 2*w {
					torn.Add(1)
				}
				runs.Add(1)
			}
		})
	}
	return &wg, &runs
}

// TestSwapUnderLoad runs with goroutines while another updates, folds, swaps and
// frees as fast as it can: each run sees one complete version, nothing hangs and
// memory does not grow. It prints what it measured.
func TestSwapUnderLoad(t *testing.T) {
	for _, instances := range []int{1, 4} {
		t.Run(fmt.Sprint(instances), func(t *testing.T) {
			m := &maker{}
			c := m.pool(t, container.Config{Instances: instances})
			var torn atomic.Int64
			stop := make(chan struct{})
			wg, runs := load(t, c, stop, &torn)
			swaps := 0
			var early int64
			end := time.Now().Add(*swapDuration)
			for begin := time.Now(); time.Now().Before(end) && !t.Failed(); swaps++ {
				if err := m.round(c, swaps); err != nil {
					t.Error(err)
				}
				if early == 0 && time.Since(begin) > *swapDuration/4 {
					early = m.high.Load()
				}
			}
			close(stop)
			wg.Wait()
			// A run that begins may hold the set that its instance had before and
			// its own; those in flight hold one, and what they return; the update
			// has its values; then there are two sets.
			bound := int64(2+2*min(instances, runners))*oneSet + 2*wideBytes + runners*outs*4
			t.Logf("%d instances: %d runs, %d swaps, %d torn, at most %d bytes (%d in the first quarter, bound %d)",
				instances, runs.Load(), swaps, torn.Load(), m.high.Load(), early, bound)
			if torn.Load() != 0 {
				t.Errorf("%d torn runs", torn.Load())
			}
			if held := m.live.Load(); held > 2*oneSet {
				t.Errorf("%d bytes at the end, two sets are %d", held, 2*oneSet)
			}
			if m.high.Load() > bound {
				t.Errorf("%d bytes at the most, want %d", m.high.Load(), bound)
			}
			if runs.Load() == 0 || swaps == 0 {
				t.Error("nothing happened")
			}
		})
	}
}

// round makes one version and swaps it in, in one of several ways.
func (m *maker) round(c *container.Container, i int) error {
	v := float32(i % 1000)
	switch i % 6 {
	case 0: // the first run folds
		return errors.Join(m.update(c, v, container.Inactive), c.Swap(ctx))
	case 1:
		return errors.Join(m.update(c, v, container.Inactive), c.Fold(ctx, container.Inactive), c.Swap(ctx), c.FreeInactive(ctx))
	case 2:
		return m.update(c, v, container.Active)
	case 3:
		return errors.Join(m.update(c, v, container.Active), c.Fold(ctx, container.Active))
	case 4:
		return errors.Join(c.Save(ctx, "v", container.Active), m.update(c, v, container.Inactive), c.Swap(ctx),
			c.Activate(ctx, "v"), c.Drop(ctx, "v"))
	}
	return errors.Join(m.update(c, v, container.Inactive, container.UserManaged()), c.Swap(ctx), c.Swap(ctx))
}

// TestEverythingRaces has several goroutines at each kind of call.
func TestEverythingRaces(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1, Max: 3})
	var torn atomic.Int64
	stop := make(chan struct{})
	wg, _ := load(t, c, stop, &torn)
	allowed := func(err error) {
		if err != nil && !errors.Is(err, container.ErrNoInactive) && !errors.Is(err, container.ErrNoVersion) &&
			!errors.Is(err, container.ErrVersionExists) && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	var admins sync.WaitGroup
	end := time.Now().Add(*swapDuration)
	for g, op := range []func(i int) error{
		func(i int) error { return m.update(c, float32(i%1000), container.Inactive) },
		func(i int) error { return m.update(c, float32(i%1000), container.Active, container.KeepInactive()) },
		func(int) error { return c.Fold(ctx, container.Inactive) },
		func(int) error { return c.Fold(ctx, container.Active) },
		func(int) error { return c.Swap(ctx) },
		func(int) error { return c.FreeInactive(ctx) },
		func(int) error { return errors.Join(c.Save(ctx, "a", container.Active), c.Activate(ctx, "a")) },
		func(int) error { c.Versions(); return c.Drop(ctx, "a") },
		func(i int) error {
			got, err := c.ExtractConstants(ctx, container.Which(i%2), i%3 == 0)
			if err == nil && first(got["fc.weight"]) != last(got["fc.bias"]) {
				t.Error("what was extracted is torn")
			}
			release(got)
			return err
		},
		func(i int) error {
			short, cancel := context.WithTimeout(ctx, time.Duration(i%50)*time.Microsecond)
			defer cancel()
			out, err := c.Run(short, x, nil)
			for _, o := range out {
				o.Release()
			}
			return err
		},
	} {
		admins.Go(func() {
			for i := g; time.Now().Before(end) && !t.Failed(); i++ {
				allowed(op(i))
			}
		})
	}
	admins.Wait()
	close(stop)
	wg.Wait()
	if torn.Load() != 0 {
		t.Errorf("%d torn runs", torn.Load())
	}
}

// Single-threaded runs are alone among runs only.
func TestSingleThreadedRaces(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		end := time.Now().Add(*swapDuration)
		for time.Now().Before(end) && !t.Failed() {
			out, err := c.RunSingleThreaded(ctx, x, nil)
			if err != nil {
				t.Error(err)
				return
			}
			look(t, out)
		}
	})
	for i := 0; ; i++ {
		select {
		case <-done:
			wg.Wait()
			if err := c.FreeInactive(ctx); err != nil {
				t.Error(err)
			}
			if n := m.live.Load(); n > oneSet {
				t.Errorf("%d bytes are held by one set", n)
			}
			return
		default:
		}
		if err := m.round(c, i); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThroughputWithSwaps prints what swapping 100 times a second costs runs
// that take about a tenth of a millisecond each.
func TestThroughputWithSwaps(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("it measures and asserts nothing")
	}
	for _, instances := range []int{1, 4} {
		var rate [2]float64
		for i, paced := range []bool{false, true} {
			m := &maker{run: func(context.Context, *double) error {
				for end := time.Now().Add(100 * time.Microsecond); time.Now().Before(end); {
					runtime.Gosched()
				}
				return nil
			}}
			c := m.pool(t, container.Config{Instances: instances})
			var torn atomic.Int64
			stop := make(chan struct{})
			begin := time.Now()
			wg, runs := load(t, c, stop, &torn)
			tick := time.NewTicker(10 * time.Millisecond)
			values := [2]map[string]backend.Buffer{m.version(1), m.version(2)}
			for n := 0; time.Since(begin) < *swapDuration; n++ {
				<-tick.C
				if !paced {
					continue
				}
				if err := errors.Join(c.Update(ctx, values[n%2], container.Inactive), c.Fold(ctx, container.Inactive), c.Swap(ctx)); err != nil {
					t.Error(err)
				}
			}
			tick.Stop()
			close(stop)
			wg.Wait()
			rate[i] = float64(runs.Load()) / time.Since(begin).Seconds()
			if torn.Load() != 0 {
				t.Errorf("%d torn runs", torn.Load())
			}
			release(values[0])
			release(values[1])
		}
		t.Logf("%d instances: %.0f runs/s, %.0f with 100 swaps a second: %.2f", instances, rate[0], rate[1], rate[1]/rate[0])
	}
}
