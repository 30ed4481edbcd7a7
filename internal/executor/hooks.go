package executor

import (
	"time"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// Stage is a part of a sync or a read whose time is measured.
type Stage int

// The stages, as loris.StageCollect and the following say.
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

// Hooks override stages of the pipeline, as loris.Hooks says.
type Hooks struct {
	ShouldSyncTensor        func(t *Tensor) bool
	RunPostOrder            func(roots []ir.Value, next func([]ir.Value) graph.PostOrder) graph.PostOrder
	TensorCollectionBarrier func(coll *SyncTensorCollection)
	RngSeed                 func(s *Session, d ir.Device) ir.Value
	Observe                 func(Observation)
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
