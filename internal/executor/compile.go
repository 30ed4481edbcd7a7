package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Computation is a compiled graph in the computation cache.
type Computation struct {
	// Device is where it runs.
	Device ir.Device
	// EmittedNodes is the number of instructions that the backend compiled,
	// after the rewrites.
	EmittedNodes int
	// Hash is the graph hash.
	Hash ir.Hash

	container *container.Container
	queues    bool // its runs follow each other on the device (backend.QueueModel)
	program   *graph.Program
	held      int64 // bytes of its instances, as they tell
	plug      *Plug // runs in place of a container
	// collectives are those that each run takes part in.
	collectives []collective.Use
	// idle reports whether a run would begin at once; nil where a run may wait for others or call the
	// user's models.
	idle func() bool
	pace *pace
}

// Program returns the graph as it was recorded, or nil if a plugged model runs instead.
func (m *Computation) Program() *graph.Program { return m.program }

func (m *Computation) close() {
	if m.container == nil {
		return // a plugged model belongs to whoever plugged it
	}
	// When the last reference is gone nothing runs any more and no caller is left to whom an
	// error of Close could be returned.
	_ = m.container.Close()
}

// lookupOrCompile sets the job's computation: the plugged model, or what the cache has or builds.
func (s *Session) lookupOrCompile(ctx context.Context, j *syncJob) error {
	if j.ref != nil {
		return nil
	}
	c := s.core
	if j.plug != nil {
		ref, err := j.plug.computation(ctx, j.coll.Device)
		if err != nil {
			return err
		}
		j.ref = ref
		return nil
	}
	ref, src, err := c.getOrBuild(ctx, cache.Key(j.coll.Hash), func(ctx context.Context) (*Computation, int64, error) {
		m, err := c.compile(ctx, j.program, j.coll.Device, j.coll.Hash, j.donors)
		if err != nil {
			return nil, 0, err
		}
		return m, m.cost(), nil
	})
	if err != nil {
		return err
	}
	if src != cache.SourceBuilt {
		c.stats.hits.Add(1)
	}
	j.ref = ref
	return nil
}

// getOrBuild returns a computation from the cache, which build makes if it has none. A build that Close
// interrupts is ErrClosed, whatever the backend returns then.
func (c *core) getOrBuild(ctx context.Context, key cache.Key, build cache.BuildFunc[*Computation]) (*cache.Ref[*Computation], cache.Source, error) {
	ref, src, err := c.cache.GetOrBuild(ctx, key, build)
	if err == nil || ctx.Err() != nil {
		return ref, src, err
	}
	if c.closed.Load() && (errors.Is(err, cache.ErrClosed) || errors.Is(err, context.Canceled)) {
		err = fmt.Errorf("loris: compile: %w", ErrClosed)
	}
	return ref, src, err
}

// cost returns the bytes that the computation holds in the cache: what its first instance tells, the
// Program as it was recorded, and about what its container takes.
func (m *Computation) cost() int64 { return 2048 + m.program.HeldBytes() + m.held }

// compile lowers a Program to what the backend supports and compiles it into a
// container.
func (c *core) compile(ctx context.Context, p *graph.Program, d ir.Device, h ir.Hash, donors []donor) (*Computation, error) {
	start := time.Now()
	be, err := backend.For(d)
	if err != nil {
		return nil, err
	}
	progress := c.stats.ongoing.start(p, h, d, start)
	defer c.stats.ongoing.end(progress)
	templates, _ := c.templates.LoadOrStore(d.Type, graph.NewTemplates())
	lowered, st := graph.Optimize(p, graph.Options{
		Supports: be.Supports, Decompositions: c.decompositions, Templates: templates.(*graph.Templates), Rematerialize: true,
	})
	opts := backend.CompileOptions{
		Progress: progress.set, Threads: max(c.cfg.Threads, 0), Deterministic: c.cfg.Deterministic,
		FlushDenormals: c.cfg.FlushDenormals, MemoryLimit: c.cfg.MemoryLimit,
	}
	for _, dn := range donors {
		opts.Aliases = append(opts.Aliases, backend.Alias{Input: dn.param, Output: dn.output})
	}
	make1, kept := c.compiler(be, lowered, d, opts)
	if w := c.cfg.Collectives; w != nil {
		ctx = collective.With(ctx, w) // what there is to compile may depend on the group
	}
	var held atomic.Int64 // by the instances that there are now
	counted := func(ctx context.Context) (backend.Model, error) {
		m, err := make1(ctx)
		if z, ok := m.(backend.Sizer); ok {
			held.Add(z.HeldBytes())
		} else {
			held.Add(lowered.HeldBytes())
		}
		return m, err
	}
	pool, err := container.New(ctx, counted, container.Config{Instances: 1, Max: c.instances()})
	if err != nil {
		return nil, fmt.Errorf("compile %v (%d nodes) on %v: %w", h, len(p.Instrs), d, err)
	}
	m := &Computation{Device: d, EmittedNodes: st.After, Hash: h, container: pool, queues: pool.Queues(), program: p, held: held.Load(), collectives: collective.Of(lowered), pace: new(pace)}
	if b, ok := be.(backend.PromptBackend); ok && !m.queues && len(m.collectives) == 0 && !callsModels(lowered) {
		m.idle = b.Idle
	}
	for i := range m.collectives {
		if m.queues {
			m.collectives[i].Text += " on " + d.Type.String() // ranks exchange by what their devices have
		}
	}
	if kept() {
		c.stats.diskHits.Add(1)
	} else {
		c.stats.compiled(p, h, d, st, time.Since(start))
		c.compiling(p, start)
	}
	return m, nil
}

// instances returns how many instances of one computation there may be: one for each that can run at a
// time.
func (c *core) instances() int {
	switch {
	case c.cfg.Instances > 0:
		return c.cfg.Instances
	case c.cfg.Threads > 0: // computations take turns
		return 1
	}
	return runtime.GOMAXPROCS(0)
}
