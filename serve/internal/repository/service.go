package repository

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/loris-ml/loris/serve/internal/inference"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
	"github.com/loris-ml/loris/serve/internal/weights"
)

var _ inference.Service = (*Repository)(nil)

// Live reports true: a process that answers works.
func (r *Repository) Live() bool { return true }

// Ready reports whether all selected models are served and the server is not stopping.
func (r *Repository) Ready() bool {
	if !r.started.Load() || r.stopping.Load() {
		return false
	}
	r.mu.Lock()
	selected := r.selected
	r.mu.Unlock()
	now := *r.served.Load()
	for _, name := range selected {
		if now[name] == nil {
			return false
		}
	}
	return true
}

// Metadata says what the server is.
func (r *Repository) Metadata() inference.ServerMetadata {
	extensions := []string{
		"binary_tensor_data", "parameters", "model_repository", "model_configuration", "statistics", "schedule_policy", "classification", "logging", "generate",
	}
	if r.options.Tracer != nil {
		extensions = append(extensions, "trace")
	}
	if r.options.UpdateWeights {
		extensions = append(extensions, "weights")
	}
	return inference.ServerMetadata{Name: "loris", Version: r.options.Version, Extensions: extensions}
}

// Weights returns the sets of weights of a version, which stays loaded until done is
// called.
func (r *Repository) Weights(ctx context.Context, name, number string) (sets *weights.Sets, done func(), err error) {
	if !r.options.UpdateWeights {
		return nil, nil, inference.Errorf(inference.PermissionDenied, "the server was started without leave to update weights (loris serve --allow-weight-update)")
	}
	v, err := r.find(ctx, name, number)
	if err != nil {
		return nil, nil, err
	}
	if sets = v.model.Weights(); sets == nil {
		v.leave()
		return nil, nil, inference.Errorf(inference.Unimplemented, "model %q has no weights that can be replaced", name)
	}
	return sets, v.leave, nil
}

