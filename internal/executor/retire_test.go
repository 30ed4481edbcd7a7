package executor_test

import (
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// What a variable held is released when a Step has replaced it, whether the step
// read it or not, and only if nothing else can reach it: a release too many is a
// use after it in the fake backend.
func TestStepReleasesTheOldValue(t *testing.T) {
	tests := map[string]struct {
		step func(tr *training)
		want int64 // releases of a step
	}{
		"read by the step": {func(tr *training) { tr.train() }, 1},
		"overwritten": {func(tr *training) {
			tr.step(func() error {
				tr.v.Assign(ones(tr.s))
				return nil
			})
		}, 1},
		"overwritten twice": {func(tr *training) {
			tr.step(func() error {
				tr.v.Assign(ones(tr.s))
				tr.v.Assign(tr.double(value(tr.s, tr.v)))
				return nil
			})
		}, 1},
		"read by the user": {func(tr *training) {
			h := value(tr.s, tr.v)
			tr.train()
			if _, err := h.Fetch(ctx); err != nil {
				tr.t.Error(err)
			}
		}, 0},
		"read inside the step": {func(tr *training) {
			tr.step(func() error {
				if _, err := value(tr.s, tr.v).Fetch(ctx); err != nil {
					return err
				}
				tr.v.Assign(ones(tr.s))
				return nil
			})
		}, 0},
		"given to another device": {func(tr *training) {
			tr.step(func() error {
				there := newTensor()
				if err := tr.s.Copy(ctx, there, value(tr.s, tr.v), fakeDevice(1)); err != nil {
					return err
				}
				tr.s.Keep(there)
				tr.v.Assign(ones(tr.s))
				return nil
			})
		}, 0},
		"marked by MarkStep": {func(tr *training) {
			tr.v.Assign(ones(tr.s))
			mark(tr.t, tr.s)
		}, 0},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTraining(t)
			for range 3 {
				tr.train()
				tr.wait()
				before := tr.f.releases.Load()
				c.step(tr)
				tr.wait()
				if n := tr.f.releases.Load() - before; n != c.want {
					t.Errorf("%d releases, want %d", n, c.want)
				}
			}
			if _, err := value(tr.s, tr.v).Fetch(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// A step that fails gives the old value back, whole.
func TestNothingIsReleasedByAFailure(t *testing.T) {
	tr := newTraining(t)
	before := tr.f.releases.Load()
	tr.f.running = failOnce("out of order")
	tr.step(func() error {
		tr.v.Assign(ones(tr.s))
		return nil
	})
	if err := tr.s.WaitDeviceOps(ctx); err == nil {
		t.Error("nobody got the error")
	}
	if n := tr.f.releases.Load() - before; n != 0 {
		t.Errorf("%d releases", n)
	}
	want(t, value(tr.s, tr.v), 2)
}

// ones is a pending tensor that reads nothing.
func ones(s *executor.Session) *executor.Tensor {
	x := newTensor()
	s.CallOn(fakeDevice(0), aten.Full, x, []any{[]int{1}, 1.0, ir.F32})
	return x
}
