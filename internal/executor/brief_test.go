package executor_test

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// briefCalls makes all calls brief for the time of a test.
func briefCalls(t *testing.T) {
	before := executor.SetAtOnce(time.Hour)
	t.Cleanup(func() { executor.SetAtOnce(before) })
}

// The caller of a function runs its computation by itself if that waits for nothing.
func TestBriefCallsRunAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		most   time.Duration
		idle   bool
		hooks  executor.Hooks
		atOnce bool
	}{
		"brief":       {time.Hour, true, executor.Hooks{}, true},
		"long":        {1, true, executor.Hooks{}, false},
		"no permit":   {time.Hour, false, executor.Hooks{}, false},
		"an observer": {time.Hour, true, executor.Hooks{Observe: func(report.Observation) {}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := executor.SetAtOnce(c.most)
			t.Cleanup(func() { executor.SetAtOnce(before) })
			f := newFake(t)
			f.idle.Store(c.idle)
			s := newSession(t, executor.Config{Device: fakeDevice(0), Hooks: c.hooks})
			x := floatsOn(t, s, fakeDevice(0), 3)
			tr := tracedDouble(t, s, x)
			var byCaller atomic.Int64
			f.running = func(context.Context, *graph.Program, ir.Device) error {
				if strings.Contains(string(debug.Stack()), "executor.(*Traced).Call") {
					byCaller.Add(1)
				}
				return nil
			}
			for range 4 { // the first is not known to be brief
				out, err := tr.Call(ctx, []*executor.Tensor{x}, newTensor)
				if err != nil {
					t.Fatal(err)
				}
				want(t, out[0], 6)
			}
			wanted := int64(0)
			if c.atOnce {
				wanted = 3
			}
			if n := byCaller.Load(); n != wanted {
				t.Errorf("the caller ran %d of 4 calls, want %d", n, wanted)
			}
		})
	}
}

// tracedDouble returns a compiled function that doubles its input.
func tracedDouble(t *testing.T, s *executor.Session, x *executor.Tensor) *executor.Traced {
	t.Helper()
	tr, err := s.Trace(ctx, []*executor.Tensor{x}, newTensor, func(in []*executor.Tensor) ([]*executor.Tensor, error) {
		return []*executor.Tensor{binaryOp(s, aten.Add, in[0], in[0])}, nil
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// What fails in a brief call fails as in any other: its readers get the error, and the next call works.
func TestBriefCallsFail(t *testing.T) {
	briefCalls(t)
	f := newFake(t)
	f.idle.Store(true)
	s := newSession(t, executor.Config{Device: fakeDevice(0)})
	x := floatsOn(t, s, fakeDevice(0), 3)
	tr := tracedDouble(t, s, x)
	fault := errors.New("a fault")
	for name, fail := range map[string]func() error{"an error": func() error { return fault }, "a panic": func() error { panic(fault) }} {
		for _, failing := range []bool{false, true, false} {
			f.running = func(context.Context, *graph.Program, ir.Device) error {
				if failing {
					return fail()
				}
				return nil
			}
			out, err := tr.Call(ctx, []*executor.Tensor{x}, newTensor)
			if err != nil {
				t.Fatal(err)
			}
			if !failing {
				want(t, out[0], 6)
			} else if _, err := out[0].Fetch(ctx); !errors.Is(err, fault) {
				t.Errorf("%s: the result gives %v", name, err)
			}
		}
	}
}

// Brief calls that assign a variable donate its old value as others do.
func TestBriefCallsDonate(t *testing.T) {
	briefCalls(t)
	tr := newTraining(t)
	tr.f.idle.Store(true)
	call := tr.doubled()
	tr.wait()
	for i := range 4 {
		want(t, call(), 14)
		if i == 1 {
			tr.train()
		}
	}
	if got := tr.wait(); !slices.Equal(got, []int{1, 1, 1, 1, 1}) {
		t.Errorf("donations %v, want one in each call and step", got)
	}
	want(t, value(tr.s, tr.v), 64)
}
