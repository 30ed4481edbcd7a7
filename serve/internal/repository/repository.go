// Package repository keeps the models of a server: it finds them on disk, loads and
// unloads their versions while requests go on, and answers for them as an
// inference.Service.
package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/protobuf/proto"

	"github.com/loris-ml/loris/serve/internal/inference"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
	"github.com/loris-ml/loris/serve/internal/tracing"
)

// Options say where models are.
type Options struct {
	// Dir is a folder in Triton's layout; empty for none.
	Dir string
	// Files are models by themselves, by name, and Weights their safetensors files.
	Files, Weights map[string]string
	// Single is the name of the only model of Dir, which has its versions directly;
	// empty where Dir has folders of models.
	Single string
	// Selected are the models that Start loads, besides Files; nil for all there are.
	Selected []string
	// AllowDigests are the sha256 sums that packages may have, in hexadecimal; nil
	// allows all.
	AllowDigests []string
	Log          *slog.Logger
	// UpdateWeights lets the weights of loaded models be replaced; see Weights.
	UpdateWeights bool
	// Level is what the log's verbosity is set by; nil if it cannot be changed.
	Level *slog.LevelVar
	// Tracer makes spans of inferences; nil makes none.
	Tracer *tracing.Tracer
	// MemoryBudget bounds the bytes that loaded versions hold, their files and the sets of weights that
	// they get: those that were not used for the longest time are unloaded, and loaded again by the
	// next request, which waits LoadWait for it at most. 0 unloads nothing.
	MemoryBudget int64
	LoadWait     time.Duration
	// Version is the server's.
	Version string
}

// Repository is the models of a server. Its methods are safe for concurrent use.
type Repository struct {
	options  Options
	allow    *allowList
	mu       sync.Mutex // guards entries and selected
	entries  map[string]*entry
	selected []string
	served   atomic.Pointer[served]
	started  atomic.Bool
	stopping atomic.Bool
	writing  sync.Mutex // held by who replaces served
	loads    sync.Mutex // see lockLoads
	waking   singleflight.Group
}

// served is what requests find. It never changes.
type served map[string]*servedModel

type servedModel struct {
	byNumber map[string]*version
	latest   *version
}

// entry is what the repository knows of a model. Its fields are guarded by mu, which is
// held as long as the model is being loaded; index by Repository.mu.
type entry struct {
	name   string
	mu     sync.Mutex
	loaded map[int64]*version
	seen   string // the files at the last look of a poll
	failed string // the files of which a load failed

	index map[int64]inference.IndexEntry
}

// New returns a Repository that has loaded nothing.
func New(o Options) (*Repository, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	allow, err := newAllowList(o.AllowDigests)
	if err != nil {
		return nil, err
	}
	r := &Repository{options: o, allow: allow, entries: map[string]*entry{}}
	r.served.Store(&served{})
	return r, nil
}

// Start loads the selected models. Its error joins those of all that could not be
// loaded; the others are served.
func (r *Repository) Start(ctx context.Context) error {
	names, err := r.names()
	if err != nil {
		return err
	}
	if r.options.Selected != nil {
		names = slices.Sorted(maps.Keys(r.options.Files))
		names = append(names, r.options.Selected...)
	}
	r.mu.Lock()
	r.selected = names
	r.mu.Unlock()
	var errs []error
	for _, name := range names {
		errs = append(errs, r.load(ctx, name, nil))
	}
	r.started.Store(true)
	return errors.Join(errs...)
}

