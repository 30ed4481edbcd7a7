// Package executor runs the life of a sync: collect the pending tensors, walk
// and hash their graph, find or build the computation, lock the devices, assign
// placeholders and schedule. The stages are named as in LazyGraphExecutor.
package executor

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"golang.org/x/sync/semaphore"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tracefile"
)

// Config sets up an executor. The zero value is ready to use.
type Config struct {
	// Device is where tensors without another device are; it must be set.
	Device ir.Device
	// Seed is the first seed of each device's random numbers; 0 means 101.
	Seed uint64
	// CacheBytes bounds the bytes that computations in the cache hold: 0 means the cache's
	// default, a negative number keeps only CacheStrong computations.
	CacheBytes int64
	// CacheStrong is how many computations are kept that the cache refused or that exceed it.
	CacheStrong int
	// DataCacheBytes bounds the data cache of each device.
	DataCacheBytes int64
	// DataCacheScalars is how many numbers the data cache of each device keeps: 0 means the
	// cache's default, a negative number none.
	DataCacheScalars int
	// TrimNodes is the graph size at which a step is synced without a MarkStep: 0 means 100,000,
	// a negative number never.
	TrimNodes int
	// NoOp compiles and schedules but executes nothing.
	NoOp bool
	// Lines says which ops note the user's source line.
	Lines ir.LinePolicy
	// Hooks override stages of the pipeline.
	Hooks Hooks
	// Instances bounds the model instances of one computation; 0 means as many as can run at a time.
	Instances int
	// InFlight bounds the computations in the queue of a device that runs them in order; 0 means
	// 3. With 1 each waits for the one before.
	InFlight int
	// Threads bounds the host's processors that the steps of the session and its forks use; 0
	// means no bound.
	Threads int
	// Deterministic makes computations give the same bits on any number of processors, with any
	// Threads and under any load.
	Deterministic bool
	// FlushDenormals lets backends take subnormal numbers as zero.
	FlushDenormals bool
	// MemoryLimit bounds the bytes of the host's memory that tensors of the process hold when the
	// session asks for more: 0 means memlimit.Default.
	MemoryLimit int64
	// Collectives runs the collectives of the session and its forks; nil fails their runs.
	Collectives collective.Communicator
	// DiskDir is the directory of the on-disk tier of the computation cache,
	// which several processes may share; empty means none.
	DiskDir string
	// DiskBytes bounds the on-disk tier: 0 means cache.DefaultDiskBytes, a negative number no
	// bound.
	DiskBytes int64
}

// core is what forked sessions share.
type core struct {
	cfg      Config
	cache    *cache.Computations[*Computation]
	disk     *cache.Disk                   // nil: none
	data     *cache.Data[ir.Device, *Data] // numbers and host data that sessions have uploaded
	lockers  *devicelock.Arena[ir.Device]
	queues   map[ir.Device]*deviceQueue // guarded by mu
	stats    stats
	nextID   atomic.Uint64
	sessions atomic.Uint64                    // made so far
	latest   atomic.Uint64                    // 1 + the id of the session that had something scheduled last
	events   atomic.Pointer[tracefile.Writer] // nil unless TraceEvents is on
	// decompositions is shared by the sessions' recorders and by compilations.
	decompositions *ir.Decompositions
	// templates has what graphs were rewritten to, by type of device: *graph.Templates.
	templates sync.Map

	// mu guards what sessions share, see lock.go. It is held for short, bounded work only: never while
	// recording, walking, compiling, waiting or running.
	mu      sync.RWMutex
	stripes stripes // of variables, among those who hold mu for reading
	viewers viewers
	plugs   map[ir.Hash]*Plug // by graph hash
	plugged atomic.Int64      // the length of plugs
	closed  atomic.Bool       // written under mu

	live liveTensors

	// running counts syncs, calls and scheduled computations. It grows from 0 only under mu
	// while closed is false, so not while Close waits for it.
	running sync.WaitGroup
	drained chan struct{}   // closed when Close has done its work
	dropped runtime.Cleanup // ends the caches once nothing refers to the executor; stopped by Close
}

