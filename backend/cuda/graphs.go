//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"slices"
	"sync"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
)

const (
	// fewCommands are enqueued one by one: a graph gains nothing.
	fewCommands = 6
	// maxReplays bounds the graphs of a part. A training step whose outputs are the
	// next one's inputs needs two or three.
	maxReplays = 4
	// patience is how many captures a model may have more than replays.
	patience = 8
)

// replays are the commands of a part as CUDA graphs, which a device starts with a
// single call: kernels that are shorter than their launches would leave it idle. A
// graph has the addresses of a run. They come again, as a rule, since the pool gives
// memory in the same order; a model whose addresses do not is enqueued command by
// command.
type replays struct {
	made  []*replay // least recently used first
	runs  int
	spent int // captures less launches without one
	off   bool
}

// replay is a graph for some addresses.
type replay struct {
	bases []driver.DevicePtr
	exec  *driver.GraphExec
}

// capturer has the stream of a device in which work is captured, one model's at a
// time. No memory is allocated in it: freeing it might become a part of a capture.
type capturer struct {
	mu     sync.Mutex
	stream *driver.Stream // guarded by mu; nil until it is needed
}

// start enqueues the commands of a part, as a graph if that is possible and worth it.
func (m *model) start(p *part) error {
	r := &p.replays
	r.runs++
	// What runs once is not worth a capture.
	if r.off || r.runs == 1 || len(p.commands) < fewCommands {
		return m.issue(m.stream, p)
	}
	i := slices.IndexFunc(r.made, func(x *replay) bool { return slices.Equal(x.bases, m.bases) })
	if i < 0 {
		if r.spent++; r.spent > patience {
			m.dropReplays(p)
			return m.issue(m.stream, p)
		}
		x, err := m.capture(p)
		if err != nil {
			m.dropReplays(p)
			if driver.IsLost(err) {
				return err
			}
			return m.issue(m.stream, p)
		}
		i = len(r.made)
		r.made = append(r.made, x)
	} else {
		r.spent = max(r.spent-1, 0)
	}
	x := r.made[i]
	r.made = append(slices.Delete(r.made, i, i+1), x)
	return x.exec.Launch(m.stream)
}

// capture makes a graph of the commands with the present addresses, of the one that
// was not used for longest if there are enough.
func (m *model) capture(p *part) (*replay, error) {
	c := &m.dev.capturer
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == nil {
		s, err := m.dev.ctx.NewStream(0)
		if err != nil {
			return nil, err
		}
		c.stream = s
		m.dev.atClose(s.Close)
	}
	if err := c.stream.BeginCapture(); err != nil {
		return nil, err
	}
	err := m.issue(c.stream, p)
	g, endErr := c.stream.EndCapture()
	if endErr != nil {
		return nil, errors.Join(err, endErr)
	}
	defer g.Close() // what is made of it stays
	if err != nil {
		return nil, err
	}
	if r := &p.replays; len(r.made) == maxReplays {
		x := r.made[0]
		r.made = slices.Delete(r.made, 0, 1)
		if err := x.exec.Update(g); err == nil {
			copy(x.bases, m.bases)
			return x, nil
		}
		if err := x.exec.Close(); err != nil {
			return nil, err
		}
	}
	exec, err := g.Instantiate()
	if err != nil {
		return nil, err
	}
	return &replay{slices.Clone(m.bases), exec}, nil
}

// dropReplays has the part enqueued command by command from now on.
func (m *model) dropReplays(p *part) {
	for _, x := range p.replays.made {
		_ = m.dev.check(x.exec.Close()) // only that the device is lost, which is kept
	}
	p.replays.made, p.replays.off = nil, true
}
