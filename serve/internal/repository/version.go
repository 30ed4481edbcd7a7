package repository

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/serve/internal/batch"
	"github.com/loris-ml/loris/serve/internal/generate"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
	"github.com/loris-ml/loris/serve/internal/tracing"
)

// version is a loaded version of a model.
type version struct {
	name, number string
	model        *model.Model
	scheduler    *batch.Scheduler
	files        files
	given        *pb.ModelConfig // what it was loaded with; config is that and what the model says
	size         int64           // of the files, in bytes
	opened       time.Time
	config       *pb.ModelConfig
	labels       [][]string // of the classes, by output
	fingerprint  fingerprint
	stats        *stats
	tracer       *tracing.Tracer
	log          *slog.Logger
	generator    *generate.Generator // nil for a model without a tokenizer

	// idle says that this stands for a version that is not loaded. Such a one has no scheduler, no
	// generator and no users, and its model cannot run.
	idle bool

	describing  sync.Mutex
	description *inference.Description // nil before Describe

	// users counts the repository and the requests in it. With the last one gone the
	// model is closed.
	users  atomic.Int64
	closed chan struct{}
	err    error // of closing; valid when closed is
	// retired is closed when the repository has told of the version's end and does nothing more for it.
	retired chan struct{}
}

func openVersion(ctx context.Context, name string, f files, c *pb.ModelConfig, allow *allowList, ro *Options) (*version, error) {
	o, err := options(c)
	if err != nil {
		return nil, err
	}
	o.Weights = f.weights
	if o.Updatable = ro.UpdateWeights; o.Updatable {
		o.Golden = filepath.Join(filepath.Dir(f.model), "golden.safetensors")
	}
	if err := allow.check(f.model); err != nil {
		return nil, err
	}
	m, err := model.Open(ctx, f.model, o)
	if err != nil {
		return nil, err
	}
	v := &version{
		name: name, number: strconv.FormatInt(f.number, 10), model: m, files: f, given: c, opened: time.Now(), stats: &stats{},
		scheduler: batch.New(m, scheduling(c, m)), config: completed(c, name, m), closed: make(chan struct{}), retired: make(chan struct{}), tracer: ro.Tracer, log: ro.Log,
	}
	if err = checkTensors(c, m); err == nil {
		v.labels, err = readLabels(c, m, f.dir)
	}
	if err == nil {
		v.generator, err = readGenerator(c, m, f.dir)
	}
	if err == nil {
		err = warmUp(ctx, m, c, f.dir)
	}
	if err != nil {
		_ = m.Close() // the other mistake is what matters
		return nil, err
	}
	v.users.Store(1)
	return v, nil
}