// Session records ops and syncs them. Only one goroutine at a time may call MarkStep or Step on it;
// its other methods may be called from any goroutine. Fork returns further sessions over the same
// caches and lockers.
type Session struct {
	core   *core
	device ir.Device
	id     uint64 // counts the sessions of the core from 0
	// lastStep is when the step before ended, while the executor is traced.
	lastStep atomic.Pointer[time.Time]
	last     atomic.Pointer[pace] // of what was scheduled last, until the caller asks for something
	returned atomic.Int64         // when that was, see epoch
	// initialBytes is what the initial values take that variables got since findDropped last looked.
	initialBytes atomic.Int64

	group *lockGroup

	// Guarded by the session's lock, and what others read, by core.mu, too: see lock.go.
	b       *ir.Builder
	walker  graph.Walker
	paramAt map[*Data]int // of paramOf, for one collection
	// leafKinds are those of the data that was used last, see leafKind.
	leafKinds map[placement]ir.LeafKind
	pending   []*Tensor // recorded since the last step, held until then
	// assigned, undo and undos are changed with the session locked and core.mu held for reading, or with
	// core.mu held for writing; using is guarded by core.mu alone.
	assigned []due
	// sweepAssignedAt is the length of assigned at which addInitial goes through it.
	sweepAssignedAt int
	// sweepPendingAt is the length of pending at which dropConsumed goes through it.
	sweepPendingAt int
	// histories are of the values synced in this step; historyBytes and stepNodes bound what
	// they keep alive, see maxHistoryBytes.
	histories    []weak.Pointer[history]
	historyBytes int
	stepNodes    int // recorded in this step before the builder was restarted

	step    uint32
	scope   atomic.Uint32 // bitScoped inside Step, bitTraced inside Trace
	gen     uint8         // counts the Steps that were dropped
	undo    []assignment  // made inside Step, oldest first
	undos   []*hostUndo   // of the step
	marking bool          // a MarkStep is between its prepare and its commit
	lasting bool          // nodes of the step may be used when it has ended, see recyclable
	syncs   atomic.Int32  // those under way
	rng     map[ir.Device]*rngState
	random  int // ordinal of the next random op of the step
	trim    trimState
	tracing *trace // inside Trace
	bodies  int    // of loops that are being recorded, one in the other
	using   *Snapshot
	view    sessionView
	calls   uint64 // of traced functions that draw random numbers

	owner     any                 // of the failures of the session's runs (devicelock.Failure)
	gate      *semaphore.Weighted // held while a function is traced
	hostState *semaphore.Weighted // held by a call that uses numbers of the host
	forks     uint64
}

// New returns a session with an executor of its own. It returns an error wrapping ir.ErrDevice for
// an unusable device, and an error if the on-disk tier cannot be opened.
func New(cfg Config) (*Session, error) {
	if _, err := backend.For(cfg.Device); err != nil {
		return nil, err
	}
	if cfg.Seed == 0 {
		cfg.Seed = defaultSeed
	}
	if cfg.TrimNodes == 0 {
		cfg.TrimNodes = 100_000
	}
	c := &core{cfg: cfg, drained: make(chan struct{})}
	if cfg.DiskDir != "" {
		var err error
		if c.disk, err = cache.OpenDisk(cfg.DiskDir, cache.DiskOptions{MaxBytes: cfg.DiskBytes}); err != nil {
			return nil, err
		}
	}
	c.cache = cache.NewComputations(cache.Options[*Computation]{
		MaxCost: cfg.CacheBytes,
		Strong:  cfg.CacheStrong,
		Close:   func(m *Computation) { m.close() },
	})
	c.data = cache.NewData[ir.Device](cache.DataOptions[*Data]{MaxCost: cfg.DataCacheBytes, Scalars: cfg.DataCacheScalars})
	c.lockers = devicelock.NewArena(compareDevices)
	c.queues = map[ir.Device]*deviceQueue{}
	c.decompositions = ir.NewDecompositions()
	c.stats.init()
	c.dropCachesOnPressure()
	c.closeCachesWhenDropped()
	return c.newSession(cfg.Device, cfg.Seed, nil), nil
}

