package executor

import (
	"time"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// Stage is a part of a sync or a read whose time is measured.
type Stage int

// The stages, in order. Collect includes the walk, the hash and the look-up in the cache, Run is
// the asynchronous part, Fetch the time that reads wait.
const (
	StageCollect Stage = iota
	StageCompile
	StageUpload
	StageLock
	StageSchedule
	StageRun
	StageFetch
	numStages
)

var stageNames = [numStages]string{"collect", "compile", "upload", "lock", "schedule", "run", "fetch"}

// String returns the stage's name.
func (s Stage) String() string { return stageNames[s] }

// Stages returns all stages in order.
func Stages() []Stage {
	out := make([]Stage, numStages)
	for i := range out {
		out[i] = Stage(i)
	}
	return out
}

// Hooks override stages of the pipeline, for profilers and for frameworks on top. They run on the
// goroutine that syncs. Those marked "under the lock" must not call the session.
type Hooks struct {
	// ShouldSyncTensor says whether a pending tensor belongs to a sync (under
	// the lock).
	ShouldSyncTensor func(t *Tensor) bool
	// RunPostOrder wraps the walk (under the lock). It must return the result of next, or an order
	// of the same nodes.
	RunPostOrder func(roots []ir.Value, next func([]ir.Value) graph.PostOrder) graph.PostOrder
	// TensorCollectionBarrier is called before a collection's devices are locked.
	TensorCollectionBarrier func(coll *SyncTensorCollection)
	// RngSeed returns a device's seed as an i64 scalar value (under the lock).
	RngSeed func(s *Session, d ir.Device) ir.Value
	// Observe is called at the end of every stage, on the goroutine that ran it.
	Observe func(Observation)
}

// Observation describes one stage of one sync.
type Observation struct {
	Stage    Stage
	Start    time.Time
	Duration time.Duration
	// Device, Hash and Err describe the computation; only StageRun has them.
	Device ir.Device
	Hash   ir.Hash
	Err    error
}

// stage adds the time since start to that of a stage, calls the observer and returns the time.
func (c *core) stage(st Stage, start time.Time) time.Time {
	return c.observe(Observation{Stage: st, Start: start})
}

// observe is stage for an Observation without a duration.
func (c *core) observe(o Observation) time.Time {
	now := time.Now()
	o.Duration = now.Sub(o.Start)
	c.stats.stages[o.Stage].Add(int64(o.Duration))
	if h := c.cfg.Hooks.Observe; h != nil {
		h(o)
	}
	return now
}