// use counts a request in; false if the version has been unloaded.
func (v *version) use() bool {
	for {
		n := v.users.Load()
		if n == 0 {
			return false
		}
		if v.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave counts a request, or the repository, out.
func (v *version) leave() {
	if v.users.Add(-1) == 0 {
		v.err = v.model.Close()
		close(v.closed)
	}
}

// user is a version that a request uses, and leaves by Release.
type user version

// Release counts the request out.
func (u *user) Release() { (*version)(u).leave() }

// infer answers a request.
func (v *version) infer(ctx context.Context, r *inference.Request) (_ *inference.Response, err error) {
	begin := time.Now()
	span := v.tracer.Begin(ctx, v.name, v.number)
	defer func() {
		if err != nil {
			if p := new(batch.PanicError); errors.As(err, &p) {
				v.log.Error("a model panicked", "model", v.name, "version", v.number, "error", p.Value, "stack", string(p.Stack))
			}
			v.stats.fail(time.Since(begin), inference.AsError(err))
			span.End(err, 0, "")
		}
	}()
	work, err := v.model.Bind(r)
	if err != nil {
		return nil, err
	}
	var few [8]int
	positions, err := v.outputs(r, few[:0])
	if err != nil {
		return nil, err
	}
	req := batch.Request{Work: work}
	if req.Priority, req.Timeout, err = schedule(r.Parameters); err != nil {
		return nil, err
	}
	out, err := v.scheduler.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := &inference.Response{Model: v.name, Version: v.number, ID: r.ID, Outputs: out.Outputs}
	if w := out.Result.WeightVersion; w != "" {
		resp.Parameters = inference.Parameters{"weight_version": w}
	}
	if len(r.Outputs) > 0 {
		resp.MakeOutputs(len(r.Outputs))
		for i, at := range positions {
			resp.Outputs[i] = out.Outputs[at]
			resp.Outputs[i].Name = r.Outputs[i].Name // as the client calls it
			n, err := classCount(&r.Outputs[i])
			if err == nil && n > 0 {
				resp.Outputs[i], err = classify(&resp.Outputs[i], n, v.model.Rows != 0, v.labels[at])
			}
			if err != nil {
				out.Result.Release()
				return nil, err
			}
		}
	}
	resp.Hold(out.Result)
	v.stats.success(time.Since(begin), work.Rows, &out)
	if span != nil {
		span.End(nil, max(out.Rows, 1), out.Result.WeightVersion, tracing.Step{Name: "queue", Took: out.Queue},
			tracing.Step{Name: "gather", Took: out.Result.Input}, tracing.Step{Name: "run", Took: out.Result.Infer}, tracing.Step{Name: "answer", Took: out.Result.Output})
	}
	return resp, nil
}

// outputs appends the positions of the outputs that a request names.
func (v *version) outputs(r *inference.Request, positions []int) ([]int, error) {
	for i := range r.Outputs {
		o := &r.Outputs[i]
		if _, err := classCount(o); err != nil { // before it has cost a run
			return nil, err
		}
		at, err := v.model.FindOutput(o.Name)
		if err != nil {
			return nil, err
		}
		positions = append(positions, at)
	}
	return positions, nil
}

// schedule reads the parameters of a request that the queue needs; others that ask for
// something this server does not do are refused.
func schedule(p inference.Parameters) (priority int, timeout time.Duration, err error) {
	for key, value := range p {
		switch key {
		case "priority", "timeout":
			n, ok := value.(int64)
			if u, is := value.(uint64); is { // as tritonclient has priorities
				n, ok = int64(min(u, 1<<62)), true
			}
			if text, is := value.(string); is {
				n, err = strconv.ParseInt(text, 10, 64)
				ok = err == nil
			}
			if !ok || n < 0 || n > 1<<40 {
				return 0, 0, badf("parameter %s: expected a number from 0 on, got %v", key, value)
			}
			if key == "priority" {
				priority = int(min(n, 1<<30))
			} else {
				timeout = time.Duration(n) * time.Microsecond
			}
		case "sequence_id":
			if value != int64(0) && value != "" {
				return 0, 0, inference.Errorf(inference.Unimplemented, "parameter sequence_id: sequences are not supported")
			}
		}
	}
	return priority, timeout, nil
}

// stats counts what a version did.
type stats struct {
	mu     sync.Mutex
	last   time.Time
	rows   uint64
	runs   uint64
	times  inference.InferStatistics
	byRows map[int64]*inference.BatchStatistics
	// latencies are those of the requests that were answered.
	latencies inference.Latencies
	failures  [inference.TooLarge + 1]uint64
	recent    []inference.Failure // the last ones, the last at the end
	sleeps    uint64              // how often it was unloaded to keep within the memory budget
}

func (s *stats) slept() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sleeps++
}

func (s *stats) fail(took time.Duration, e *inference.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times.Fail.Add(took)
	s.failures[e.Kind]++
	if last := len(s.recent) - 1; last >= 0 && s.recent[last].Message == e.Msg && s.recent[last].Kind == e.Kind.String() {
		s.recent[last].At = time.Now()
		s.recent[last].Count++
		return
	}
	if len(s.recent) == maxRecent {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
	s.recent = append(s.recent, inference.Failure{At: time.Now(), Kind: e.Kind.String(), Message: e.Msg, Count: 1})
}

// maxRecent is how many failures with their reasons are remembered.
const maxRecent = 8

func (s *stats) success(took time.Duration, rows int64, o *batch.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	s.rows += uint64(max(rows, 1))
	s.times.Success.Add(took)
	s.latencies.Add(took)
	s.times.Queue.Add(o.Queue)
	s.times.ComputeInput.Add(o.Result.Input)
	s.times.ComputeInfer.Add(o.Result.Infer)
	s.times.ComputeOutput.Add(o.Result.Output)
	if !o.First {
		return
	}
	s.runs++
	n := max(o.Rows, 1)
	b := s.byRows[n]
	if b == nil {
		if s.byRows == nil {
			s.byRows = map[int64]*inference.BatchStatistics{}
		}
		b = &inference.BatchStatistics{BatchSize: uint64(n)}
		s.byRows[n] = b
	}
	b.ComputeInput.Add(o.Result.Input)
	b.ComputeInfer.Add(o.Result.Infer)
	b.ComputeOutput.Add(o.Result.Output)
}
