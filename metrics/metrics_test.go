package metrics_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/metrics"
)

func TestSessionIsObserved(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	s, err := loris.New(loris.WithDevice(loris.Ref), loris.WithHooks(loris.Hooks{Observe: metrics.Observer(tracer)}))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	x := s.With().FromSlice([]float32{1, 2, 3}, 3)
	for range 2 {
		y := x.Mul(2.0)
		if err := s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := y.Float32s(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WaitDeviceOps(ctx); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(metrics.NewCollector(s, prometheus.Labels{"session": "test"})); err != nil {
		t.Fatal(err)
	}
	want := "# HELP loris_steps_total MarkSteps.\n# TYPE loris_steps_total counter\nloris_steps_total{session=\"test\"} 2\n" +
		"# HELP loris_compiles_total Computations compiled.\n# TYPE loris_compiles_total counter\nloris_compiles_total{session=\"test\"} 1\n"
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "loris_steps_total", "loris_compiles_total"); err != nil {
		t.Error(err)
	}
	seen := map[string]int{}
	for _, sp := range spans.Ended() {
		seen[sp.Name()]++
	}
	if seen["loris.run"] != 2 || seen["loris.collect"] != 2 || seen["loris.fetch"] == 0 && seen["loris.lock"] == 0 {
		t.Errorf("spans %v", seen)
	}
	if n := testutil.CollectAndCount(metrics.NewCollector(s, nil), "loris_stage_seconds_total"); n < 7 {
		t.Errorf("%d stages are exposed", n)
	}
}

// same is a model that returns its input.
type same struct{}

func (*same) Spec() backend.Spec {
	return backend.Spec{Inputs: make([]backend.Param, 1), Outputs: make([]backend.Param, 1)}
}

func (*same) Call(_ context.Context, in []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	in[0].Retain()
	return in, nil
}

func TestPluggedModelsAreCounted(t *testing.T) {
	s, err := loris.New(loris.WithDevice(loris.Ref))
	if err != nil {
		t.Fatal(err)
	}
	x := s.With().FromSlice([]float32{1, 2, 3}, 3)
	double := func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{in[0].Mul(2)} }
	plug, err := s.Plug(t.Context(), loris.GraphOf(double, x), &same{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := double(x)[0].Float32s(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf("# HELP loris_plugged_runs_total Runs of a graph on the model that is plugged for it.\n"+
		"# TYPE loris_plugged_runs_total counter\nloris_plugged_runs_total{device=%q,graph=%q,model=\"*metrics_test.same\"} 3\n",
		s.Device(), plug.Hash())
	if err := testutil.CollectAndCompare(metrics.NewCollector(s, nil), strings.NewReader(want), "loris_plugged_runs_total"); err != nil {
		t.Error(err)
	}
}
