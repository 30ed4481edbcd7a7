//go:build cuda && linux && cgo

package emit

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
)

// realGPU is the first GPU of the machine.
type realGPU struct {
	t        testing.TB
	ctx      *driver.Context
	stream   *driver.Stream
	pool     *driver.MemPool
	compiler *driver.Compiler
	limits   Limits
	arch     string
}

func init() {
	openGPU = func(t *testing.T) gpu {
		if g := newGPU(t); g != nil {
			return g
		}
		return nil
	}
}

// newGPU returns nil where there is no driver, no GPU or no NVRTC.
func newGPU(t testing.TB) *realGPU {
	t.Helper()
	d, err := driver.Open("")
	if errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice) {
		t.Logf("not run on a GPU: %v", err)
		return nil
	}
	g := &realGPU{t: t}
	g.check(err)
	g.compiler, err = driver.OpenCompiler("", d.Version())
	if errors.Is(err, driver.ErrNoLibrary) {
		t.Logf("not run on a GPU: %v", err)
		return nil
	}
	g.check(err)
	device, err := d.Device(0)
	g.check(err)
	p, err := device.Properties()
	g.check(err)
	g.arch, g.limits = p.Arch(), Limits{Processors: p.SMs, Threads: 1024}
	g.ctx, err = device.Retain()
	g.check(err)
	t.Cleanup(func() { g.check(g.ctx.Close()) })
	g.stream, err = g.ctx.NewStream(0)
	g.check(err)
	t.Cleanup(func() { g.check(g.stream.Close()) })
	g.pool, err = g.ctx.NewPool(-1)
	g.check(err)
	t.Cleanup(func() { g.check(g.pool.Close()) })
	return g
}

func (g *realGPU) check(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// wait waits for all that was started.
func (g *realGPU) wait() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g.check(g.stream.Wait(ctx))
}

// load compiles a source.
func (g *realGPU) load(name, source string) *driver.Module {
	g.t.Helper()
	cubin, _, err := g.compiler.Compile(source, name+".cu", g.arch, options)
	g.check(err)
	m, err := g.ctx.LoadModule(cubin)
	g.check(err)
	g.t.Cleanup(func() { g.check(m.Close()) })
	return m
}

// alloc returns memory with some contents.
func (g *realGPU) alloc(data []byte) driver.DevicePtr {
	g.t.Helper()
	p, err := g.pool.Alloc(g.stream, int64(max(len(data), 1)))
	g.check(err)
	if len(data) > 0 {
		g.check(g.stream.CopyIn(p, data))
	}
	return p
}

func (g *realGPU) run(d *device) (results [][][]byte) {
	g.t.Helper()
	modules := map[string]*driver.Module{}
	functions := make([]*driver.Function, len(d.entries))
	for i, entry := range d.entries {
		owner := d.owners[i]
		if modules[owner] == nil {
			modules[owner] = g.load(owner, d.complete[owner])
		}
		f, err := modules[owner].Function(entry)
		g.check(err)
		functions[i] = f
	}
	for _, c := range d.cases {
		var memory []driver.DevicePtr
		for _, m := range c.memory {
			memory = append(memory, g.alloc(m))
		}
		for _, l := range c.launches {
			slots := slices.Clone(l.slots)
			for _, f := range l.fixes {
				slots[f[0]] = uint64(memory[f[1]]) + uint64(f[2])
			}
			g.check(functions[l.entry].Launch(g.stream, driver.Launch{Grid: dim(l.grid), Block: dim(l.block)}, slots))
		}
		after := make([][]byte, len(memory))
		for i, m := range c.memory {
			after[i] = make([]byte, len(m))
			if len(m) > 0 {
				g.check(g.stream.CopyOut(after[i], memory[i]))
			}
			g.check(g.stream.Free(memory[i]))
		}
		g.wait()
		results = append(results, after)
	}
	g.t.Logf("run on a GPU: %s, %d processors", g.arch, g.limits.Processors)
	return results
}

func dim(d [3]int) driver.Dim {
	return driver.Dim{X: uint32(d[0]), Y: uint32(d[1]), Z: uint32(d[2])}
}
