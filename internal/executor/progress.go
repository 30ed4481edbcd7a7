package executor

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// compilations are those that go on, for reports. The zero value has none.
type compilations struct {
	mu  sync.Mutex
	all []*progress // in the order in which they began; guarded by mu
}

// progress is how far a compilation has come.
type progress struct {
	started     time.Time
	what        report.Compiling // without Time, Done and Total
	done, total atomic.Int64
}

func (c *compilations) start(p *graph.Program, h ir.Hash, d ir.Device, at time.Time) *progress {
	one := &progress{started: at, what: report.Compiling{Hash: h, Device: d, Nodes: len(p.Instrs)}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, one)
	return one
}

func (c *compilations) end(p *progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(q *progress) bool { return q == p })
}

// set notes how many parts are done. Of calls at once the one that knows of more counts.
func (p *progress) set(done, total int) {
	p.total.Store(int64(total))
	raise(&p.done, int64(done))
}

func (c *compilations) list() (out []report.Compiling) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.all {
		what := p.what
		what.Time, what.Done, what.Total = time.Since(p.started), int(p.done.Load()), int(p.total.Load())
		out = append(out, what)
	}
	return out
}