// names lists the models that there are.
func (r *Repository) names() ([]string, error) {
	all := slices.Collect(maps.Keys(r.options.Files))
	if r.options.Single != "" {
		all = append(all, r.options.Single)
	} else if r.options.Dir != "" {
		entries, err := os.ReadDir(r.options.Dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(r.options.Dir, e.Name()))
			if err == nil && info.IsDir() && e.Name()[0] != '.' {
				all = append(all, e.Name())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// source returns where a model comes from; NotFound if there is none of that name.
func (r *Repository) source(name string) (source, error) {
	if file, ok := r.options.Files[name]; ok {
		return source{file: file, weights: r.options.Weights[name]}, nil
	}
	if name == r.options.Single && name != "" {
		return source{dir: r.options.Dir}, nil
	}
	dir := filepath.Join(r.options.Dir, name)
	if r.options.Single != "" || r.options.Dir == "" || name == "" || !filepath.IsLocal(name) || name != filepath.Base(name) || !exists(dir) {
		return source{}, inference.Errorf(inference.NotFound, "there is no model %q in the repository", name)
	}
	return source{dir: dir}, nil
}

func (r *Repository) entry(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	if e == nil {
		e = &entry{name: name, loaded: map[int64]*version{}, index: map[int64]inference.IndexEntry{}}
		r.entries[name] = e
	}
	return e
}

// load brings the served versions of a model to what is on disk. Requests go to the old
// versions until the new ones are warm. What cannot be loaded leaves what is served as
// it is. config replaces the configuration on disk if it is not nil.
func (r *Repository) load(ctx context.Context, name string, config *pb.ModelConfig) error {
	if r.stopping.Load() {
		return errStopping()
	}
	src, err := r.source(name)
	if err != nil {
		return err
	}
	defer r.lockLoads()()
	e := r.entry(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	want, config, err := r.plan(e, src, config)
	if err != nil {
		return fmt.Errorf("load model %q: %w", name, err)
	}
	keep := map[int64]bool{}
	var errs []error
	for _, f := range want {
		keep[f.number] = true
		old := e.loaded[f.number]
		same := old != nil && old.fingerprint == f.fingerprint
		if same && !old.idle {
			continue
		}
		v, err := r.swapWeights(ctx, e, f)
		if v == nil && err == nil {
			v, err = r.open(ctx, e, f, config)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("load model %q version %d: %w", name, f.number, err))
			continue
		}
		if same {
			v.stats = old.stats
		}
		now := maps.Clone(e.loaded)
		now[f.number] = v
		r.publish(e, now)
	}
	if errs == nil { // nothing that is served goes away for a load that fails
		now := maps.Clone(e.loaded)
		maps.DeleteFunc(now, func(n int64, _ *version) bool { return !keep[n] })
		r.publish(e, now)
	}
	return errors.Join(errs...)
}

func errStopping() error { return inference.Errorf(inference.Unavailable, "the server is stopping") }

// planned is a version that should be served.
type planned struct {
	files
	fingerprint fingerprint
}

// plan reads what is on disk.
func (r *Repository) plan(e *entry, src source, config *pb.ModelConfig) ([]planned, *pb.ModelConfig, error) {
	var err error
	if config == nil {
		if config, err = src.config(); err != nil {
			return nil, nil, err
		}
	}
	if err := checkConfig(config, e.name); err != nil {
		return nil, nil, err
	}
	all, err := src.versions()
	if err != nil {
		return nil, nil, err
	}
	chosen, err := choose(config, all)
	if err != nil {
		return nil, nil, err
	}
	if len(chosen) == 0 {
		return nil, nil, inference.Errorf(inference.NotFound, "%s has no folder of a version, such as 1", src.dir)
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(config)
	if err != nil {
		return nil, nil, err
	}
	var want []planned
	for _, f := range chosen {
		p := planned{files: f}
		if err := src.find(&p.files, config); err == nil {
			p.fingerprint, err = p.files.fingerprint()
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, err
			}
		} else {
			p.model = "" // open says what is wrong
		}
		p.fingerprint.config = string(text)
		want = append(want, p)
	}
	return want, config, nil
}

func (s source) config() (*pb.ModelConfig, error) {
	if s.file != "" {
		return &pb.ModelConfig{}, nil
	}
	return readConfig(s.dir)
}

// open loads a version, and says in the index what happens.
func (r *Repository) open(ctx context.Context, e *entry, p planned, config *pb.ModelConfig) (*version, error) {
	old := e.loaded[p.number]
	served := old != nil && !old.idle
	if !served {
		r.setIndex(e, p.number, inference.StateLoading, "")
	}
	var v *version
	src, err := r.source(e.name)
	if err == nil {
		f := p.files
		if err = src.find(&f, config); err == nil {
			v, err = r.openFiles(ctx, e, f, config)
		}
	}
	if err != nil {
		r.options.Log.Error("a model cannot be loaded", "model", e.name, "version", p.number, "err", err)
		if served {
			r.setIndex(e, p.number, inference.StateReady, "the version before is served; loading anew failed: "+err.Error())
		} else {
			r.setIndex(e, p.number, inference.StateUnavailable, err.Error())
		}
		return nil, err
	}
	v.fingerprint = p.fingerprint
	r.options.Log.Info("loaded", "model", e.name, "version", p.number, "rows", v.scheduler.MaxRows(), "note", v.model.Note)
	return v, nil
}

// openFiles makes room for a version and loads it.
func (r *Repository) openFiles(ctx context.Context, e *entry, f files, config *pb.ModelConfig) (*version, error) {
	size, err := f.size()
	if err != nil {
		return nil, err
	}
	if err := r.makeRoom(ctx, e, strconv.FormatInt(f.number, 10), size); err != nil {
		return nil, err
	}
	v, err := openVersion(ctx, e.name, f, config, r.allow, &r.options)
	if err != nil {
		return nil, err
	}
	v.size = size
	return v, nil
}

// swapWeights has the version that is served compute with other weights, where nothing else has
// changed and the model can do that; otherwise it returns nil.
func (r *Repository) swapWeights(ctx context.Context, e *entry, p planned) (*version, error) {
	old := e.loaded[p.number]
	if old == nil || old.idle || p.weights == "" {
		return nil, nil
	}
	now := old.fingerprint
	if now.weights = p.fingerprint.weights; now != p.fingerprint {
		return nil, nil
	}
	swapped, err := old.model.SwapWeights(ctx, p.weights)
	if err != nil {
		r.options.Log.Error("weights cannot be loaded", "model", e.name, "version", p.number, "err", err)
		r.setIndex(e, p.number, inference.StateReady, "the weights before are served; loading others failed: "+err.Error())
		return nil, err
	}
	if !swapped {
		return nil, nil
	}
	old.fingerprint = now
	r.setIndex(e, p.number, inference.StateReady, old.model.Note)
	r.options.Log.Info("weights swapped", "model", e.name, "version", p.number)
	return old, nil
}

// serve makes versions those that requests find. The caller has e.mu.
func (r *Repository) serve(e *entry, fresh map[int64]*version) {
	r.writing.Lock()
	defer r.writing.Unlock()
	now := maps.Clone(*r.served.Load())
	if len(fresh) == 0 {
		delete(now, e.name)
	} else {
		m := &servedModel{byNumber: map[string]*version{}}
		for _, v := range fresh {
			m.byNumber[v.number] = v
		}
		m.latest = fresh[slices.Max(slices.Collect(maps.Keys(fresh)))]
		now[e.name] = m
	}
	r.served.Store(&now)
}

// publish serves versions, and unloads those before them in the background, when their last request
// is answered.
func (r *Repository) publish(e *entry, fresh map[int64]*version) {
	r.serve(e, fresh)
	for n, v := range fresh {
		if e.loaded[n] != v {
			r.setIndex(e, n, inference.StateReady, v.model.Note)
		}
	}
	for n, v := range e.loaded {
		if fresh[n] != v {
			if fresh[n] == nil {
				r.setIndex(e, n, inference.StateUnloading, "")
			}
			go r.retire(e, n, v, fresh[n] == nil)
		}
	}
	e.loaded = fresh
}

// retire closes a version when its last request is answered.
func (r *Repository) retire(e *entry, n int64, v *version, gone bool) {
	defer close(v.retired)
	if !v.idle {
		v.leave()
		<-v.closed
		if v.err != nil {
			r.options.Log.Error("a model cannot be closed", "model", v.name, "version", v.number, "err", v.err)
		}
		r.options.Log.Info("unloaded", "model", v.name, "version", v.number)
	}
	if !gone {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.index[n].State == inference.StateUnloading {
		e.index[n] = inference.IndexEntry{Name: e.name, Version: strconv.FormatInt(n, 10), State: inference.StateUnavailable, Reason: "unloaded"}
	}
}

func (r *Repository) setIndex(e *entry, n int64, state, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.index[n] = inference.IndexEntry{Name: e.name, Version: strconv.FormatInt(n, 10), State: state, Reason: reason}
}

// unload stops serving a model.
func (r *Repository) unload(name string) error {
	e := r.entry(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.loaded) == 0 {
		return inference.Errorf(inference.NotFound, "the model %q is not loaded", name)
	}
	r.publish(e, map[int64]*version{})
	return nil
}

// Stop makes the server unready; requests are answered as before.
func (r *Repository) Stop() { r.stopping.Store(true) }

// Stopping reports whether Stop was called.
func (r *Repository) Stopping() bool { return r.stopping.Load() }

// Close unloads all models, and returns when that is done or ctx ends.
func (r *Repository) Close(ctx context.Context) error {
	r.Stop()
	r.mu.Lock()
	entries := slices.Collect(maps.Values(r.entries))
	r.mu.Unlock()
	for _, e := range entries {
		e.mu.Lock()
		all := e.loaded
		r.publish(e, map[int64]*version{})
		e.mu.Unlock()
		for _, v := range all {
			select {
			case <-v.retired:
			case <-ctx.Done():
				return fmt.Errorf("model %q has requests: %w", v.name, ctx.Err())
			}
		}
	}
	return nil
}
