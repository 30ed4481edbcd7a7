package executor_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// fill records a tensor of n MiB of f32.
func fill(s *executor.Session, n int) *executor.Tensor {
	x := newTensor()
	s.CallOn(fakeDevice(0), aten.Full, x, []any{[]int{n, 1 << 18}, 1.0, ir.F32})
	return x
}

// made makes variables of one MiB each that are not used.
//
//go:noinline
func made(s *executor.Session, n int) []*executor.Variable {
	vars := make([]*executor.Variable, n)
	for i := range vars {
		vars[i] = s.NewVariable(fill(s, 1))
	}
	return vars
}

// Variables that were dropped with their initial values pending are not computed when others are: by
// a MarkStep, by a Step, in the middle of a step that grows too large, or by a read. The collector
// need not have run where they would take much.
func TestInitialValuesOfDroppedVariablesAreNotComputed(t *testing.T) {
	ends := map[string]struct {
		cfg executor.Config
		end func(t *testing.T, s *executor.Session)
	}{
		"MarkStep": {end: func(t *testing.T, s *executor.Session) { mark(t, s) }},
		"Step": {end: func(t *testing.T, s *executor.Session) {
			if err := s.Step(ctx, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}},
		"trim": {cfg: executor.Config{TrimNodes: 1000}, end: func(t *testing.T, s *executor.Session) {
			for s.Report().Trims == 0 {
				made(s, 1)
			}
		}},
		"read": {end: func(t *testing.T, s *executor.Session) {
			if _, err := ones(s).Fetch(ctx); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c.cfg.Device = fakeDevice(0)
			s := newSession(t, c.cfg)
			mark(t, s)
			kept := made(s, 1)
			made(s, 64)
			c.end(t, s)
			if err := s.WaitDeviceOps(ctx); err != nil {
				t.Fatal(err)
			}
			if n := f.computed.Load(); n > 2 {
				t.Errorf("%d tensors were computed, of which one variable and one other tensor could be seen", n)
			}
			if b, err := value(s, kept[0]).Fetch(ctx); err != nil || len(b) != 1<<20 {
				t.Errorf("the variable that is left: %d bytes, %v", len(b), err)
			}
			runtime.KeepAlive(kept)
		})
	}
}

// A session that makes variables, reads them and drops them does not keep them.
func TestVariablesThatWereReadAreNotKept(t *testing.T) {
	newFake(t)
	s := newSession(t, executor.Config{Device: fakeDevice(0)})
	var all []weak.Pointer[executor.Variable]
	for range 1000 {
		v := s.NewVariable(ones(s))
		if _, err := value(s, v).Fetch(ctx); err != nil {
			t.Fatal(err)
		}
		all = append(all, weak.Make(v))
	}
	runtime.GC()
	left := 0
	for _, w := range all {
		if w.Value() != nil {
			left++
		}
	}
	if left > 1 {
		t.Errorf("%d variables are left that nothing refers to", left)
	}
	runtime.KeepAlive(s)
}
