package executor_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
	_ "github.com/loris-ml/loris/internal/null"
	_ "github.com/loris-ml/loris/internal/ref"
	"github.com/loris-ml/loris/report"
)

var ctx = context.Background()

func newTensor() *executor.Tensor { return new(executor.Tensor) }

func newSession(t testing.TB, cfg executor.Config) *executor.Session {
	t.Helper()
	if cfg.Device.IsAny() {
		d, err := ir.ParseDevice("ref")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Device = d
	}
	s, err := executor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func floats(t testing.TB, s *executor.Session, v []float32, dims ...int) *executor.Tensor {
	t.Helper()
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	x := newTensor()
	if err := s.Upload(ctx, x, ir.MakeShape(ir.F32, dims...), s.Device(), b); err != nil {
		t.Fatal(err)
	}
	return x
}

func read(t testing.TB, x *executor.Tensor) []float32 {
	t.Helper()
	b, err := x.Fetch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func want(t testing.TB, x *executor.Tensor, v ...float32) {
	t.Helper()
	got := read(t, x)
	for i := range v {
		if len(got) != len(v) || got[i] != v[i] {
			t.Fatalf("got %v, want %v", got, v)
		}
	}
}

func binaryOp(s *executor.Session, op ir.Op, x, y *executor.Tensor) *executor.Tensor {
	out := newTensor()
	s.Binary(op, out, x, y)
	return out
}

func TestSyncComputes(t *testing.T) {
	s := newSession(t, executor.Config{})
	x, y := floats(t, s, []float32{1, 2, 3}, 3), floats(t, s, []float32{10, 20, 30}, 3)
	sum := binaryOp(s, aten.Add, x, y)
	prod := binaryOp(s, aten.Mul, sum, x)
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	if sum.Data() != nil || prod.Data() == nil {
		t.Error("a step computes what nothing consumes, and only that")
	}
	want(t, prod, 11, 44, 99)
	want(t, sum, 11, 22, 33)
	if r := s.Report(); r.Compiles != 2 || r.CarriedAcrossSteps != 0 {
		t.Errorf("%d compiles, %d carried", r.Compiles, r.CarriedAcrossSteps)
	}
}

func TestStepsHitTheCache(t *testing.T) {
	s := newSession(t, executor.Config{})
	w := s.NewVariable(floats(t, s, []float32{1, 2}, 2))
	for i := range 20 {
		h, next, lr := newTensor(), newTensor(), newTensor()
		w.Value(s, h)
		s.BinaryNumber(aten.Mul, lr, h, 0.5+float64(i), false) // a number that changes
		s.Binary(aten.Add, next, h, lr)
		w.Assign(next)
		if err := s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Report(); r.Compiles != 1 || r.CachedHits != 19 {
		t.Errorf("%d compiles, %d hits; want 1 and 19:\n%v", r.Compiles, r.CachedHits, r)
	}
}

// Whoever has read a result finds its run in the report, however slow the
// observer of runs is.
func TestRunsAreCountedBeforeTheyAreSeen(t *testing.T) {
	var cfg executor.Config
	cfg.Hooks.Observe = func(o report.Observation) {
		if o.Stage == report.StageRun {
			time.Sleep(5 * time.Millisecond)
		}
	}
	s := newSession(t, cfg)
	x := floats(t, s, []float32{1}, 1)
	for i := range int64(3) {
		want(t, binaryOp(s, aten.Add, x, x), 2)
		if n := s.Report().Runs; n != i+1 {
			t.Errorf("%d runs after result %d", n, i+1)
		}
	}
}

func TestParameterSequence(t *testing.T) {
	s := newSession(t, executor.Config{})
	x, y := floats(t, s, []float32{1}, 1), floats(t, s, []float32{10}, 1)
	want(t, binaryOp(s, aten.Add, x, x), 2)
	want(t, binaryOp(s, aten.Add, x, y), 11)
	want(t, binaryOp(s, aten.Add, y, y), 20)
}

func TestCarriedAcrossStepsIsCounted(t *testing.T) {
	s := newSession(t, executor.Config{})
	x := floats(t, s, []float32{1, 2}, 2)
	a := binaryOp(s, aten.Add, x, x)
	_ = binaryOp(s, aten.Mul, a, x)
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	c := binaryOp(s, aten.Mul, a, a)
	want(t, c, 4, 16)
	r := s.Report()
	if r.CarriedAcrossSteps != 1 || !strings.Contains(r.CarriedLines[0].Line, "executor_test.go:") {
		t.Errorf("carried %d at %v", r.CarriedAcrossSteps, r.CarriedLines)
	}
}

// gatherAt records gather(x, 0, index): an index out of range fails at run time.
func gatherAt(t testing.TB, s *executor.Session, x *executor.Tensor, index int64) *executor.Tensor {
	i := newTensor()
	b := binary.LittleEndian.AppendUint64(nil, uint64(index))
	if err := s.Upload(ctx, i, ir.MakeShape(ir.I64, 1), s.Device(), b); err != nil {
		t.Fatal(err)
	}
	return s.Call(aten.Gather, newTensor, []any{x, 0, i}, nil)[0]
}

func TestFailingStep(t *testing.T) {
	s := newSession(t, executor.Config{})
	x := floats(t, s, []float32{1, 2}, 2)
	v := s.NewVariable(floats(t, s, []float32{5}, 1))
	bad := gatherAt(t, s, x, 7)
	old := newTensor()
	v.Value(s, old)
	v.Assign(binaryOp(s, aten.Add, old, bad))
	if err := s.MarkStep(ctx); err != nil {
		t.Fatalf("MarkStep returns before the work is done, got %v", err)
	}
	// The next locker gets the error, with nothing lost.
	y := binaryOp(s, aten.Add, x, x)
	err := s.MarkStep(ctx)
	var async *devicelock.AsyncError
	if !errors.As(err, &async) || !errors.Is(err, ir.ErrIndex) {
		t.Fatalf("the failure of the step before is %v", err)
	}
	if !y.Pending() {
		t.Error("a failed MarkStep must leave the IR")
	}
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	want(t, y, 2, 4)
	// The variable still has its last good value.
	now := newTensor()
	v.Value(s, now)
	want(t, now, 5)
}

func TestCancelledContextReleasesLocks(t *testing.T) {
	s := newSession(t, executor.Config{})
	x := floats(t, s, []float32{1, 2}, 2)
	y := binaryOp(s, aten.Add, x, x)
	dead, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.MarkStep(dead); !errors.Is(err, context.Canceled) {
		t.Fatalf("MarkStep with a dead context: %v", err)
	}
	want(t, y, 2, 4)
}

func TestClosedAndForeign(t *testing.T) {
	s := newSession(t, executor.Config{})
	other := newSession(t, executor.Config{})
	x, y := floats(t, s, []float32{1}, 1), floats(t, other, []float32{1}, 1)
	mustPanic(t, executor.ErrSession, func() { binaryOp(s, aten.Add, x, y) })
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	mustPanic(t, executor.ErrClosed, func() { binaryOp(s, aten.Add, x, x) })
	if _, err := x.Fetch(ctx); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("Fetch after Close: %v", err)
	}
}

func mustPanic(t *testing.T, is error, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, _ := recover().(error)
		var oe *ir.OpError
		if !errors.Is(err, is) || !errors.As(err, &oe) || !strings.Contains(oe.Line, "_test.go:") {
			t.Errorf("panic %v, want an OpError at this file wrapping %v", err, is)
		}
	}()
	fn()
}

func TestStepDonatesAndKills(t *testing.T) {
	s := newSession(t, executor.Config{})
	v := s.NewVariable(floats(t, s, []float32{1}, 1))
	var kept, lost *executor.Tensor
	for range 5 {
		err := s.Step(ctx, func() error {
			x := newTensor()
			v.Value(s, x)
			y := binaryOp(s, aten.Add, x, x)
			kept, lost = binaryOp(s, aten.Mul, y, y), y
			s.Keep(kept)
			v.Assign(y)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want(t, kept, 1024)
	now := newTensor()
	v.Value(s, now)
	want(t, now, 32)
	if _, err := lost.Fetch(ctx); !errors.Is(err, executor.ErrDead) {
		t.Errorf("a tensor of an ended Step: %v", err)
	}
}

func TestTraceRunsWithoutTracing(t *testing.T) {
	s := newSession(t, executor.Config{})
	v := s.NewVariable(floats(t, s, []float32{100}, 1))
	x := floats(t, s, []float32{1}, 1)
	calls := 0
	tr, err := s.Trace(ctx, []*executor.Tensor{x}, newTensor, func(in []*executor.Tensor) ([]*executor.Tensor, error) {
		calls++
		h := newTensor()
		v.Value(s, h)
		sum := binaryOp(s, aten.Add, h, in[0])
		v.Assign(sum)
		return []*executor.Tensor{binaryOp(s, aten.Mul, sum, sum)}, nil
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range []float32{101, 102, 103} {
		out, err := tr.Call(ctx, []*executor.Tensor{x}, newTensor)
		if err != nil {
			t.Fatal(err)
		}
		want(t, out[0], w*w)
		if calls != 1 {
			t.Fatalf("traced %d times by call %d", calls, i)
		}
	}
}

func TestTrimSyncsAForgottenStep(t *testing.T) {
	s := newSession(t, executor.Config{TrimNodes: 100})
	x := floats(t, s, []float32{1}, 1)
	y := x
	for range 450 {
		y = binaryOp(s, aten.Add, y, x)
	}
	r := s.Report()
	if r.Trims != 4 || r.MaxNodes > 120 {
		t.Errorf("%d trims, largest graph %d", r.Trims, r.MaxNodes)
	}
	want(t, y, 451)
}

func TestNoOpExecutesNothing(t *testing.T) {
	s := newSession(t, executor.Config{NoOp: true})
	x := floats(t, s, []float32{1}, 1)
	y := binaryOp(s, aten.Add, x, x)
	for range 2 {
		if err := s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := y.Fetch(ctx); !errors.Is(err, executor.ErrNoExecution) {
		t.Errorf("reading in NoOp mode: %v", err)
	}
}
