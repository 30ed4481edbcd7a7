package container_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// oneSet is the bytes of a complete set, shared those of the tensor constant and
// the buffer, which updates carry over.
const (
	oneSet = 3*wideBytes + shared
	shared = 8
)

func TestSwapAndFree(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 2})
	if err := errors.Join(m.update(c, 2, container.Inactive), c.Fold(ctx, container.Inactive)); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, c); s.w != 1 {
		t.Errorf("before the swap: %+v", s)
	}
	folds := m.folds.Load()
	for _, want := range []float32{2, 1, 2} {
		if err := c.Swap(ctx); err != nil {
			t.Fatal(err)
		}
		if s := mustRun(t, c); s.w != want {
			t.Errorf("after a swap: %+v, want %v", s, want)
		}
	}
	if n := m.folds.Load(); n != folds {
		t.Errorf("%d folds of sets that were folded", n-folds)
	}
	if n := m.live.Load(); n != 2*oneSet-shared {
		t.Errorf("two sets take %d bytes, want %d", n, 2*oneSet-shared)
	}
	if err := errors.Join(c.FreeInactive(ctx), c.FreeInactive(ctx)); err != nil {
		t.Fatal(err)
	}
	if n := m.live.Load(); n != oneSet {
		t.Errorf("one set takes %d bytes, want %d", n, oneSet)
	}
	for name, err := range map[string]error{"swap": c.Swap(ctx), "fold": c.Fold(ctx, container.Inactive), "save": c.Save(ctx, "x", container.Inactive)} {
		if !errors.Is(err, container.ErrNoInactive) {
			t.Errorf("%s without an inactive set: %v", name, err)
		}
	}
}

