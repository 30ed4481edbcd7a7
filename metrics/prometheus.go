// Package metrics exposes what sessions do to Prometheus and OpenTelemetry. It
// is a module of its own, so that programs which use neither inherit neither.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loris-ml/loris"
)

// Collector is a prometheus.Collector of a session's report. Scraping takes the
// counters as they are and waits for no device.
type Collector struct {
	report func() loris.Report
	descs  []desc
}

// desc is one metric and how it is read from a report: labelled values.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
	read func(loris.Report, func(v float64, labels ...string))
}

// NewCollector returns a collector for the session and its forks. labels are
// added to every metric, so that several sessions can be told apart.
func NewCollector(s *loris.Session, labels prometheus.Labels) *Collector {
	c := &Collector{report: s.Report}
	add := func(kind prometheus.ValueType, name, help string, variable []string, read func(loris.Report, func(float64, ...string))) {
		c.descs = append(c.descs, desc{prometheus.NewDesc("loris_"+name, help, variable, labels), kind, read})
	}
	counter := func(name, help string, read func(loris.Report) float64) {
		add(prometheus.CounterValue, name, help, nil, func(r loris.Report, emit func(float64, ...string)) { emit(read(r)) })
	}
	counter("steps_total", "MarkSteps.", func(r loris.Report) float64 { return float64(r.Steps) })
	counter("runs_total", "Computations executed.", func(r loris.Report) float64 { return float64(r.Runs) })
	counter("compiles_total", "Computations compiled.", func(r loris.Report) float64 { return float64(r.Compiles) })
	counter("cached_hits_total", "Syncs that needed no compilation.", func(r loris.Report) float64 { return float64(r.CachedHits) })
	counter("recomputed_total", "Values whose graph ran again after their step had ended.", func(r loris.Report) float64 { return float64(r.Recomputed) })
	counter("carried_across_steps_total", "Values of an earlier step used while still pending.", func(r loris.Report) float64 { return float64(r.CarriedAcrossSteps) })
	counter("trims_total", "Graphs synced for want of a MarkStep.", func(r loris.Report) float64 { return float64(r.Trims) })
	counter("graph_nodes_total", "Graph nodes synced.", func(r loris.Report) float64 { return float64(r.Nodes) })
	counter("uploaded_bytes_total", "Bytes moved to devices.", func(r loris.Report) float64 { return float64(r.BytesUploaded) })
	counter("fetched_bytes_total", "Bytes read from devices.", func(r loris.Report) float64 { return float64(r.BytesFetched) })
	counter("lock_waits_total", "Times a device lock was waited for.", func(r loris.Report) float64 { return float64(r.LockWaits) })
	counter("lock_wait_seconds_total", "Time spent waiting for device locks.", func(r loris.Report) float64 { return r.LockWaitTime.Seconds() })
	counter("data_cache_hits_total", "Data cache hits.", func(r loris.Report) float64 { return float64(r.DataCacheHits) })
	counter("data_cache_misses_total", "Data cache misses.", func(r loris.Report) float64 { return float64(r.DataCacheMisses) })
	add(prometheus.CounterValue, "stage_seconds_total", "Time spent in each stage of syncs.", []string{"stage"},
		func(r loris.Report, emit func(float64, ...string)) {
			for stage, d := range r.StageTime {
				emit(d.Seconds(), stage)
			}
		})
	add(prometheus.GaugeValue, "live_tensors", "Reachable tensors that have data.", []string{"device"},
		func(r loris.Report, emit func(float64, ...string)) {
			for d, n := range r.LiveTensors {
				emit(float64(n), d)
			}
		})
	add(prometheus.GaugeValue, "memory_bytes", "Bytes of live buffers.", []string{"device"},
		func(r loris.Report, emit func(float64, ...string)) {
			for d, n := range r.MemoryInUse {
				emit(float64(n), d)
			}
		})
	plugged := []string{"graph", "device", "model"}
	add(prometheus.CounterValue, "plugged_runs_total", "Runs of a graph on the model that is plugged for it.", plugged,
		func(r loris.Report, emit func(float64, ...string)) {
			for _, p := range r.Plugged {
				emit(float64(p.Runs), p.Hash.String(), p.Device.String(), p.Model)
			}
		})
	return c
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d.Desc
	}
}

// Collect sends the metrics of one report.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	r := c.report()
	for _, d := range c.descs {
		d.read(r, func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d.Desc, d.kind, v, labels...)
		})
	}
}
