package container_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// runVersion is run on a saved version, by either call.
func runVersion(t testing.TB, c *container.Container, name string, into bool) (seen, error) {
	t.Helper()
	if into {
		out := make([]backend.Buffer, outs)
		if err := c.RunVersionInto(ctx, name, x, nil, out); err != nil {
			return seen{}, err
		}
		return look(t, out), nil
	}
	out, err := c.RunVersion(ctx, name, x, nil)
	if err != nil {
		return seen{}, err
	}
	return look(t, out), nil
}

// placesModel is what the sets of a container are, as values: 0 is no set.
type placesModel struct {
	active, inactive float32
	saved            map[string]float32
}

// step does one random operation on the container and on the model of it.
func (p *placesModel) step(t *testing.T, m *maker, c *container.Container, r *rand.Rand, v float32) (what string, err error) {
	name := fmt.Sprint("v", r.IntN(4))
	saved, known := p.saved[name]
	expect := func(s seen, err error, want float32, known bool) error {
		switch {
		case known && err == nil && s.w == want:
			return nil
		case !known && errors.Is(err, container.ErrNoVersion):
			return nil
		}
		return fmt.Errorf("saw %+v and %w; want %v, saved %v", s, err, want, known)
	}
	switch op := r.IntN(9); op {
	case 0:
		p.inactive = v
		return "update inactive", m.update(c, v, container.Inactive)
	case 1:
		p.active, p.inactive = v, 0
		return "update active", m.update(c, v, container.Active)
	case 2:
		if err := c.Swap(ctx); (p.inactive == 0) != errors.Is(err, container.ErrNoInactive) {
			return "swap", err
		}
		if p.inactive != 0 {
			p.active, p.inactive = p.inactive, p.active
		}
		return "swap", nil
	case 3:
		err := c.Save(ctx, name, container.Active)
		if known != errors.Is(err, container.ErrVersionExists) {
			return "save", err
		}
		if !known {
			p.saved[name] = p.active
		}
		return "save", nil
	case 4:
		if err := c.Drop(ctx, name); known != (err == nil) {
			return "drop", err
		}
		delete(p.saved, name)
		return "drop", nil
	case 5:
		if err := c.Activate(ctx, name); known != (err == nil) {
			return "activate", err
		}
		if known && saved != p.active {
			p.active, p.inactive = saved, p.active
		}
		return "activate", nil
	case 6:
		s, err := run(t, c)
		return "run", expect(s, err, p.active, true)
	default:
		s, err := runVersion(t, c, name, op == 7)
		return "run " + name, expect(s, err, saved, known)
	}
}

// A run on a version sees that version, and a plain run the active set, after
// whatever was updated, swapped, saved and dropped before.
func TestRunVersionModel(t *testing.T) {
	for _, instances := range []int{1, 2} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(instances, "/", seed), func(t *testing.T) {
				m := &maker{}
				c := m.pool(t, container.Config{Instances: instances})
				p := placesModel{active: 1, saved: map[string]float32{}}
				r := rand.New(rand.NewPCG(seed, 17))
				for i := range 200 {
					what, err := p.step(t, m, c, r, float32(i+2))
					if err != nil {
						t.Fatalf("step %d, %s: %v; the model is %+v", i, what, err, p)
					}
					if n, most := m.live.Load(), int64((2+len(p.saved))*oneSet); n > most {
						t.Fatalf("step %d, %s: %d bytes, at most %d belong to %+v", i, what, n, most, p)
					}
				}
			})
		}
	}
}

