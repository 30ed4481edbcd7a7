package workloads

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/longtest"
)

func session(tb testing.TB, opts ...loris.SessionOption) *loris.Session {
	tb.Helper()
	s, err := loris.New(append(opts, loris.WithTrimNodes(-1))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// TestData holds the first numbers, which peers in other languages make, too.
func TestData(t *testing.T) {
	d := NewData(loris.With())
	d.Floats(3, 1)
	if got, want := d.Floats(3, 2), []float32{0.2935903072357178, 0.3535749912261963, 0.8165347576141357}; !slices.Equal(got, want) {
		t.Errorf("tensor 1 is %v, want %v", got, want)
	}
	if got, want := d.Ints(3, 10), []int64{9, 6, 9}; !slices.Equal(got, want) {
		t.Errorf("tensor 2 is %v, want %v", got, want)
	}
}

// results opens a workload and returns the results of its first runs.
func results(t *testing.T, w *Workload, opts ...loris.SessionOption) []float32 {
	t.Helper()
	in, err := w.Open(t.Context(), session(t, slices.Concat(opts, w.Session)...))
	if err != nil {
		t.Fatal(err)
	}
	for range w.Runs {
		if err := in.Run(t.Context()); err != nil {
			t.Fatalf("%s: %v", w.Name, err)
		}
	}
	r, err := in.Results(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", w.Name, err)
	}
	return r
}

// TestWorkloads runs each from the start, light ones twice: the results are numbers, are not
// all alike, and are the same again.
func TestWorkloads(t *testing.T) {
	for _, w := range All() {
		if w.Large || !longtest.Enabled() && (w.Heavy || w.FLOP > 1e8) {
			continue
		}
		first := results(t, w)
		if !w.Heavy && !slices.Equal(first, results(t, w)) {
			t.Errorf("%s: two runs differ", w.Name)
		}
		if slices.Min(first) == slices.Max(first) {
			t.Errorf("%s: all results are %v", w.Name, first[0])
		}
		for i, v := range first {
			if v != v || v-v != 0 {
				t.Errorf("%s: result %d is %v", w.Name, i, v)
				break
			}
		}
	}
}

// TestNoCompiles checks that runs after the first find their graph, but for the
// workload that is about new ones.
func TestNoCompiles(t *testing.T) {
	for name, want := range map[string]uint64{"mlp-step": 0, "chain-recorded": 0, "chain-compiled": 0, "first-compile": 2, "first-compile-small": 2} {
		list, err := Select("^" + name + "$")
		if err != nil {
			t.Fatal(err)
		}
		s := session(t)
		in, err := list[0].Open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		run := func() {
			if err := in.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		run()
		run()
		before := uint64(s.Report().Compiles)
		run()
		run()
		if got := uint64(s.Report().Compiles) - before; got != want {
			t.Errorf("%s: %d compiles in two runs, want %d", name, got, want)
		}
	}
}

// TestThreads holds models and their training equal to the last bit on any number
// of threads, and with the promise of it.
func TestThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5))
	for _, w := range All() {
		if w.Heavy || strings.HasPrefix(w.Name, "first-compile") || !longtest.Enabled() && w.FLOP > 1e9 {
			continue
		}
		want := results(t, w, loris.WithThreads(1))
		threads := []int{2, 3, 5}
		if !longtest.Enabled() {
			threads = threads[1:2]
		}
		for _, n := range threads {
			if !slices.Equal(results(t, w, loris.WithThreads(n)), want) {
				t.Errorf("%s: other results on %d threads", w.Name, n)
			}
		}
		if !slices.Equal(results(t, w, loris.WithDeterministic()), want) {
			t.Errorf("%s: other results of a deterministic session", w.Name)
		}
	}
}

func TestSelect(t *testing.T) {
	list, err := Select("^matmul-(10|20)")
	if err != nil || len(list) != 2 || list[0].Name != "matmul-1024" {
		t.Errorf("%v, %v", list, err)
	}
	for _, bad := range []string{"(", "nothing"} {
		if _, err := Select(bad); err == nil {
			t.Errorf("%q selects something", bad)
		}
	}
	if w := list[0]; !w.For("jax") {
		t.Error("a product is not for jax")
	}
	if w := chainRecorded(); w.For("jax") || !w.For("lazy") {
		t.Error("who the recorded chain is for")
	}
}

// BenchmarkWorkloads is a run of each workload.
func BenchmarkWorkloads(b *testing.B) {
	for _, w := range All() {
		b.Run(w.Name, func(b *testing.B) {
			if testing.Short() && w.Heavy {
				b.Skip("it takes seconds or gigabytes, which -short leaves out")
			}
			in, err := w.Open(b.Context(), session(b, w.Session...))
			if err != nil {
				b.Fatal(err)
			}
			for range 2 {
				if err := in.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := in.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			if w.FLOP > 0 {
				b.ReportMetric(w.FLOP*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			}
			if w.Ops > 1 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*w.Ops), "ns/op-of-chain")
			}
		})
	}
}
