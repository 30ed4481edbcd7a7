package executor

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// stats are the counters of one executor.
type stats struct {
	hits, runs, steps, uploaded, fetched atomic.Int64
	nodes, maxNodes                      atomic.Int64
	diskHits, diskWrites                 atomic.Int64
	stages                               [numStages]atomic.Int64

	mu       sync.Mutex
	compiles []Compile // the last maxCompiles; guarded by mu
	count    int       // of all compiles; guarded by mu
	newSizes int       // of those, how many differ only in sizes from an earlier one; guarded by mu
	recent   []structure
	carry    map[uintptr]int // lines of values carried across steps; guarded by mu
	again    map[uintptr]int // lines of values whose graph ran again after its step; guarded by mu
	trims    map[uintptr]int // lines where a graph was trimmed; guarded by mu
	diskErr  error           // the last of the on-disk tier; guarded by mu
}

const (
	maxCompiles = 256
	maxRecent   = 32
)

func (s *stats) init() {
	s.carry, s.again, s.trims = map[uintptr]int{}, map[uintptr]int{}, map[uintptr]int{}
}

func (s *stats) graph(n int) {
	s.nodes.Add(int64(n))
	for {
		m := s.maxNodes.Load()
		if int64(n) <= m || s.maxNodes.CompareAndSwap(m, int64(n)) {
			return
		}
	}
}

func (s *stats) carried(line uintptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carry[line]++
}

func (s *stats) recomputed(line uintptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again[line]++
}

func (s *stats) trimmed(_ int, line uintptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trims[line]++
}

func (s *stats) compiled(p *graph.Program, h ir.Hash, d ir.Device, st graph.Stats, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	c := Compile{Hash: h, Device: d, Nodes: len(p.Instrs), EmittedNodes: st.After, Time: took}
	if c.Why, c.NewSizes = s.why(p); c.NewSizes {
		s.newSizes++
	}
	if len(s.compiles) == maxCompiles {
		s.compiles = append(s.compiles[:0], s.compiles[1:]...)
	}
	s.compiles = append(s.compiles, c)
}

// LineCount is a source line and a number of events there.
type LineCount struct {
	Line  string
	Count int
}

// Report is the counters of an executor, all sessions together.
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
	// CacheBytes are what the computations in the cache hold, with the code of their kernels and
	// their constants: at most what WithCacheBytes says, and nothing after Close.
	CacheBytes int64
	// Plugged are the graphs that run on models given by Plug.
	Plugged []PluggedGraph
	// Recent are the last compilations, oldest first.
	Recent []Compile
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
}

// Report returns the counters of the session's executor.
func (s *Session) Report() Report {
	c := s.core
	st := &c.stats
	r := Report{
		Steps: st.steps.Load(), Runs: st.runs.Load(), CachedHits: st.hits.Load(),
		DiskHits: st.diskHits.Load(), DiskWrites: st.diskWrites.Load(),
		Nodes: st.nodes.Load(), MaxNodes: st.maxNodes.Load(),
		BytesUploaded: st.uploaded.Load(), BytesFetched: st.fetched.Load(),
		CacheBytes:  c.cache.Stats().Cost,
		StageTime:   map[string]time.Duration{},
		LiveTensors: map[string]int{}, MemoryInUse: map[string]int64{}, Memory: map[string]backend.MemoryStats{},
	}
	for i := range st.stages {
		r.StageTime[Stage(i).String()] = time.Duration(st.stages[i].Load())
	}
	st.mu.Lock()
	r.Compiles, r.NewSizes, r.DiskError = int64(st.count), int64(st.newSizes), st.diskErr
	r.Recent = append(r.Recent, st.compiles...)
	r.CarriedAcrossSteps, r.CarriedLines = lineCounts(st.carry)
	r.Recomputed, r.RecomputedLines = lineCounts(st.again)
	r.Trims, r.TrimLines = lineCounts(st.trims)
	st.mu.Unlock()
	ls := c.lockers.Stats()
	r.LockWaits, r.LockWaitTime = ls.Waits, ls.WaitTime
	ds := c.data.Stats()
	r.DataCacheHits, r.DataCacheMisses = ds.Hits+ds.ScalarHits, ds.Misses
	c.mu.Lock()
	r.Plugged = c.pluggedGraphs()
	for d, set := range c.live {
		set.sweep()
		r.LiveTensors[d.String()] = len(set.tensors)
	}
	c.mu.Unlock()
	for _, d := range s.activeDevices() {
		r.MemoryInUse[d.String()] = s.MemoryInUse(d)
		if st, ok := memoryStats(d); ok {
			r.Memory[d.String()] = st
		}
	}
	return r
}

func lineCounts(m map[uintptr]int) (total int, out []LineCount) {
	for pc, n := range m {
		total += n
		out = append(out, LineCount{Line: ir.FormatLine(pc), Count: n})
	}
	return total, out
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
	for _, c := range r.Recent {
		fmt.Fprintf(&b, "compiled %v on %v: %d nodes to %d in %v: %s\n", c.Hash, c.Device, c.Nodes, c.EmittedNodes, c.Time.Round(time.Microsecond), c.Why)
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
