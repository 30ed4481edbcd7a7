package loris

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// event is an event of a trace.
type event struct {
	Ph, Name, Cat string
	Tid           int
	Ts, Dur       float64
	Args          struct{ Name, Detail string }
}

func traced(t *testing.T, s *Session, fn func()) []event {
	t.Helper()
	var b bytes.Buffer
	stop, err := s.Trace(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trace(&b); err == nil {
		t.Error("a second trace began")
	}
	fn()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	var events []event
	if err := json.Unmarshal(b.Bytes(), &events); err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	return events
}

func TestTrace(t *testing.T) {
	s := newSession(t)
	step := func(s *Session) {
		y := s.With().FromSlice([]float32{1, 2}).Exp().Sum()
		if err := s.MarkStep(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := y.Item(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.WaitDeviceOps(t.Context()); err != nil {
			t.Error(err)
		}
	}
	step(s) // before the trace
	start := time.Now()
	events := traced(t, s, func() {
		var wg sync.WaitGroup
		for range 2 {
			f := s.Fork()
			wg.Go(func() { step(f); step(f) })
		}
		wg.Wait()
		y := s.With().FromSlice([]float32{1, 2, 3}).Tanh()
		floats(t, y)
		if err := s.WaitDeviceOps(t.Context()); err != nil {
			t.Error(err)
		}
	})
	took := float64(time.Since(start).Microseconds())
	tracks := map[int]string{}
	for _, e := range events {
		if e.Ph == "M" {
			tracks[e.Tid] = e.Args.Name
		}
	}
	count := map[string]int{}
	for _, e := range events {
		if e.Ph != "X" {
			continue
		}
		if e.Ts < 0 || e.Dur < 0 || e.Ts+e.Dur > took+1 {
			t.Errorf("%s from %v for %v µs of %v", e.Name, e.Ts, e.Dur, took)
		}
		count[tracks[e.Tid]+": "+strings.SplitN(e.Name, " ", 2)[0]]++
		if e.Cat == "kernel" && !strings.Contains(e.Args.Detail, "trace_test.go:") {
			t.Errorf("kernel %s is of line %q", e.Name, e.Args.Detail)
		}
	}
	for what, n := range map[string]int{
		"fork 1: record": 2, "fork 2: record": 2, "fork 1: collect": 2, "fork 2: lock": 4, "fork 1: fetch": 2,
		"session: collect": 1, "session: fetch": 1, "compiler: compile": 1, "cpu:0: run": 5,
	} {
		if count[what] != n {
			t.Errorf("%d events %q, want %d, in %v", count[what], what, n, count)
		}
	}
	if count["cpu:0 kernels: exp"]+count["cpu:0 kernels: exp+sum"] == 0 || count["cpu:0 kernels: tanh"] != 1 {
		t.Errorf("kernels are missing in %v", count)
	}
	step(s) // after it
	if again := traced(t, s, func() {}); len(again) != 0 {
		t.Errorf("a trace of nothing has %v", again)
	}
}

type failingWriter struct{}

var errFull = errors.New("full")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestTraceOfAFailingWriter(t *testing.T) {
	s := newSession(t)
	stop, err := s.Trace(failingWriter{})
	if err != nil {
		t.Fatal(err)
	}
	wantFloats(t, s.With().Ones(1).Add(1), 2)
	for range 2 {
		if err := stop(); !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
	}
}

// BenchmarkTrace takes turns of steps without and with a trace, in one session, and reports the medians
// of a step and what the trace adds to it.
func BenchmarkTrace(b *testing.B) {
	const turn = 50
	s, err := New()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	m := s.With()
	x, w := m.Randn(64, 256).Keep(), NewVariable(m.Randn(256, 256).Mul(0.05))
	steps := func() time.Duration {
		start := time.Now()
		for range turn {
			loss := x.MatMul(w.Value()).Relu().MatMul(w.Value()).Square().Mean()
			w.Assign(w.Value().Sub(Grad(loss, w)[0].Mul(0.01)))
			if err := s.MarkStep(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.WaitDeviceOps(b.Context()); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	steps()
	var off, on []time.Duration
	without := func() { off = append(off, steps()) }
	with := func() {
		stop, err := s.Trace(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		on = append(on, steps())
		if err := stop(); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() { // each as often after itself as after the other
		without()
		with()
		with()
		without()
	}
	middle := func(t []time.Duration) float64 {
		slices.Sort(t)
		return float64(t[len(t)/2]) / turn / 1e3
	}
	b.ReportMetric(middle(off), "off-µs/step")
	b.ReportMetric(middle(on), "on-µs/step")
	b.ReportMetric(100*(middle(on)/middle(off)-1), "added-%")
}
