package executor_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// The walk's hook sees the roots of each collection, in the order of the tensors.
func TestRunPostOrderHook(t *testing.T) {
	var roots [][]ir.Value
	s := newSession(t, executor.Config{Hooks: executor.Hooks{
		RunPostOrder: func(r []ir.Value, next func([]ir.Value) graph.PostOrder) graph.PostOrder {
			roots = append(roots, slices.Clone(r))
			return next(r)
		},
	}})
	x := floats(t, s, []float32{1, 2}, 2)
	y := binaryOp(s, aten.Add, x, x)
	z := binaryOp(s, aten.Mul, y, y)
	mark(t, s)
	want(t, z, 4, 16)
	if len(roots) != 1 || len(roots[0]) != 1 || roots[0][0].Node.Op() != aten.Mul {
		t.Errorf("the hook saw %v, want the product alone", roots)
	}
}

// The barrier's hook sees each collection, hashed, before its device is locked:
// a sync of several devices goes by them in one order, whatever the tensors'.
func TestTensorCollectionBarrierHook(t *testing.T) {
	f := newFake(t)
	var seen []executor.SyncTensorCollection
	s := newSession(t, executor.Config{Device: fakeDevice(0), Hooks: executor.Hooks{
		TensorCollectionBarrier: func(c *executor.SyncTensorCollection) { seen = append(seen, *c) },
	}})
	on := func(d int, v float32) *executor.Tensor {
		x := floatsOn(t, s, fakeDevice(d), v)
		return binaryOp(s, aten.Add, x, x)
	}
	a, b, c := on(1, 1), on(0, 2), on(1, 3)
	asyncs, err := s.SyncTensors(ctx, []*executor.Tensor{a, b, c}, executor.SyncTensorsConfig{ForceData: true, SyncData: true})
	if err != nil {
		t.Fatal(err)
	}
	want(t, a, 2)
	want(t, b, 4)
	want(t, c, 6)
	if len(seen) != 2 || len(asyncs) != 2 {
		t.Fatalf("%d collections and %d asyncs, want 2 of each", len(seen), len(asyncs))
	}
	for i, indices := range [][]int{{1}, {0, 2}} {
		got := seen[i]
		if got.Device != fakeDevice(i) || !slices.Equal(got.Indices, indices) || got.Hash == (ir.Hash{}) || got.Hash != asyncs[i].Hash {
			t.Errorf("collection %d is %+v, want tensors %v on %v with the hash %v", i, got, indices, fakeDevice(i), asyncs[i].Hash)
		}
	}
	if n := f.runs.Load(); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

// Syncs that name two devices in opposite orders do not wait for each other for
// ever.
func TestDevicesInOppositeOrders(t *testing.T) {
	newFake(t)
	s := newSession(t, executor.Config{Device: fakeDevice(0)})
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			g := s.Fork()
			for n := range 50 {
				ts := make([]*executor.Tensor, 2)
				for k := range ts {
					x := floatsOn(t, g, fakeDevice((i+k)%2), float32(n))
					ts[k] = binaryOp(g, aten.Add, x, x)
				}
				if _, err := g.SyncTensors(limit, ts, executor.SyncTensorsConfig{ForceData: true, SyncData: true}); err != nil {
					errs[i] = err
					return
				}
				for _, x := range ts {
					if v := read(t, x); v[0] != float32(2*n) {
						errs[i] = fmt.Errorf("got %v, want %v", v, 2*n)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// Random numbers are drawn from the hook's seed, not the session's.
func TestGetRngSeedHook(t *testing.T) {
	draw := func(s *executor.Session) []float32 {
		x := newTensor()
		s.Random(ir.Device{}, aten.Uniform, x, []any{[]int{4}, ir.F32})
		return read(t, x)
	}
	var devices []ir.Device
	hooked := newSession(t, executor.Config{Hooks: executor.Hooks{RngSeed: func(_ *executor.Session, d ir.Device) ir.Value {
		devices = append(devices, d)
		return ir.NewScalar(&ir.ScalarLeaf{Int: 7}, ir.I64, ir.Device{}, false).Out(0)
	}}})
	plain := newSession(t, executor.Config{Seed: 7})
	first := draw(plain)
	if got := draw(hooked); !slices.Equal(got, first) {
		t.Errorf("drew %v, want those of the seed 7, %v", got, first)
	}
	mark(t, plain)
	mark(t, hooked)
	if second := draw(plain); slices.Equal(second, first) {
		t.Error("a step drew what the one before did")
	}
	if got := draw(hooked); !slices.Equal(got, first) {
		t.Errorf("drew %v in the second step, want those of the seed 7 again", got)
	}
	if want := []ir.Device{hooked.Device(), hooked.Device()}; !slices.Equal(devices, want) {
		t.Errorf("asked for seeds of %v, want %v", devices, want)
	}
}

// Every stage of a step is observed, the run with the computation's hash.
func TestObserveHook(t *testing.T) {
	var mu sync.Mutex
	seen := map[report.Stage][]report.Observation{}
	s := newSession(t, executor.Config{Hooks: executor.Hooks{Observe: func(o report.Observation) {
		mu.Lock()
		defer mu.Unlock()
		seen[o.Stage] = append(seen[o.Stage], o)
	}}})
	x := floats(t, s, []float32{1, 2}, 2)
	y := binaryOp(s, aten.Add, x, x)
	hash, err := s.GraphHash(y)
	if err != nil {
		t.Fatal(err)
	}
	mark(t, s)
	want(t, y, 2, 4)
	mu.Lock()
	defer mu.Unlock()
	for _, stage := range report.Stages() {
		if len(seen[stage]) == 0 {
			t.Errorf("%v was not observed", stage)
		}
	}
	for _, o := range seen[report.StageRun] {
		if o.Hash != hash || o.Device != s.Device() || o.Err != nil {
			t.Errorf("the run is %+v, want the hash %v", o, hash)
		}
	}
}

// What a sync does to its tensors: whether they hold the results, and whether
// they keep their graphs.
func TestSyncTensorsConfig(t *testing.T) {
	for _, c := range []struct {
		cfg     executor.SyncTensorsConfig
		pending bool // after the sync
		nodes   int  // of a graph that goes on from the tensor
	}{
		{executor.SyncTensorsConfig{}, true, 3},
		{executor.SyncTensorsConfig{SyncData: true}, true, 3},
		{executor.SyncTensorsConfig{ForceData: true}, false, 3},
		{executor.SyncTensorsConfig{ForceData: true, SyncData: true}, false, 2},
	} {
		t.Run(fmt.Sprintf("%+v", c.cfg), func(t *testing.T) {
			f, s := fakeSession(t)
			y := sum(t, s)
			asyncs, err := s.SyncTensors(ctx, []*executor.Tensor{y}, c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(asyncs) != 1 || asyncs[0].Wait(ctx) != nil || f.runs.Load() != 1 {
				t.Fatalf("%d asyncs and %d runs", len(asyncs), f.runs.Load())
			}
			if y.Pending() != c.pending {
				t.Errorf("pending: %v", y.Pending())
			}
			before := s.Report().Nodes
			want(t, binaryOp(s, aten.Mul, y, y), 4, 16)
			if n := int(s.Report().Nodes - before); n != c.nodes {
				t.Errorf("what goes on from the tensor has %d nodes, want %d", n, c.nodes)
			}
			want(t, y, 2, 4)
		})
	}
}

// Tensors that are not on the devices named are left alone.
func TestSyncOfSomeDevices(t *testing.T) {
	newFake(t)
	s := newSession(t, executor.Config{Device: fakeDevice(0)})
	var ts []*executor.Tensor
	for d := range 2 {
		x := floatsOn(t, s, fakeDevice(d), 3)
		ts = append(ts, binaryOp(s, aten.Add, x, x))
	}
	if _, err := s.SyncTensors(ctx, ts, executor.SyncTensorsConfig{ForceData: true, SyncData: true}, fakeDevice(1)); err != nil {
		t.Fatal(err)
	}
	if !ts[0].Pending() || ts[1].Pending() {
		t.Errorf("pending: %v on the device left out, %v on the one named", ts[0].Pending(), ts[1].Pending())
	}
	want(t, ts[0], 6)
	want(t, ts[1], 6)
}
