package loris

import (
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// Hooks override stages of a sync, for profilers and for frameworks on top. They run on the
// goroutine that syncs. Those marked "under the lock" must not call the session; where
// one of them is set, forks have one lock together.
type Hooks struct {
	// ShouldSyncTensor says whether a pending tensor belongs to a sync (under the lock).
	ShouldSyncTensor func(t *Tensor) bool
	// RunPostOrder wraps the walk (under the lock). It must return the result of next, or an order
	// of the same nodes.
	RunPostOrder func(roots []ir.Value, next func([]ir.Value) graph.PostOrder) graph.PostOrder
	// TensorCollectionBarrier is called before a collection's devices are locked.
	TensorCollectionBarrier func(coll *SyncTensorCollection)
	// RngSeed returns a device's seed as an i64 scalar value (under the lock).
	RngSeed func(s *Session, d Device) ir.Value
	// Observe is called at the end of every stage, on the goroutine that ran it.
	Observe func(Observation)
}

// SyncTensorCollection says which tensors a sync computes, on which device and as which graph.
type SyncTensorCollection = executor.SyncTensorCollection

// Observation describes one stage of one sync: its start and duration; of StageRun also the
// device, the graph's hash and the error (package report).
type Observation = report.Observation

// Stage is a part of a sync or a read whose time is measured.
type Stage = report.Stage

// The stages, in order. Collect includes the walk, the hash and the look-up in the cache, Run is
// the asynchronous part, Fetch the time that reads wait.
const (
	StageCollect  = report.StageCollect
	StageCompile  = report.StageCompile
	StageUpload   = report.StageUpload
	StageLock     = report.StageLock
	StageSchedule = report.StageSchedule
	StageRun      = report.StageRun
	StageFetch    = report.StageFetch
)

// WithHooks overrides stages of a sync.
func WithHooks(h Hooks) SessionOption {
	return func(c *executor.Config) {
		c.Hooks = executor.Hooks{
			RunPostOrder:            h.RunPostOrder,
			TensorCollectionBarrier: h.TensorCollectionBarrier,
			Observe:                 h.Observe,
		}
		if f := h.ShouldSyncTensor; f != nil {
			c.Hooks.ShouldSyncTensor = func(t *executor.Tensor) bool { return f((*Tensor)(t)) }
		}
		if f := h.RngSeed; f != nil {
			c.Hooks.RngSeed = func(s *executor.Session, d ir.Device) ir.Value { return f((*Session)(s), d) }
		}
	}
}
