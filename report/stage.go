package report

import (
	"time"

	"github.com/loris-ml/loris/internal/ir"
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
