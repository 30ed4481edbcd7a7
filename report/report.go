// Package report has what a session says of its work: its counters, and the stages that it times.
// Package loris has these types under its own names: Session.Report returns a Report, and
// Hooks.Observe is called with Observations.
package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// LineCount is a source line and a number of events there.
type LineCount struct {
	Line  string
	Count int
}

// Report has the counters of a session and its forks, which share one executor: how often it
// compiled and why, where time went, what memory is in use.
type Report struct {
	// Steps counts calls of MarkStep and Step, Runs executed computations.
	Steps, Runs int64
	// Compiles counts compilations, CachedHits syncs whose computation was in memory, and
	// DiskHits computations made from artefacts of an earlier process.
	Compiles, CachedHits, DiskHits int64
	// NewSizes counts the compilations of graphs that differ only in sizes from one compiled before.
	NewSizes int64
	// DiskWrites counts artefacts written to disk. DiskError is the last error of the on-disk
	// tier; such errors cost a compilation and nothing else.
	DiskWrites int64
	DiskError  error
	// CacheBytes are what the computations in the cache hold, with their Programs, plans, the code of
	// their kernels and their constants, each for one instance: at most what WithCacheBytes says, and
	// nothing after Close.
	CacheBytes int64
	// Plugged are the graphs that run on models given by Plug.
	Plugged []Plugged
	// Recent are the last compilations, oldest first, and Compiling are those that go on now.
	Recent    []Compile
	Compiling []Compiling
	// CarriedAcrossSteps counts values of an earlier step that were used while
	// they were still IR; CarriedLines says where they were recorded.
	CarriedAcrossSteps int
	CarriedLines       []LineCount
	// Recomputed counts values whose graph ran for them alone after their step had ended, because
	// another op used them, so that the step did not give them out, and nothing kept them.
	// RecomputedLines says where they were recorded: Keep them before MarkStep.
	Recomputed      int
	RecomputedLines []LineCount
	// Trims counts graphs that were synced because they had grown too large.
	Trims     int
	TrimLines []LineCount
	// Nodes counts graph nodes synced, MaxNodes is the largest graph.
	Nodes, MaxNodes int64
	// StageTime is the time spent in each stage.
	StageTime map[string]time.Duration
	// LockWaits and LockWaitTime are how often and how long syncs waited for device lockers.
	LockWaits    uint64
	LockWaitTime time.Duration
	// BytesUploaded and BytesFetched are the bytes copied to devices and read from them.
	BytesUploaded, BytesFetched int64
	// LiveTensors are tensors with data that are still reachable (as far as the
	// garbage collector has looked), by device.
	LiveTensors map[string]int
	// MemoryInUse are the bytes of live buffers, by device.
	MemoryInUse map[string]int64
	// Memory describes the memory of devices that have their own, such as GPUs.
	Memory map[string]backend.MemoryStats
	// DataCacheHits and DataCacheMisses count look-ups of numbers and host data.
	DataCacheHits, DataCacheMisses uint64
	// Collectives are those that this rank of a dist.Group has taken part in, what was waited for
	// longest first, and Agreements the comparisons with the other ranks before runs. Sessions of one
	// group have them in common.
	Collectives []Collective
	Agreements  Agreements
}

// Collective says what one collective of a program has cost a rank.
type Collective struct {
	Group string
	Op    string // with its shapes and attributes
	Line  string // file:line of the user's call
	Runs  int64
	Bytes int64 // of the operands of all runs
	// Time is that of the transfers, in which other ranks may not have come yet. Waited is how long
	// steps stood still for results, and Overlap what of Time passed while they computed.
	Time, Waited, Overlap time.Duration
}

// Agreements are the comparisons of what ranks are about to run. Their Time includes that until the
// last rank has come.
type Agreements struct {
	Runs int64
	Time time.Duration
}

// Compile describes one compilation.
type Compile struct {
	Hash         ir.Hash
	Device       ir.Device
	Nodes        int // recorded
	EmittedNodes int // compiled, after the rewrites
	Time         time.Duration
	// NewSizes says that a graph compiled before differs from this one only in sizes.
	NewSizes bool
	// Why is the reason: the first graph, changed shapes with the old and the new ones and the first
	// line that they concern, or the first difference from the most similar graph compiled before,
	// with its line.
	Why string
}

