package container_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// These tests are named after issues of pytorch/pytorch: what users of
// AOTInductor's own container reported must not happen in this one.

// Folding with one instance, busy all the time, ends.
func Test181941DeadlockWithOneInstance(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := run(t, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 100 {
		values := m.version(float32(i))
		err := errors.Join(c.Update(within, values, container.Inactive), c.Fold(within, container.Inactive),
			c.Fold(within, container.Active), c.Swap(within), c.Fold(within, container.Active))
		release(values)
		if err != nil {
			t.Errorf("round %d: %v", i, err)
			break
		}
	}
	close(stop)
	wg.Wait()
}

// A run in which the sets are updated, swapped and freed sees one of them.
func Test181945TornWeights(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 2})
	mustRun(t, c)
	m.run = func(context.Context, *double) error {
		m.run = nil
		return errors.Join(
			m.update(c, 2, container.Inactive), c.Swap(ctx), c.FreeInactive(ctx),
			m.update(c, 3, container.Active), m.update(c, 4, container.Inactive))
	}
	if s := mustRun(t, c); s != (seen{1, 1, 2, 3}) {
		t.Errorf("a run saw %+v, began with 1", s)
	}
	if s := mustRun(t, c); s.w != 3 {
		t.Errorf("the next run saw %+v, want 3", s)
	}
}

// An update does not wait for runs to stop coming, nor do runs for an update.
func Test144459WriterStarvation(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 2})
	mustRun(t, c)
	gate, started := make(chan struct{}), make(chan struct{})
	m.run = func(context.Context, *double) error { started <- struct{}{}; <-gate; return nil }
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { mustRun(t, c) })
	}
	<-started
	<-started
	// All instances are busy and will be until the update and the swap are done.
	if err := errors.Join(m.update(c, 2, container.Inactive), c.Swap(ctx), m.update(c, 3, container.Active)); err != nil {
		t.Error(err)
	}
	m.run = nil
	close(gate)
	wg.Wait()
	if s := mustRun(t, c); s.w != 3 {
		t.Errorf("%+v", s)
	}
	// And the other way round: an update that copies keeps no run waiting.
	values := m.version(4)
	defer release(values)
	slow := &slowBuffer{Buffer: values["fc_bias"], reading: make(chan struct{}), gate: make(chan struct{})}
	values["fc_bias"] = slow
	wg.Go(func() {
		if err := c.Update(ctx, values, container.Active); err != nil {
			t.Error(err)
		}
	})
	<-slow.reading
	if s := mustRun(t, c); s.w != 3 {
		t.Errorf("during the update: %+v", s)
	}
	close(slow.gate)
	wg.Wait()
	if s := mustRun(t, c); s.w != 4 {
		t.Errorf("after the update: %+v", s)
	}
}

// slowBuffer waits until it is let to be read.
type slowBuffer struct {
	backend.Buffer
	reading, gate chan struct{}
}

func (b *slowBuffer) Bytes(ctx context.Context) ([]byte, error) {
	close(b.reading)
	<-b.gate
	return b.Buffer.Bytes(ctx)
}

// However often sets are folded, memory stays what it was.
func Test126059FoldingLeak(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 2})
	var high int64
	for i := range 100 {
		if err := errors.Join(m.update(c, float32(i), container.Inactive), c.Fold(ctx, container.Inactive),
			c.Fold(ctx, container.Inactive), c.Swap(ctx), c.Fold(ctx, container.Active)); err != nil {
			t.Fatal(err)
		}
		if s := mustRun(t, c); s.sum != float32(2*i) {
			t.Errorf("round %d: %+v", i, s)
		}
		if i == 5 {
			high = m.high.Load()
		}
	}
	if n := m.high.Load(); n != high {
		t.Errorf("%d bytes at the most in the first rounds, %d later", high, n)
	}
	if n := m.folds.Load(); n != 100 {
		t.Errorf("100 sets were folded %d times", n)
	}
}

// An instance whose run fails or panics is there for the next run.
func Test187875HangIfARunThrows(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	for i := range 10 {
		m.run = func(context.Context, *double) error {
			if i%2 == 0 {
				panic(errKernel)
			}
			return errKernel
		}
		within, cancel := context.WithTimeout(ctx, time.Minute)
		_, err := c.Run(within, x, nil)
		cancel()
		var p *container.PanicError
		if !errors.Is(err, errKernel) || errors.As(err, &p) != (i%2 == 0) {
			t.Errorf("run %d: %v", i, err)
		}
	}
	m.run = nil
	mustRun(t, c)
}

