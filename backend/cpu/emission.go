package cpu

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/loris-ml/loris/internal/check"
)

// emission makes the code of a compilation's kernels on several processors, beside the planning. Nothing
// in a plan depends on the code but whether there is any, and the probes have answered that for nearly
// all kernels. So a plan takes it that there is, and is made again if there is not.
type emission struct {
	engine *engine
	ctx    context.Context
	most   int // goroutines beside that of the compilation
	group  sync.WaitGroup
	all    []*kernelCode

	mu      sync.Mutex // guards the rest
	begun   int        // of all
	waiting int        // instructions of the kernels that are not begun
	running int        // goroutines of the group
}

// worthEmitting is how many instructions of kernels wait before another goroutine takes some: a few
// hundred microseconds of work.
const worthEmitting = 64

// errNoCode says that there can be no code for a kernel of a plan.
var errNoCode = errors.New("a kernel has no code")

// lowered returns what lower does, with all code made. No goroutine is left when it returns. Code that is
// not made because ctx ends is made when another compilation needs it.
func (j *journal) lowered(ctx context.Context, lower func() (*lowering, error)) (*lowering, error) {
	if j == nil {
		return lower()
	}
	j.emission.ctx = ctx
	l, err := lower()
	if err != nil {
		j.emission.drop()
		return nil, err
	}
	if err := j.emission.finish(); !errors.Is(err, errNoCode) {
		return l, err
	}
	j.eager = true
	maps.DeleteFunc(j.codes, func(_ string, c *kernelCode) bool { return c.code != nil })
	clear(j.noted)
	return lower()
}

// add has code made by the end of the compilation.
func (m *emission) add(c *kernelCode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, c)
	m.waiting += c.instrs
	if m.waiting < worthEmitting || m.running >= m.most {
		return
	}
	m.running++
	m.group.Go(func() {
		for m.emit() {
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running--
	})
}

// emit makes the next code that nobody has begun. It reports whether there was any.
func (m *emission) emit() bool {
	m.mu.Lock()
	if m.begun == len(m.all) || m.ctx.Err() != nil {
		m.mu.Unlock()
		return false
	}
	c := m.all[m.begun]
	m.begun++
	m.waiting -= c.instrs
	m.mu.Unlock()
	m.engine.make(c)
	return true
}

// finish makes the code that is left and waits for the goroutines.
func (m *emission) finish() (err error) {
	defer check.Recover(&err)
	for m.emit() {
	}
	m.group.Wait()
	if err := m.ctx.Err(); err != nil {
		return err
	}
	for _, c := range m.all {
		switch {
		case c.fault != nil:
			panic(c.fault)
		case c.code == nil:
			err = errNoCode
		}
	}
	return err
}

// drop waits for the goroutines, which begin nothing more.
func (m *emission) drop() {
	m.mu.Lock()
	m.begun = len(m.all)
	m.mu.Unlock()
	m.group.Wait()
}