// Compiling describes a compilation that goes on.
type Compiling struct {
	Hash   ir.Hash
	Device ir.Device
	Nodes  int // recorded
	// Time is how long it has taken so far.
	Time time.Duration
	// Done of Total parts are compiled, kernels or instructions as the backend counts them; Total is
	// 0 until it tells.
	Done, Total int
}

// Plugged describes a graph that runs on a plugged model.
type Plugged struct {
	Hash ir.Hash
	// Device is the zero Device for a graph that is known by its hash and was not met yet.
	Device ir.Device
	// Model is the Go type of the model.
	Model string
	// Runs counts the runs of the model.
	Runs int64
}

// String returns the report as text, a fact a line.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "steps %d, runs %d, compiles %d, cached hits %d\n", r.Steps, r.Runs, r.Compiles, r.CachedHits)
	if r.NewSizes > 0 {
		fmt.Fprintf(&b, "%d of the compiles had new sizes only\n", r.NewSizes)
	}
	fmt.Fprintf(&b, "graph nodes %d, largest graph %d, computations in the cache hold %d bytes\n", r.Nodes, r.MaxNodes, r.CacheBytes)
	if r.DiskHits+r.DiskWrites > 0 || r.DiskError != nil {
		fmt.Fprintf(&b, "disk: %d hits, %d writes", r.DiskHits, r.DiskWrites)
		if r.DiskError != nil {
			fmt.Fprintf(&b, ", last error: %v", r.DiskError)
		}
		b.WriteByte('\n')
	}
	for _, st := range Stages() {
		fmt.Fprintf(&b, "%-9s %v\n", st, r.StageTime[st.String()].Round(time.Microsecond))
	}
	fmt.Fprintf(&b, "lock waits %d (%v), uploaded %d bytes, fetched %d bytes\n", r.LockWaits, r.LockWaitTime.Round(time.Microsecond), r.BytesUploaded, r.BytesFetched)
	for d, n := range r.LiveTensors {
		fmt.Fprintf(&b, "%s: %d live tensors, %d bytes", d, n, r.MemoryInUse[d])
		if m, ok := r.Memory[d]; ok {
			fmt.Fprintf(&b, ", at most %d, %d reserved, %d of %d free on the device, %d pinned", m.Peak, m.Reserved, m.Free, m.Total, m.Pinned)
		}
		b.WriteByte('\n')
	}
	if r.Agreements.Runs > 0 {
		fmt.Fprintf(&b, "agreed with other ranks %d times in %v\n", r.Agreements.Runs, r.Agreements.Time.Round(time.Microsecond))
	}
	for _, c := range r.Collectives {
		fmt.Fprintf(&b, "%s of group %q: %d runs, %d bytes, %v, waited %v, overlapped %v: recorded at %s\n", c.Op, c.Group, c.Runs, c.Bytes,
			c.Time.Round(time.Microsecond), c.Waited.Round(time.Microsecond), c.Overlap.Round(time.Microsecond), c.Line)
	}
	for _, c := range r.Recent {
		fmt.Fprintf(&b, "compiled %v on %v: %d nodes to %d in %v: %s\n", c.Hash, c.Device, c.Nodes, c.EmittedNodes, c.Time.Round(time.Microsecond), c.Why)
	}
	for _, c := range r.Compiling {
		fmt.Fprintf(&b, "compiling %v on %v: %d nodes, %d of %d parts in %v\n", c.Hash, c.Device, c.Nodes, c.Done, c.Total, c.Time.Round(time.Millisecond))
	}
	for _, p := range r.Plugged {
		fmt.Fprintf(&b, "graph %v on %v runs on a plugged %s: %d runs\n", p.Hash, p.Device, p.Model, p.Runs)
	}
	for _, l := range r.CarriedLines {
		fmt.Fprintf(&b, "carried across a step %d times: recorded at %s\n", l.Count, l.Line)
	}
	for _, l := range r.RecomputedLines {
		fmt.Fprintf(&b, "computed again %d times after its step had ended: recorded at %s; Keep it before MarkStep\n", l.Count, l.Line)
	}
	for _, l := range r.TrimLines {
		fmt.Fprintf(&b, "graph synced without a MarkStep %d times: at %s\n", l.Count, l.Line)
	}
	return b.String()
}
