package executor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// stats are the counters of one executor.
type stats struct {
	hits, runs, steps, uploaded, fetched atomic.Int64
	nodes, maxNodes                      atomic.Int64
	diskHits, diskWrites                 atomic.Int64
	stages                               [report.StageFetch + 1]atomic.Int64

	ongoing compilations

	mu       sync.Mutex
	compiles []report.Compile // the last maxCompiles; guarded by mu
	count    int              // of all compiles; guarded by mu
	newSizes int              // of those, how many differ only in sizes from an earlier one; guarded by mu
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
	raise(&s.maxNodes, int64(n))
}

// raise sets v to n unless it is more already.
func raise(v *atomic.Int64, n int64) {
	for {
		now := v.Load()
		if n <= now || v.CompareAndSwap(now, n) {
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
	c := report.Compile{Hash: h, Device: d, Nodes: len(p.Instrs), EmittedNodes: st.After, Time: took}
	if c.Why, c.NewSizes = s.why(p, st.Structure); c.NewSizes {
		s.newSizes++
	}
	if len(s.compiles) == maxCompiles {
		s.compiles = append(s.compiles[:0], s.compiles[1:]...)
	}
	s.compiles = append(s.compiles, c)
}

// Report returns the counters of the session's executor.
func (s *Session) Report() report.Report {
	c := s.core
	st := &c.stats
	r := report.Report{
		Steps: st.steps.Load(), Runs: st.runs.Load(), CachedHits: st.hits.Load(),
		DiskHits: st.diskHits.Load(), DiskWrites: st.diskWrites.Load(),
		Nodes: st.nodes.Load(), MaxNodes: st.maxNodes.Load(),
		BytesUploaded: st.uploaded.Load(), BytesFetched: st.fetched.Load(),
		CacheBytes:  c.cache.Stats().Cost,
		StageTime:   map[string]time.Duration{},
		LiveTensors: map[string]int{}, MemoryInUse: map[string]int64{}, Memory: map[string]backend.MemoryStats{},
	}
	for i := range st.stages {
		r.StageTime[report.Stage(i).String()] = time.Duration(st.stages[i].Load())
	}
	st.mu.Lock()
	r.Compiles, r.NewSizes, r.DiskError = int64(st.count), int64(st.newSizes), st.diskErr
	r.Recent = append(r.Recent, st.compiles...)
	r.CarriedAcrossSteps, r.CarriedLines = lineCounts(st.carry)
	r.Recomputed, r.RecomputedLines = lineCounts(st.again)
	r.Trims, r.TrimLines = lineCounts(st.trims)
	st.mu.Unlock()
	r.Compiling = st.ongoing.list()
	ls := c.lockers.Stats()
	r.LockWaits, r.LockWaitTime = ls.Waits, ls.WaitTime
	ds := c.data.Stats()
	r.DataCacheHits, r.DataCacheMisses = ds.Hits+ds.ScalarHits, ds.Misses
	c.mu.Lock()
	r.Plugged = c.pluggedGraphs()
	c.mu.Unlock()
	c.live.counts(r.LiveTensors)
	if w := c.cfg.Collectives; w != nil {
		r.Collectives, r.Agreements = w.Report()
	}
	for _, d := range s.activeDevices() {
		r.MemoryInUse[d.String()] = s.MemoryInUse(d)
		if st, ok := memoryStats(d); ok {
			r.Memory[d.String()] = st
		}
	}
	return r
}

func lineCounts(m map[uintptr]int) (total int, out []report.LineCount) {
	for pc, n := range m {
		total += n
		out = append(out, report.LineCount{Line: ir.FormatLine(pc), Count: n})
	}
	return total, out
}
