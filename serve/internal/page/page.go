// Package page is the server's page for people: files that are part of the program, and the stream
// of numbers that they show.
package page

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/rest"
)

//go:embed assets
var assets embed.FS

// policy lets a page run and fetch what comes from this server, and nothing else. Pictures that a
// person chose are blobs, and small ones in the style sheet are data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Source is what has the numbers.
type Source interface {
	inference.Service
	// Gauges returns what is so at the moment, by version.
	Gauges() []inference.Gauge
	// Describe says what a version is.
	Describe(name, version string) (*inference.Description, error)
	// Stopping reports whether the server is about to end.
	Stopping() bool
}

// scopes are those that the numbers need.
var scopes = []inference.Scope{inference.ScopeMetadata, inference.ScopeStatistics}

// Handler answers requests for /, which needs no scope since it says nothing of the models, and
// below /page/. every is how often numbers are sent.
func Handler(s Source, allow func(*http.Request, inference.Scope) error, every time.Duration) http.Handler {
	root, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	files := http.FileServerFS(root)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, root, "index.html")
	})
	mux.Handle("GET /page/", http.StripPrefix("/page/", files))
	mux.HandleFunc("GET /page/events", func(w http.ResponseWriter, r *http.Request) {
		for _, scope := range scopes {
			if err := allow(r, scope); err != nil {
				rest.WriteError(w, err)
				return
			}
		}
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Type", contentType)
			return
		}
		stream(w, r, s, every)
	})
	mux.HandleFunc("GET /page/models/{model}/versions/{version}", func(w http.ResponseWriter, r *http.Request) {
		err := allow(r, inference.ScopeMetadata)
		var d *inference.Description
		if err == nil {
			d, err = s.Describe(r.PathValue("model"), r.PathValue("version"))
		}
		if err != nil {
			rest.WriteError(w, err)
			return
		}
		rest.WriteJSON(w, http.StatusOK, d)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // another build has other files under the same names
		mux.ServeHTTP(w, r)
	})
}

const contentType = "text/event-stream"

// event is what the page is told.
type event struct {
	Ready   bool    `json:"ready"`
	Version string  `json:"version"`
	Models  []model `json:"models"`
}

// model is what a version has and did since the event before.
type model struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`

	Total    uint64            `json:"total"`  // requests that were answered, ever
	Failed   uint64            `json:"failed"` // and those that failed
	Rate     float64           `json:"rate"`   // requests per second
	P50      float64           `json:"p50"`    // milliseconds
	P99      float64           `json:"p99"`
	Rows     float64           `json:"rows"`  // of the mean run
	Queue    float64           `json:"queue"` // milliseconds of the mean request
	Run      float64           `json:"run"`
	InFlight int               `json:"in_flight"`
	Waiting  int               `json:"waiting"`
	Batches  map[uint64]uint64 `json:"batches"` // runs by their rows, ever
	Memory   int64             `json:"memory"`  // bytes
	Idle     bool              `json:"idle,omitempty"`

	Failures []inference.Failure `json:"failures,omitempty"` // the last ones
}

// seen is what was counted at the event before, by name and version.
type seen struct {
	at        time.Time
	stats     map[[2]string]inference.ModelStatistics
	latencies map[[2]string]inference.Latencies
}

// stream sends an event at once and then at an interval, until the client goes or the server stops.
func stream(w http.ResponseWriter, r *http.Request, s Source, every time.Duration) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // the request is read; not all writers have deadlines
	w.Header().Set("Content-Type", contentType)
	t := time.NewTicker(every)
	defer t.Stop()
	var before seen
	for {
		e, now, err := look(s, &before)
		if err != nil {
			return
		}
		before = now
		text, err := json.Marshal(e)
		if err != nil {
			return
		}
		_ = c.SetWriteDeadline(time.Now().Add(10*time.Second + 2*every)) // one who does not read is gone
		if _, err := w.Write(slices.Concat([]byte("data: "), text, []byte("\n\n"))); err != nil || c.Flush() != nil {
			return
		}
		if s.Stopping() {
			return
		}
		select {
		case <-t.C:
		case <-r.Context().Done():
			return
		}
	}
}

// look takes the numbers of all versions of the repository.
func look(s Source, before *seen) (*event, seen, error) {
	now := seen{at: time.Now(), stats: map[[2]string]inference.ModelStatistics{}, latencies: map[[2]string]inference.Latencies{}}
	index, err := s.Index(false)
	if err != nil {
		return nil, now, err
	}
	stats, err := s.Statistics("", "")
	if err != nil {
		return nil, now, err
	}
	for _, st := range stats {
		now.stats[[2]string{st.Name, st.Version}] = st
	}
	gauges := map[[2]string]inference.Gauge{}
	for _, g := range s.Gauges() {
		key := [2]string{g.Name, g.Version}
		gauges[key], now.latencies[key] = g, g.Latencies
	}
	e := &event{Ready: s.Ready(), Version: s.Metadata().Version, Models: []model{}}
	for _, x := range index {
		key := [2]string{x.Name, x.Version}
		m := model{Name: x.Name, Version: x.Version, State: x.State, Reason: x.Reason, Batches: map[uint64]uint64{}}
		if st, served := now.stats[key]; served {
			g := gauges[key]
			m.InFlight, m.Waiting, m.Memory, m.Idle, m.Failures = g.InFlight, g.Waiting, g.Memory, g.Idle, g.Recent
			m.since(&st, before.stats[key], now.at.Sub(before.at))
			m.times(&g.Latencies, before.latencies[key])
		}
		e.Models = append(e.Models, m)
	}
	return e, now, nil
}

// since fills in what was counted after before, which took some time. A version that was loaded anew
// counts from 0.
func (m *model) since(st *inference.ModelStatistics, before inference.ModelStatistics, took time.Duration) {
	m.Total, m.Failed = st.InferenceStats.Success.Count, st.InferenceStats.Fail.Count
	for _, b := range st.BatchStats {
		m.Batches[b.BatchSize] = b.ComputeInfer.Count
	}
	if before.InferenceStats.Success.Count > m.Total {
		before = inference.ModelStatistics{}
	}
	n := float64(m.Total - before.InferenceStats.Success.Count)
	if n == 0 || took > time.Hour { // nothing, or the first event
		return
	}
	m.Rate = n / took.Seconds()
	m.Queue = float64(st.InferenceStats.Queue.NS-before.InferenceStats.Queue.NS) / n / 1e6
	m.Run = float64(st.InferenceStats.ComputeInfer.NS-before.InferenceStats.ComputeInfer.NS) / n / 1e6
	if runs := st.ExecutionCount - before.ExecutionCount; runs > 0 {
		m.Rows = float64(st.InferenceCount-before.InferenceCount) / float64(runs)
	}
}

func (m *model) times(l *inference.Latencies, before inference.Latencies) {
	d := l.Since(&before)
	for i := range d {
		if before[i] > l[i] { // loaded anew
			d = *l
			break
		}
	}
	m.P50, m.P99 = d.Quantile(0.5).Seconds()*1e3, d.Quantile(0.99).Seconds()*1e3
}
