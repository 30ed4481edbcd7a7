package aoti_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/internal/host"
)

var swapDuration = flag.Duration("swap.duration", 500*time.Millisecond, "how long TestSwapUnderLoad swaps as fast as it can")

const runners = 8 // goroutines

// 181941: a swap deadlocks with one instance. 181945: a run sees torn weights.
// 144459: a writer starves. 126059: folding leaks. Here eight goroutines run while
// another updates, folds and swaps as fast as it can, and each output is that of
// one complete set.
func TestSwapUnderLoad(t *testing.T) {
	for _, name := range []string{"mlp", "mlp_2_6"} {
		for _, instances := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/%d", name, instances), func(t *testing.T) { swapUnderLoad(t, name, instances) })
		}
	}
}

// loaded is a model under load whose output is known for two sets.
type loaded struct {
	r     *aoti.Runner
	in    []aoti.Buffer
	sets  [2]map[string]aoti.Buffer
	want  [2][]byte
	runs  atomic.Int64
	torn  atomic.Int64
	swaps int
}

func newLoaded(t *testing.T, name string, instances int) *loaded {
	ctx := context.Background()
	f := open(t, name)
	l := &loaded{r: load(t, name, aoti.Instances(instances)), in: f.list(t, "in")}
	var err error
	if l.sets[0], err = l.r.ExtractConstants(ctx, aoti.Active, true); err != nil {
		t.Fatal(err)
	}
	l.sets[1] = map[string]aoti.Buffer{}
	for name, b := range l.sets[0] {
		was, err := aoti.Float32s(b)
		if err != nil {
			t.Fatal(err)
		}
		other := make([]float32, len(was))
		for i, x := range was {
			other[i] = 0.5 - x
		}
		l.sets[1][name] = aoti.FromSlice(other, b.Shape().Dims()...)
	}
	for i := range l.sets {
		if err := l.update(ctx, i); err != nil {
			t.Fatal(err)
		}
		outs, err := l.r.Run(ctx, l.in...)
		if err != nil {
			t.Fatal(err)
		}
		data, err := outs[0].Bytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		l.want[i] = bytes.Clone(data)
		outs[0].Release()
	}
	if bytes.Equal(l.want[0], l.want[1]) {
		t.Fatal("both sets give the same")
	}
	return l
}

// update makes set i the active one.
func (l *loaded) update(ctx context.Context, i int) error {
	if err := l.r.Update(ctx, l.sets[i], aoti.Inactive); err != nil {
		return err
	}
	if err := l.r.Fold(ctx, aoti.Inactive); err != nil {
		return err
	}
	return l.r.Swap(ctx)
}

// load runs until ctx ends.
func (l *loaded) load(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, runners)
	for g := range runners {
		wg.Go(func() {
			for ctx.Err() == nil && errs[g] == nil {
				errs[g] = l.run()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loaded) run() error {
	ctx := context.Background()
	outs, err := l.r.Run(ctx, l.in...)
	if err != nil {
		return err
	}
	data, err := outs[0].Bytes(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, l.want[0]) && !bytes.Equal(data, l.want[1]) {
		l.torn.Add(1)
	}
	outs[0].Release()
	l.runs.Add(1)
	return nil
}

// swapped runs the load for d while a goroutine swaps, every pause or as fast as
// it can, and returns the runs per second.
func (l *loaded) swapped(t *testing.T, d, pause time.Duration, swap bool) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; swap && err == nil && ctx.Err() == nil; i++ {
			if err = l.update(context.Background(), i%2); err == nil {
				l.swaps++
			}
			if pause > 0 {
				time.Sleep(pause)
			}
		}
		done <- err
	}()
	before, begun := l.runs.Load(), time.Now()
	if err := l.load(ctx); err != nil {
		t.Error(err)
	}
	rate := float64(l.runs.Load()-before) / time.Since(begun).Seconds()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return rate
}

func swapUnderLoad(t *testing.T, name string, instances int) {
	l := newLoaded(t, name, instances)
	l.swapped(t, *swapDuration/10, 0, true) // warm
	runtime.GC()
	bytesBefore, heapBefore := host.BytesInUse(), heap()
	most := watch(func() int64 { return host.BytesInUse() })
	l.runs.Store(0)
	l.swaps = 0
	l.swapped(t, *swapDuration, 0, true)
	peak := most()
	runs, swaps := l.runs.Load(), l.swaps
	// By turns, so that what else the machine does meanwhile weighs on both.
	const turns = 10
	quiet, paced := 0.0, 0.0
	for range turns {
		quiet += l.swapped(t, *swapDuration/3/turns, 0, false) / turns
		paced += l.swapped(t, *swapDuration/3/turns, 10*time.Millisecond, true) / turns
	}
	runtime.GC()
	fmt.Printf("%-10s %d goroutines, %d instances, %v: %d runs, %d swaps, torn=%d; constants %d KiB, peak %d KiB, after %d KiB; Go heap %+d KiB; %.0f runs/s alone, %.0f with 100 swaps/s: %.2f\n",
		name, runners, instances, *swapDuration, runs, swaps, l.torn.Load(), bytesBefore>>10, peak>>10, host.BytesInUse()>>10,
		(heap()-heapBefore)>>10, quiet, paced, paced/quiet)
	if n := l.torn.Load(); n > 0 {
		t.Errorf("%d torn outputs", n)
	}
	if runs == 0 || swaps == 0 {
		t.Errorf("%d runs and %d swaps", runs, swaps)
	}
	// Besides the active and the inactive set there may be one for each run in
	// flight, one that is being built and one that an instance is leaving; and the
	// runs have tensors of their own.
	const perRun = 16 << 10
	if set := setBytes(l); peak > set*int64(4+instances)+perRun*int64(instances) {
		t.Errorf("%d bytes at most, one set has %d", peak, set)
	}
}

func setBytes(l *loaded) (n int64) {
	for _, k := range l.r.Constants() {
		n += k.Bytes
	}
	return n
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// watch samples f until the function that it returns is called, which returns
// the largest sample.
func watch(f func() int64) func() int64 {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		most := f()
		for {
			select {
			case <-stop:
				result <- most
				return
			case <-time.After(time.Millisecond):
				most = max(most, f())
			}
		}
	}()
	return func() int64 { close(stop); return <-result }
}