// As many runs as there are instances go on at the same time.
func Test134946InstancesRunInParallel(t *testing.T) {
	const n = 4
	m := &maker{}
	c := m.pool(t, container.Config{Instances: n})
	mustRun(t, c)
	var inside sync.WaitGroup
	inside.Add(n)
	m.run = func(context.Context, *double) error {
		inside.Done()
		inside.Wait() // for all of them
		return nil
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { mustRun(t, c) })
	}
	wg.Wait()
}

// The model without a pool: made from a map of constants, run, updated, deleted.
func TestPoolless(t *testing.T) {
	m := &maker{t: t}
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) { return without{&double{m: m}}, nil }, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	one := m.filled(1, 1)
	for _, v := range []float32{2, 3} {
		values := m.version(v)
		values["bn.running"], values["_tensor_constant0"] = one, one
		if err := c.Update(ctx, values, container.Active); err != nil {
			t.Fatal(err)
		}
		delete(values, "bn.running")
		delete(values, "_tensor_constant0")
		release(values)
		out, err := c.RunSingleThreaded(ctx, x, nil)
		if err != nil || len(out) != c.NumOutputs() {
			t.Fatalf("%d outputs, %v", len(out), err)
		}
		if s := look(t, out); s.w != v || s.sum != 2*v {
			t.Errorf("%+v, want %v", s, v)
		}
	}
	one.Release()
	if err := c.Close(); err != nil || m.live.Load() != 0 {
		t.Errorf("close: %v, %d bytes are left", err, m.live.Load())
	}
}

// A run that ends its goroutine returns its instance, too.
func TestRunThatExits(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	var tt testing.T
	m.run = func(context.Context, *double) error { tt.FailNow(); return nil }
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.Run(ctx, x, nil) })
	wg.Wait()
	m.run = nil
	mustRun(t, c)
}

// A buffer that the model writes is the instance's own: updates of the weights
// carry it on, sets do not contain what runs made of it, and a new value starts
// it again.
func Test165444MutableBuffers(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	want := func(v float32) {
		t.Helper()
		if s := mustRun(t, c); s.running != v {
			t.Errorf("the buffer is %v, want %v", s.running, v)
		}
	}
	want(2)
	want(3)
	if err := errors.Join(m.update(c, 2, container.Inactive), c.Swap(ctx)); err != nil {
		t.Fatal(err)
	}
	want(4)
	got, err := c.ExtractConstants(ctx, container.Active, false)
	if err != nil {
		t.Fatal(err)
	}
	if first(got["bn.running"]) != 1 {
		t.Errorf("the set has %v", first(got["bn.running"]))
	}
	release(got)
	b := m.filled(1, 10)
	defer b.Release()
	if err := c.Update(ctx, map[string]backend.Buffer{"bn.running": b}, container.Active, container.Partial()); err != nil {
		t.Fatal(err)
	}
	want(11)
}