// ModelReady reports whether a version is served; an idle one is.
func (r *Repository) ModelReady(name, number string) (bool, error) {
	_, err := r.lookup(name, number)
	if err != nil {
		if inference.AsError(err).Kind == inference.Unavailable {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// ModelMetadata describes a model.
func (r *Repository) ModelMetadata(name, number string) (*inference.ModelMetadata, error) {
	v, err := r.lookup(name, number)
	if err != nil {
		return nil, err
	}
	m := &inference.ModelMetadata{Name: name, Platform: v.model.Platform, Inputs: []inference.TensorMetadata{}, Outputs: []inference.TensorMetadata{}}
	for i := range v.model.Inputs {
		in := &v.model.Inputs[i]
		m.Inputs = append(m.Inputs, inference.TensorMetadata{Name: in.Name, Datatype: in.Datatype, Shape: inputShape(v.model, i)})
	}
	for _, o := range v.model.Outputs {
		m.Outputs = append(m.Outputs, inference.TensorMetadata{Name: o.Name, Datatype: o.Datatype, Shape: append([]int64{}, o.Shape...)})
	}
	if served := (*r.served.Load())[name]; served != nil {
		m.Versions = slices.SortedFunc(maps.Keys(served.byNumber), byNumber)
	}
	if v.model.Note != "" {
		m.Properties = map[string]string{"note": v.model.Note}
	}
	return m, nil
}

func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// ModelConfig returns a model's configuration.
func (r *Repository) ModelConfig(name, number string) ([]byte, error) {
	v, err := r.lookup(name, number)
	if err != nil {
		return nil, err
	}
	return configJSON(v.config)
}

// Statistics counts what versions did.
func (r *Repository) Statistics(name, number string) ([]inference.ModelStatistics, error) {
	now := *r.served.Load()
	names := []string{name}
	if name == "" {
		names = slices.Sorted(maps.Keys(now))
	}
	all := []inference.ModelStatistics{}
	for _, name := range names {
		m := now[name]
		if m == nil {
			return nil, r.absent(name, number)
		}
		for _, n := range slices.SortedFunc(maps.Keys(m.byNumber), byNumber) {
			if number == "" || n == number {
				all = append(all, m.byNumber[n].statistics())
			}
		}
	}
	if number != "" && len(all) == 0 {
		return nil, r.absent(name, number)
	}
	return all, nil
}

func (v *version) statistics() inference.ModelStatistics {
	s := v.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	all := inference.ModelStatistics{
		Name: v.name, Version: v.number, InferenceCount: s.rows, ExecutionCount: s.runs, InferenceStats: s.times, BatchStats: []inference.BatchStatistics{},
	}
	if !s.last.IsZero() {
		all.LastInference = uint64(s.last.UnixMilli())
	}
	for _, n := range slices.Sorted(maps.Keys(s.byRows)) {
		all.BatchStats = append(all.BatchStats, *s.byRows[n])
	}
	return all
}

// Infer computes the outputs.
func (r *Repository) Infer(ctx context.Context, req *inference.Request) (*inference.Response, error) {
	v, err := r.find(ctx, req.Model, req.Version)
	if err != nil {
		return nil, err
	}
	resp, err := v.infer(ctx, req)
	if err != nil {
		v.leave()
		return nil, err
	}
	resp.Hold((*user)(v))
	return resp, nil
}

// Index lists the models that there are.
func (r *Repository) Index(ready bool) ([]inference.IndexEntry, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []inference.IndexEntry
	for name := range r.entries {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		known := 0
		if e := r.entries[name]; e != nil {
			known = len(e.index)
			for _, n := range slices.Sorted(maps.Keys(e.index)) {
				if x := e.index[n]; !ready || x.State == inference.StateReady {
					all = append(all, x)
				}
			}
		}
		if _, err := r.source(name); known == 0 && !ready && err == nil {
			all = append(all, inference.IndexEntry{Name: name})
		}
	}
	return all, nil
}

// Load loads a model as it is on disk now.
func (r *Repository) Load(ctx context.Context, name string, p inference.Parameters) error {
	var config *pb.ModelConfig
	for key, value := range p {
		text, ok := value.(string)
		switch {
		case key != "config":
			return inference.Errorf(inference.Unimplemented, "parameter %q is not supported: models are loaded from the repository", key)
		case !ok:
			return badf("parameter config: expected a string, got %v", value)
		}
		var err error
		if config, err = parseConfig(text); err != nil {
			return err
		}
	}
	// A client that goes away leaves no half-loaded model.
	if err := r.load(context.WithoutCancel(ctx), name, config); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.selected, name) {
		r.selected = append(slices.Clip(r.selected), name)
	}
	return nil
}

// Unload stops serving a model.
func (r *Repository) Unload(_ context.Context, name string) error {
	if err := r.unload(name); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.selected = slices.DeleteFunc(slices.Clone(r.selected), func(s string) bool { return s == name })
	return nil
}

// MemoryBudget is how many bytes loaded versions may hold; 0 is no bound.
func (r *Repository) MemoryBudget() int64 { return r.options.MemoryBudget }

// Gauges returns what versions have at the moment.
func (r *Repository) Gauges() []inference.Gauge {
	var all []inference.Gauge
	now := *r.served.Load()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		for _, n := range slices.SortedFunc(maps.Keys(now[name].byNumber), byNumber) {
			v := now[name].byNumber[n]
			g := inference.Gauge{Name: name, Version: n, Memory: v.memory(), Idle: v.idle, Failures: map[string]uint64{}}
			if !v.idle {
				g.InFlight, g.Waiting = int(max(v.users.Load()-1, 0)), v.scheduler.Waiting()
			}
			v.stats.mu.Lock()
			for kind, n := range v.stats.failures {
				if n > 0 {
					g.Failures[inference.Kind(kind).String()] = n
				}
			}
			g.Latencies, g.Sleeps, g.Recent = v.stats.latencies, v.stats.sleeps, slices.Clone(v.stats.recent)
			v.stats.mu.Unlock()
			all = append(all, g)
		}
	}
	return all
}