// A version that is dropped while a run computes with it stays whole until the
// run is over, and is freed then.
func TestRunVersionOutlivesDrop(t *testing.T) {
	for _, instances := range []int{1, 2} {
		m := &maker{}
		c := m.pool(t, container.Config{Instances: instances})
		if err := errors.Join(m.update(c, 2, container.Inactive), c.Save(ctx, "new", container.Inactive)); err != nil {
			t.Fatal(err)
		}
		gate, started := make(chan struct{}), make(chan struct{})
		var once sync.Once
		m.run = func(context.Context, *double) error {
			once.Do(func() { close(started); <-gate })
			return nil
		}
		done := make(chan seen)
		go func() {
			s, err := runVersion(t, c, "new", false)
			if err != nil {
				t.Error(err)
			}
			done <- s
		}()
		<-started
		if err := errors.Join(c.Drop(ctx, "new"), c.FreeInactive(ctx)); err != nil {
			t.Fatal(err)
		}
		if _, err := runVersion(t, c, "new", true); !errors.Is(err, container.ErrNoVersion) {
			t.Errorf("a run on a version that was dropped: %v", err)
		}
		close(gate)
		if s := <-done; s.w != 2 {
			t.Errorf("the run in flight: %+v", s)
		}
		mustRun(t, c) // the instance has let go by now
		if n := m.live.Load(); n > oneSet {
			t.Errorf("%d instances: %d bytes after the run, one set is %d", instances, n, oneSet)
		}
	}
}

func TestRunVersionFailures(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	if err := c.Save(ctx, "a", container.Active); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.update(c, 2, container.Active)); err != nil {
		t.Fatal(err)
	}
	m.bind = func(context.Context, *double) error { return errKernel }
	if _, err := runVersion(t, c, "a", false); !errors.Is(err, errKernel) {
		t.Errorf("a bind that fails: %v", err)
	}
	m.bind = nil
	if s := mustRun(t, c); s.w != 2 {
		t.Errorf("a plain run after a failed bind: %+v", s)
	}
	m.run = func(context.Context, *double) error { panic("boom") }
	var pe *container.PanicError
	if _, err := runVersion(t, c, "a", false); !errors.As(err, &pe) {
		t.Errorf("a panic: %v", err)
	}
	m.run = nil
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.RunVersion(stopped, "a", x, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if s, err := runVersion(t, c, "a", true); err != nil || s.w != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := runVersion(t, c, "a", false); !errors.Is(err, container.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestRunVersionRaces has goroutines run on versions and on the active set while
// others make, activate and drop versions: each run on a version sees the value
// that its name says, or is told that there is none.
func TestRunVersionRaces(t *testing.T) {
	for _, instances := range []int{1, 3} {
		t.Run(fmt.Sprint(instances), func(t *testing.T) {
			m := &maker{}
			c := m.pool(t, container.Config{Instances: instances})
			var torn, named, refused atomic.Int64
			stop := make(chan struct{})
			wg, _ := load(t, c, stop, &torn)
			var newest atomic.Int64
			for g := range 3 {
				wg.Go(func() {
					for i := int64(g); ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						v := max(2, newest.Load()-i%4)
						s, err := runVersion(t, c, fmt.Sprint(v), i%2 == 0)
						switch {
						case errors.Is(err, container.ErrNoVersion):
							refused.Add(1)
						case err != nil:
							t.Error(err)
							return
						case s.w != float32(v):
							t.Errorf("version %d computed with %v", v, s.w)
							return
						default:
							named.Add(1)
						}
					}
				})
			}
			end := time.Now().Add(*swapDuration)
			for v := int64(2); time.Now().Before(end) && !t.Failed(); v++ {
				name := fmt.Sprint(v)
				err := errors.Join(m.update(c, float32(v), container.Inactive), c.Save(ctx, name, container.Inactive))
				newest.Store(v)
				if v%2 == 0 {
					err = errors.Join(err, c.Activate(ctx, name))
				}
				if v > 4 {
					err = errors.Join(err, c.Drop(ctx, fmt.Sprint(v-2)))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for named.Load() == 0 && !t.Failed() { // the last versions stay
				time.Sleep(time.Millisecond)
			}
			close(stop)
			wg.Wait()
			if torn.Load() != 0 {
				t.Errorf("%d torn runs", torn.Load())
			}
			t.Logf("%d runs on versions, %d were told that theirs is gone", named.Load(), refused.Load())
		})
	}
}
