package executor

import (
	"time"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// Hooks override stages of the pipeline, as loris.Hooks says.
type Hooks struct {
	ShouldSyncTensor        func(t *Tensor) bool
	RunPostOrder            func(roots []ir.Value, next func([]ir.Value) graph.PostOrder) graph.PostOrder
	TensorCollectionBarrier func(coll *SyncTensorCollection)
	RngSeed                 func(s *Session, d ir.Device) ir.Value
	Observe                 func(report.Observation)
}

// stage adds the time since start to that of a stage, calls the observer and returns the time.
func (c *core) stage(st report.Stage, start time.Time) time.Time {
	return c.observe(report.Observation{Stage: st, Start: start})
}

// observe is stage for an report.Observation without a duration.
func (c *core) observe(o report.Observation) time.Time {
	now := time.Now()
	o.Duration = now.Sub(o.Start)
	c.stats.stages[o.Stage].Add(int64(o.Duration))
	if h := c.cfg.Hooks.Observe; h != nil {
		h(o)
	}
	return now
}
