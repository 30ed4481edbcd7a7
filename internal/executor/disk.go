package executor

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// diskFormat is part of every key. It changes with the parts of a key and the meaning of an
// artefact.
const diskFormat = "loris artifact 2"

// compiler returns a function that makes the instances of a computation, and one that reports
// afterwards whether the first instance came from the on-disk tier. New artefacts are written in
// the background.
func (c *core) compiler(be backend.Backend, p *graph.Program, d ir.Device, o backend.CompileOptions) (make1 func(context.Context) (backend.Model, error), kept func() bool) {
	ab, ok := be.(backend.ArtifactBackend)
	id := ""
	if ok && c.disk != nil && !callsModels(p) {
		id = ab.ArtifactID(d)
	}
	if id == "" {
		return func(ctx context.Context) (backend.Model, error) { return be.Compile(ctx, p, d, o) }, func() bool { return false }
	}
	a := &artifact{core: weak.Make(c), key: diskKey(p, id, o)}
	return func(ctx context.Context) (backend.Model, error) {
		m, fresh, err := ab.CompileArtifact(ctx, p, d, o, a.get())
		if err != nil {
			return nil, err
		}
		a.used(fresh)
		return m, nil
	}, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.served }
}

// artifact is the artefact of one computation. The first instance reads or makes it, and the others
// share it.
type artifact struct {
	// core is there while an instance is made. The cache keeps the artefact, hence it is weak.
	core weak.Pointer[core]
	key  cache.DiskKey

	mu     sync.Mutex
	data   []byte // guarded by mu
	served bool   // it was on disk and the backend could use it; guarded by mu
}

func (a *artifact) get() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.core.Value(); a.data == nil && c != nil {
		data, _, err := c.disk.Get(a.key)
		if err != nil {
			c.stats.diskFailed(err)
		}
		a.data = data
	}
	return a.data
}

// used notes the outcome of a compilation: a new artefact, or nil if the one from disk served.
func (a *artifact) used(fresh []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fresh == nil {
		a.served = a.data != nil
		return
	}
	a.data = fresh
	if c := a.core.Value(); c != nil {
		c.keep(a.key, fresh)
	}
}

// callsModels reports whether a Program has models of the user's. These are known by numbers of this
// process, so it means nothing in others.
func callsModels(p *graph.Program) bool {
	return slices.ContainsFunc(p.Instrs, func(in graph.Instr) bool { return in.Op == aten.CallModel })
}

// diskKey hashes the options that artefacts depend on, and the text of the Program, which unlike
// graph hashes is the same in every process.
func diskKey(p *graph.Program, id string, o backend.CompileOptions) cache.DiskKey {
	var aliases []byte
	for _, a := range o.Aliases {
		aliases = binary.AppendVarint(aliases, int64(a.Input))
		aliases = binary.AppendVarint(aliases, int64(a.Output))
	}
	plan := ""
	if o.Deterministic {
		plan = "deterministic"
	}
	return cache.NewDiskKey([]byte(diskFormat), []byte(id), []byte(p.String()), aliases, []byte(plan))
}

// keep writes an artefact in the background. Close waits for that, as it does for the caller.
func (c *core) keep(key cache.DiskKey, artifact []byte) {
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		if err := c.disk.Put(key, artifact); err != nil {
			c.stats.diskFailed(err)
			return
		}
		c.stats.diskWrites.Add(1)
	}()
}

func (s *stats) diskFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.diskErr = fmt.Errorf("on-disk tier: %w", err)
}
