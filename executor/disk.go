package executor

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/cache"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// diskFormat changes when the parts of a key or the meaning of an artefact do.
const diskFormat = "loris artifact 2"

// openDisk opens the on-disk tier. What is there will run, so nobody but its
// owner may be able to write to it.
func openDisk(dir string, maxBytes int64) (*cache.Disk, error) {
	d, err := cache.OpenDisk(dir, cache.DiskOptions{MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("loris: disk cache: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode()&0o022 != 0 {
		return nil, fmt.Errorf("loris: disk cache %s: %w: others may write to it (mode %v); it holds machine code", dir, fs.ErrPermission, info.Mode().Perm())
	}
	return d, nil
}

// compiler returns the function that makes the instances of a computation, and
// one that tells afterwards whether the on-disk tier had what the first of them
// needed. Fresh artefacts are written beside the run, so that nobody waits for
// the disk.
func (c *core) compiler(be backend.Backend, p *graph.Program, d ir.Device, o backend.CompileOptions) (make1 func(context.Context) (backend.Model, error), kept func() bool) {
	ab, ok := be.(backend.ArtifactBackend)
	id := ""
	if ok && c.disk != nil && keepable(p) {
		id = ab.ArtifactID(d)
	}
	if id == "" {
		return func(ctx context.Context) (backend.Model, error) { return be.Compile(ctx, p, d, o) }, func() bool { return false }
	}
	a := &artifact{core: c, key: diskKey(p, id, o)}
	return func(ctx context.Context) (backend.Model, error) {
		m, fresh, err := ab.CompileArtifact(ctx, p, d, o, a.get())
		if err != nil {
			return nil, err
		}
		a.used(fresh)
		return m, nil
	}, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.served }
}

// artifact is that of one computation: the first instance reads or makes it, the
// others share it.
type artifact struct {
	core *core
	key  cache.DiskKey

	mu     sync.Mutex
	data   []byte // guarded by mu
	served bool   // it was on disk and of use; guarded by mu
}

func (a *artifact) get() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.data == nil {
		data, _, err := a.core.disk.Get(a.key)
		if err != nil {
			a.core.stats.diskFailed(err)
		}
		a.data = data
	}
	return a.data
}

// used notes what a compilation said of the artefact.
func (a *artifact) used(fresh []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fresh == nil {
		a.served = a.data != nil
		return
	}
	a.data = fresh
	a.core.keep(a.key, fresh)
}

// keepable reports whether a Program means the same in another process.
func keepable(p *graph.Program) bool {
	for i := range p.Instrs {
		if p.Instrs[i].Op == ir.OpCallModel {
			return false // its model has a number of this process
		}
	}
	return true
}

// diskKey hashes the text of the Program, which is the same in each process,
// other than its hash-consed form, and the options that artefacts depend on.
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

// keep writes an artefact; Close waits for it. The caller is at work that Close
// waits for as well.
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
