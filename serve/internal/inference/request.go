package inference

import "time"

// Request asks a model for outputs.
type Request struct {
	Model string
	// Version is empty for the one that the server chooses.
	Version    string
	ID         string
	Parameters Parameters
	Inputs     []Tensor
	// Outputs are those that are wanted, in this order; empty for all.
	Outputs []RequestedOutput
	// Raw says that Inputs has one element that only has Data: name, datatype and
	// shape are those of the model's only input.
	Raw bool
}

// RequestedOutput is an output that a request asks for.
type RequestedOutput struct {
	Name       string
	Parameters Parameters
}

// Response answers a Request. Its outputs' data may belong to a pool: Release gives
// it back, after which nobody may read it.
type Response struct {
	Model, Version, ID string
	Parameters         Parameters
	Outputs            []Tensor

	held [2]Releaser
	more []Releaser
	room [4]Tensor
}

// Releaser is what a Response holds until its outputs have been written.
type Releaser interface{ Release() }

// Hold has x released by Release, after what was given before.
func (r *Response) Hold(x Releaser) {
	for i := range r.held {
		if r.held[i] == nil {
			r.held[i] = x
			return
		}
	}
	r.more = append(r.more, x)
}

// MakeOutputs sets Outputs to n empty tensors, in memory that the Response has where these are few.
func (r *Response) MakeOutputs(n int) {
	if n <= len(r.room) {
		r.Outputs = r.room[:n:n]
		return
	}
	r.Outputs = make([]Tensor, n)
}

// Release gives the memory of the outputs back. It may be called once, or not at
// all: then the garbage collector finds it.
func (r *Response) Release() {
	for i, x := range r.held {
		if x != nil {
			r.held[i] = nil
			x.Release()
		}
	}
	for _, x := range r.more {
		x.Release()
	}
	r.more = nil
}

// ServerMetadata says what a server is.
type ServerMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// TensorMetadata describes an input or an output; -1 in Shape is a dimension that
// varies.
type TensorMetadata struct {
	Name     string   `json:"name"`
	Datatype Datatype `json:"datatype"`
	Shape    []int64  `json:"shape"`
}

// ModelMetadata describes a model.
type ModelMetadata struct {
	Name       string            `json:"name"`
	Versions   []string          `json:"versions"`
	Platform   string            `json:"platform"`
	Inputs     []TensorMetadata  `json:"inputs"`
	Outputs    []TensorMetadata  `json:"outputs"`
	Properties map[string]string `json:"properties,omitempty"`
}

// The states of a version in the index of the repository.
const (
	StateReady       = "READY"
	StateLoading     = "LOADING"
	StateUnloading   = "UNLOADING"
	StateUnavailable = "UNAVAILABLE"
)

// IndexEntry is one version of a model in the index of the repository. State is empty
// for a model that was never loaded.
type IndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Duration counts events and the time that they took.
type Duration struct {
	Count uint64 `json:"count"`
	NS    uint64 `json:"ns"`
}

// Add counts one event.
func (d *Duration) Add(took time.Duration) { d.Count++; d.NS += uint64(max(took, 0)) }

// InferStatistics are the times of a model's requests, as Triton counts them.
type InferStatistics struct {
	Success       Duration `json:"success"`
	Fail          Duration `json:"fail"`
	Queue         Duration `json:"queue"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
	CacheHit      Duration `json:"cache_hit"`
	CacheMiss     Duration `json:"cache_miss"`
}

// BatchStatistics are those of executions with one number of rows.
type BatchStatistics struct {
	BatchSize     uint64   `json:"batch_size"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
}

// ModelStatistics are those of one version of a model.
type ModelStatistics struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// LastInference is in milliseconds since the epoch; 0 before the first.
	LastInference  uint64            `json:"last_inference"`
	InferenceCount uint64            `json:"inference_count"` // rows
	ExecutionCount uint64            `json:"execution_count"` // runs of the model
	InferenceStats InferStatistics   `json:"inference_stats"`
	BatchStats     []BatchStatistics `json:"batch_stats"`
}

// Gauge is what a version has at the moment.
type Gauge struct {
	Name, Version string
	// InFlight is the number of requests, and Waiting that of those in the queue.
	InFlight, Waiting int
	// Memory is what it holds in bytes, its files and the sets of weights that it got. Idle says that
	// it was unloaded to keep within the memory budget, and Sleeps how often that was so.
	Memory int64
	Idle   bool
	Sleeps uint64
	// Failures counts failed requests by the kind of error.
	Failures map[string]uint64
	// Recent are the last failures, the last one at the end.
	Recent []Failure
	// Latencies are the times from request to answer.
	Latencies Latencies
}