func TestVersions(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(c.Save(ctx, "v1", container.Active))
	must(m.update(c, 2, container.Inactive), c.Save(ctx, "v2", container.Inactive), c.Swap(ctx))
	must(m.update(c, 3, container.Active), c.Save(ctx, "v3", container.Active))
	for _, tt := range []struct {
		name string
		want float32
	}{{"v1", 1}, {"v1", 1}, {"v3", 3}, {"v2", 2}} {
		must(c.Activate(ctx, tt.name))
		if s := mustRun(t, c); s.w != tt.want {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
	must(c.Swap(ctx)) // back to what was active before
	if s := mustRun(t, c); s.w != 3 {
		t.Errorf("rolled back: %+v", s)
	}
	want := []container.Version{{Name: "v1", Folded: true}, {Name: "v2", Inactive: true, Folded: true}, {Name: "v3", Active: true, Folded: true}}
	if got := c.Versions(); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	for name, tt := range map[string]struct{ err, want error }{
		"save":     {c.Save(ctx, "v1", container.Active), container.ErrVersionExists},
		"activate": {c.Activate(ctx, "v9"), container.ErrNoVersion},
		"drop":     {c.Drop(ctx, "v9"), container.ErrNoVersion},
	} {
		var ve *container.VersionError
		if !errors.Is(tt.err, tt.want) || !errors.As(tt.err, &ve) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
	must(c.FreeInactive(ctx)) // v2 stays saved
	must(c.Activate(ctx, "v2"), c.Drop(ctx, "v2"), c.Drop(ctx, "v3"), c.Drop(ctx, "v1"))
	if s := mustRun(t, c); s.w != 2 {
		t.Errorf("a dropped version that is active: %+v", s)
	}
	must(c.FreeInactive(ctx))
	if n := m.live.Load(); n > oneSet {
		t.Errorf("%d bytes are held by one set, want %d at most", n, oneSet)
	}
}

// At no time are there more than two sets and what runs in flight hold, and the
// sum of what updates are given.
func TestTwoSetsAtMost(t *testing.T) {
	for _, instances := range []int{1, 4} {
		t.Run(fmt.Sprint(instances), func(t *testing.T) {
			m := &maker{}
			c := m.pool(t, container.Config{Instances: instances})
			given := [2]map[string]backend.Buffer{m.version(2), m.version(3)}
			base := m.live.Load() - oneSet + wideBytes // the first set is not folded yet
			for i := range 200 {
				var err error
				switch i % 9 {
				case 0, 4:
					err = c.Update(ctx, given[i%2], container.Inactive)
				case 1:
					err = c.Fold(ctx, container.Inactive)
				case 2, 7:
					err = c.Swap(ctx)
				case 3:
					err = c.Update(ctx, given[i%2], container.Active)
					if err == nil {
						err = c.Fold(ctx, container.Active)
					}
				case 5:
					_, err = run(t, c)
				case 6:
					err = c.Update(ctx, map[string]backend.Buffer{"fc_bias": given[i%2]["fc_bias"]}, container.Inactive, container.Partial())
				case 8:
					_, err = run(t, c)
					if err == nil && i > 100 {
						err = c.FreeInactive(ctx)
						if n := m.live.Load() - base; n > oneSet {
							t.Errorf("after freeing, %d bytes", n)
						}
					}
				}
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if n := m.live.Load() - base; n > 2*oneSet {
					t.Fatalf("step %d: %d bytes, two sets are %d", i, n, 2*oneSet)
				}
			}
			// What runs return is counted, too.
			if n := m.high.Load() - base; n > 2*oneSet+4*outs {
				t.Errorf("at the most %d bytes, two sets are %d", n, 2*oneSet)
			}
			release(given[0])
			release(given[1])
		})
	}
}

// An instance that idles does not keep a set that is gone, and one that runs
// keeps it until the run is over.
func TestIdleInstancesLetGo(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 3})
	gate, started := make(chan struct{}), make(chan struct{})
	mustRun(t, c)
	hold := true
	m.run = func(context.Context, *double) error {
		if hold {
			hold = false
			close(started)
			<-gate
		}
		return nil
	}
	done := make(chan seen)
	go func() { s, _ := run(t, c); done <- s }()
	<-started
	if err := m.update(c, 2, container.Active); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, c); s.w != 2 {
		t.Errorf("a run after the update: %+v", s)
	}
	if n := m.live.Load(); n != 2*oneSet-shared {
		t.Errorf("%d bytes while a run holds the old set, want %d", n, 2*oneSet-shared)
	}
	close(gate)
	if s := <-done; s.w != 1 {
		t.Errorf("the run in flight: %+v", s)
	}
	if n := m.live.Load(); n != oneSet {
		t.Errorf("%d bytes after the run, want %d", n, oneSet)
	}
}

func TestKeepInactive(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	if err := errors.Join(m.update(c, 2, container.Inactive), m.update(c, 3, container.Active, container.KeepInactive())); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, c); s.w != 3 {
		t.Errorf("%+v", s)
	}
	if err := c.Swap(ctx); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, c); s.w != 2 {
		t.Errorf("the inactive set that was kept: %+v", s)
	}
	if err := m.update(c, 4, container.Active); err != nil {
		t.Fatal(err)
	}
	if err := c.Swap(ctx); !errors.Is(err, container.ErrNoInactive) {
		t.Errorf("an update of the active set left the inactive one: %v", err)
	}
}

func TestConstantsOutsideTheModel(t *testing.T) {
	m := &maker{}
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) { return without{&double{m: m}}, nil }, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	m.t = t
	var ce *container.ConstantError
	if _, err := run(t, c); !errors.As(err, &ce) || ce.Name != "fc_weight" || !errors.Is(err, container.ErrMissing) {
		t.Errorf("a run without weights: %v", err)
	}
	b := blob(3)
	if err := c.UpdateFromBytes(ctx, b, container.Active); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, c); s.w != 3 {
		t.Errorf("%+v", s)
	}
	if err := c.Close(); err != nil || m.live.Load() != 0 {
		t.Errorf("close: %v, %d bytes are left", err, m.live.Load())
	}
}

// without is a double that holds no constants.
type without struct{ *double }

func (w without) InitialConstants(context.Context) ([]backend.Buffer, error) {
	return make([]backend.Buffer, cCount), nil
}
