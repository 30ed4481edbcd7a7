// Package metrics writes what the server counts in the text format of Prometheus.
package metrics

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/rest"
)

// Source is what has the numbers.
type Source interface {
	inference.Service
	// Gauges returns what is so at the moment, by version.
	Gauges() []inference.Gauge
	// MemoryBudget is how many bytes loaded models may hold; 0 is no bound.
	MemoryBudget() int64
}

// Handler answers with all metrics; with triton, also under Triton's names.
func Handler(s Source, allow func(*http.Request, inference.Scope) error, triton bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := allow(r, inference.ScopeMetrics); err != nil {
			rest.WriteError(w, err)
			return
		}
		stats, err := s.Statistics("", "")
		if err != nil {
			rest.WriteError(w, err)
			return
		}
		var p page
		p.own(stats, s.Gauges(), s.Ready())
		if budget := s.MemoryBudget(); budget > 0 {
			p.family("loris_memory_budget_bytes", "gauge", "what loaded models may hold")
			p.sample("loris_memory_budget_bytes", float64(budget))
		}
		if triton {
			p.triton(stats)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(p.Bytes()) // a client that has gone gets nothing
	})
}

type page struct{ bytes.Buffer }

// family begins a metric.
func (p *page) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// sample writes one number; labels are names and values by turns.
func (p *page) sample(name string, value float64, labels ...string) {
	p.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		p.WriteString(sep + labels[i] + `="` + escaper.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	p.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// column is a metric that each version has one number of.
type column struct {
	name, help string
	value      func(*inference.ModelStatistics) float64
}

func seconds(d inference.Duration) float64      { return float64(d.NS) / 1e9 }
func microseconds(d inference.Duration) float64 { return float64(d.NS / 1e3) }

var own = []column{
	{"loris_requests_succeeded_total", "requests that were answered", func(s *inference.ModelStatistics) float64 { return float64(s.InferenceStats.Success.Count) }},
	{"loris_rows_total", "rows that were computed", func(s *inference.ModelStatistics) float64 { return float64(s.InferenceCount) }},
	{"loris_runs_total", "runs of the model", func(s *inference.ModelStatistics) float64 { return float64(s.ExecutionCount) }},
	{"loris_request_seconds_total", "time from request to answer", func(s *inference.ModelStatistics) float64 { return seconds(s.InferenceStats.Success) }},
	{"loris_queue_seconds_total", "time that requests waited", func(s *inference.ModelStatistics) float64 { return seconds(s.InferenceStats.Queue) }},
	{"loris_gather_seconds_total", "time to gather inputs, by request", func(s *inference.ModelStatistics) float64 { return seconds(s.InferenceStats.ComputeInput) }},
	{"loris_run_seconds_total", "time that the model ran, by request", func(s *inference.ModelStatistics) float64 { return seconds(s.InferenceStats.ComputeInfer) }},
	{"loris_answer_seconds_total", "time to hand out outputs, by request", func(s *inference.ModelStatistics) float64 { return seconds(s.InferenceStats.ComputeOutput) }},
}

var tritons = []column{
	{"nv_inference_request_success", "Number of successful inference requests, all batch sizes", func(s *inference.ModelStatistics) float64 { return float64(s.InferenceStats.Success.Count) }},
	{"nv_inference_request_failure", "Number of failed inference requests, all batch sizes", func(s *inference.ModelStatistics) float64 { return float64(s.InferenceStats.Fail.Count) }},
	{"nv_inference_count", "Number of inferences performed", func(s *inference.ModelStatistics) float64 { return float64(s.InferenceCount) }},
	{"nv_inference_exec_count", "Number of model executions performed", func(s *inference.ModelStatistics) float64 { return float64(s.ExecutionCount) }},
	{"nv_inference_request_duration_us", "Cumulative inference request duration in microseconds", func(s *inference.ModelStatistics) float64 {
		return microseconds(s.InferenceStats.Success) + microseconds(s.InferenceStats.Fail)
	}},
	{"nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", func(s *inference.ModelStatistics) float64 { return microseconds(s.InferenceStats.Queue) }},
	{"nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds", func(s *inference.ModelStatistics) float64 { return microseconds(s.InferenceStats.ComputeInput) }},
	{"nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds", func(s *inference.ModelStatistics) float64 { return microseconds(s.InferenceStats.ComputeInfer) }},
	{"nv_inference_compute_output_duration_us", "Cumulative inference compute output duration in microseconds", func(s *inference.ModelStatistics) float64 { return microseconds(s.InferenceStats.ComputeOutput) }},
}

func (p *page) columns(all []column, stats []inference.ModelStatistics) {
	for _, c := range all {
		p.family(c.name, "counter", c.help)
		for i := range stats {
			p.sample(c.name, c.value(&stats[i]), "model", stats[i].Name, "version", stats[i].Version)
		}
	}
}

func (p *page) own(stats []inference.ModelStatistics, gauges []inference.Gauge, ready bool) {
	p.family("loris_ready", "gauge", "1 if all selected models are served")
	p.sample("loris_ready", number(ready))
	p.columns(own, stats)
	p.family("loris_requests_failed_total", "counter", "requests that failed, by kind of error")
	for _, g := range gauges {
		for kind, n := range g.Failures {
			p.sample("loris_requests_failed_total", float64(n), "model", g.Name, "version", g.Version, "kind", kind)
		}
	}
	p.family("loris_requests_in_flight", "gauge", "requests that are being answered")
	for _, g := range gauges {
		p.sample("loris_requests_in_flight", float64(g.InFlight), "model", g.Name, "version", g.Version)
	}
	p.family("loris_queue_length", "gauge", "requests that wait for the model")
	for _, g := range gauges {
		p.sample("loris_queue_length", float64(g.Waiting), "model", g.Name, "version", g.Version)
	}
	p.family("loris_model_memory_bytes", "gauge", "size of the files and the further sets of weights of what is loaded, 0 while idle")
	for _, g := range gauges {
		p.sample("loris_model_memory_bytes", float64(g.Memory), "model", g.Name, "version", g.Version)
	}
	p.family("loris_model_idle", "gauge", "1 if the model was unloaded to keep within the memory budget")
	for _, g := range gauges {
		p.sample("loris_model_idle", number(g.Idle), "model", g.Name, "version", g.Version)
	}
	p.family("loris_model_idle_unloads_total", "counter", "how often the model was unloaded to keep within the memory budget")
	for _, g := range gauges {
		p.sample("loris_model_idle_unloads_total", float64(g.Sleeps), "model", g.Name, "version", g.Version)
	}
	p.family("loris_batch_runs_total", "counter", "runs by their number of rows")
	for _, s := range stats {
		for _, b := range s.BatchStats {
			p.sample("loris_batch_runs_total", float64(b.ComputeInfer.Count), "model", s.Name, "version", s.Version, "rows", strconv.FormatUint(b.BatchSize, 10))
		}
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (p *page) triton(stats []inference.ModelStatistics) { p.columns(tritons, stats) }