// closeCachesWhenDropped ends the goroutines of the caches and frees what these keep once no session,
// tensor or variable of the executor is left to anybody, and nothing of it runs. What the caches keep
// must not refer to the executor.
func (c *core) closeCachesWhenDropped() {
	caches := []interface{ Close() }{c.cache, c.data}
	c.dropped = runtime.AddCleanup(c, func(caches []interface{ Close() }) {
		go func() { // models take their time to close, and other cleanups wait
			for _, k := range caches {
				k.Close()
			}
		}()
	}, caches)
}

func compareDevices(a, b ir.Device) int {
	switch {
	case a == b:
		return 0
	case a.Less(b):
		return -1
	}
	return 1
}

// newSession returns a session with a lock of its own, or with that of a group.
func (c *core) newSession(d ir.Device, seed uint64, g *lockGroup) *Session {
	id := c.sessions.Add(1) - 1
	if g == nil {
		g = &lockGroup{id: id}
	}
	s := &Session{core: c, device: d, id: id, group: g, b: ir.NewRecorder(), step: 1, paramAt: map[*Data]int{}, leafKinds: map[placement]ir.LeafKind{}, rng: map[ir.Device]*rngState{},
		gate: semaphore.NewWeighted(1), hostState: semaphore.NewWeighted(1), owner: new(byte)}
	s.b.Lines, s.b.Operands, s.b.Decompositions = c.cfg.Lines, operands, c.decompositions
	s.rng[d] = &rngState{seed: seed, running: seed}
	return s
}

// Fork returns a session for another goroutine. It shares this session's caches, lockers and live
// tensors, but has steps and random numbers of its own. Ops may take tensors of both.
func (s *Session) Fork() *Session {
	s.lock()
	defer s.unlock()
	s.forks++
	seed := s.rngFor(s.device).seed
	var g *lockGroup
	if h := s.core.cfg.Hooks; h.ShouldSyncTensor != nil || h.RunPostOrder != nil || h.RngSeed != nil {
		g = s.group // one call of these hooks at a time
	}
	return s.core.newSession(s.device, forkSeed(seed, s.forks), g)
}

// scopes returns bitScoped inside Step and bitTraced inside Trace.
func (s *Session) scopes() uint8 { return uint8(s.scope.Load()) }

// inStep reports whether the session is inside Step.
func (s *Session) inStep() bool { return s.scopes()&bitScoped != 0 }

// Device returns the session's default device.
func (s *Session) Device() ir.Device { return s.device }

// StepNumber returns the number of the step being recorded, from 1.
func (s *Session) StepNumber() uint64 {
	_ = s.tracedMisuse("step_number", "the step's number is read") // the Call fails with it
	s.lock()
	defer s.unlock()
	return uint64(s.step)
}

// Close waits for the work in flight, frees the caches and makes every later
// use of the session, its forks and their tensors fail with ErrClosed, as do
// compilations in progress. Elements that were read stay valid. It returns ctx's
// error if that ends first; the executor closes nevertheless, and another Close
// waits for that. An executor that is dropped without Close frees its caches when the
// garbage collector has found that.
func (s *Session) Close(ctx context.Context) error {
	c := s.core
	s.lockBoth()
	s.pending, s.assigned = nil, nil
	if !c.closed.Load() {
		c.closed.Store(true)
		c.dropped.Stop()
		go func() {
			c.cache.Close()
			c.running.Wait()
			c.data.Close()
			close(c.drained)
		}()
	}
	s.unlockBoth()
	select {
	case <-c.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Collectives returns what runs the collectives of the session's programs, or nil.
func (s *Session) Collectives() collective.Communicator { return s.core.cfg.Collectives }