// The first fold happens once, whoever comes first.
func TestFoldOnce(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 4})
	var inFold atomic.Int32
	m.fold = func(context.Context, *double) error {
		if inFold.Add(1) != 1 {
			t.Error("two folds at once")
		}
		time.Sleep(time.Millisecond)
		inFold.Add(-1)
		return nil
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var err error
			if i == 3 {
				err = c.Fold(ctx, container.Active)
			} else {
				_, err = run(t, c)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := m.folds.Load(); n != 1 {
		t.Errorf("%d folds", n)
	}
}

// A first fold that fails returns its instance, and the next run folds.
func TestFirstFoldFails(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	tries := 0
	m.fold = func(context.Context, *double) error {
		switch tries++; tries {
		case 1:
			return errKernel
		case 2:
			panic(errKernel)
		}
		return nil
	}
	for range 2 {
		if _, err := run(t, c); !errors.Is(err, errKernel) {
			t.Errorf("a run whose fold fails: %v", err)
		}
	}
	if s := mustRun(t, c); s.sum != 2 {
		t.Errorf("%+v", s)
	}
	// The same while others wait for the fold: one of them goes on.
	c2 := (&maker{fold: m.fold}).pool(t, container.Config{Instances: 3})
	tries = 0
	errs := make(chan error, 3)
	for range 3 {
		go func() { errs <- second(run(t, c2)) }()
	}
	failed := 0
	for range 3 {
		if err := <-errs; err != nil {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d runs failed, 2 folds did", failed)
	}
}

func TestFoldGivesUpWithItsContext(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 2})
	gate, folding := make(chan struct{}), make(chan struct{})
	m.fold = func(context.Context, *double) error { close(folding); <-gate; return nil }
	done := make(chan error)
	go func() { done <- second(run(t, c)) }()
	<-folding
	within, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := c.Run(within, x, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run that waits for a fold: %v", err)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What a model folds must be what it said it would.
func TestWrongFold(t *testing.T) {
	for name, fold := range map[string]func(*double) []backend.Buffer{
		"too few": func(d *double) []backend.Buffer { return []backend.Buffer{d.m.filled(1, 1)} },
		"none":    func(d *double) []backend.Buffer { return make([]backend.Buffer, cCount) },
		"a given": func(d *double) []backend.Buffer {
			v := make([]backend.Buffer, cCount)
			v[cSum], v[cW] = d.m.filled(1, 1), d.m.filled(1, 1)
			return v
		},
		"no values": func(*double) []backend.Buffer { return nil },
	} {
		m := &maker{t: t}
		c, err := container.New(ctx, func(context.Context) (backend.Model, error) {
			return folder{&double{m: m}, fold}, nil
		}, container.Config{Instances: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, c); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := c.Close(); err != nil || m.live.Load() != 0 {
			t.Errorf("%s: close: %v, %d bytes are left", name, err, m.live.Load())
		}
	}
}

type folder struct {
	*double
	fold func(*double) []backend.Buffer
}

func (f folder) FoldConstants(context.Context) ([]backend.Buffer, error) {
	return f.fold(f.double), nil
}

// An instance that cannot bind a set fails its runs until it can.
func TestBindFails(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	mustRun(t, c)
	m.bind = func(context.Context, *double) error { return errKernel }
	if err := m.update(c, 2, container.Active); err != nil {
		t.Errorf("an update whose set cannot be bound yet: %v", err)
	}
	for range 2 {
		if _, err := run(t, c); !errors.Is(err, errKernel) {
			t.Errorf("a run without constants: %v", err)
		}
	}
	m.bind = nil
	if s := mustRun(t, c); s.w != 2 {
		t.Errorf("%+v", s)
	}
	if n := m.live.Load(); n != oneSet {
		t.Errorf("%d bytes, want %d", n, oneSet)
	}
}

// Constants that do not fit their description are found when the container is
// made.
func TestWrongConstants(t *testing.T) {
	m := &maker{t: t}
	made := false
	for name, model := range map[string]func() backend.Model{
		"count": func() backend.Model { return countOff{&double{m: m}} },
		"panic": func() backend.Model { return panics{&double{m: m}} },
	} {
		_, err := container.New(ctx, func(context.Context) (backend.Model, error) { made = true; return model(), nil }, container.Config{Instances: 1})
		if err == nil || !made {
			t.Errorf("%s: no error", name)
		}
	}
	if m.live.Load() != 0 || m.closes.Load() != 2 {
		t.Errorf("%d bytes are left, %d instances closed", m.live.Load(), m.closes.Load())
	}
}

type countOff struct{ *double }

func (c countOff) InitialConstants(context.Context) ([]backend.Buffer, error) {
	return []backend.Buffer{c.m.filled(1, 1)}, nil
}

type panics struct{ *double }

func (panics) InitialConstants(context.Context) ([]backend.Buffer, error) { panic(errKernel) }

func TestSingleThreaded(t *testing.T) {
	m := &maker{}
	many := (&maker{}).pool(t, container.Config{Instances: 1, Max: 2})
	if _, err := many.RunSingleThreaded(ctx, x, nil); !errors.Is(err, container.ErrConcurrent) {
		t.Errorf("in a container of two: %v", err)
	}
	c := m.pool(t, container.Config{Instances: 1})
	single := func() (seen, error) {
		out, err := c.RunSingleThreaded(ctx, x, nil)
		if err != nil {
			return seen{}, err
		}
		return look(t, out), nil
	}
	if s, err := single(); err != nil || s.sum != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, pooled := range []bool{false, true} {
		gate, started := make(chan struct{}), make(chan struct{})
		m.run = func(context.Context, *double) error { close(started); <-gate; return nil }
		done := make(chan error)
		go func() {
			if pooled {
				done <- second(run(t, c))
				return
			}
			done <- second(single())
		}()
		<-started
		if _, err := single(); !errors.Is(err, container.ErrConcurrent) {
			t.Errorf("beside another (pooled %v): %v", pooled, err)
		}
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	m.run = func(context.Context, *double) error {
		m.run = nil
		return m.update(c, 2, container.Active) // retires the set that this run uses
	}
	if s, err := single(); err != nil || s.w != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if n := m.live.Load(); n != oneSet-wideBytes { // not folded yet
		t.Errorf("%d bytes after the run that used the old set, want %d", n, oneSet-wideBytes)
	}
	m.run = func(context.Context, *double) error { panic(errKernel) }
	if _, err := single(); !errors.Is(err, errKernel) {
		t.Errorf("a panic: %v", err)
	}
	m.run = nil
	if s, err := single(); err != nil || fmt.Sprint(s.w, s.sum) != "2 4" {
		t.Errorf("%+v, %v", s, err)
	}
}
