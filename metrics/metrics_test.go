package metrics_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/loris-ml/loris"
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
