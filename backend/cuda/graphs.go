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
	// remembered is for how many runs without a graph their addresses are known again.
	remembered = 8
	// patience is how many runs that change most of a graph a part may have more than
	// replays.
	patience = 8
)

// replays are the commands of a part as CUDA graphs, which a device starts with a
// single call: kernels that are shorter than their launches would leave it idle. A
// graph has the addresses of a run. They come again, as a rule, since the pool gives
// memory in the same order; addresses that do get a graph of their own. For others the
// most similar graph is changed, by those of its nodes only that have other
// addresses; a part of which most changes each time is enqueued command by command.
type replays struct {
	made   []*replay          // least recently used first
	missed [remembered]uint64 // the addresses of the last runs without a graph, hashed
	next   int                // in missed
	runs   int
	spent  int // runs that changed most, less those that changed nothing
	off    bool
}

// replay is a graph for some addresses.
type replay struct {
	bases []driver.DevicePtr
	graph *driver.Graph // that exec was made of, for its nodes
	exec  *driver.GraphExec
	nodes []driver.Node // by command; the zero Node for one that does nothing
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
	// What runs once is not worth a graph.
	if r.off || r.runs == 1 || len(p.commands) < fewCommands {
		return m.issue(m.stream, p)
	}
	x, err := m.replay(p)
	if err != nil || x == nil {
		m.dropReplays(p)
		if driver.IsLost(err) {
			return err
		}
		return m.issue(m.stream, p)
	}
	return x.exec.Launch(m.stream)
}

// replay returns a graph for the present addresses; nil if it is not worth it.
func (m *model) replay(p *part) (*replay, error) {
	r := &p.replays
	for i := len(r.made) - 1; i >= 0; i-- {
		if slices.Equal(r.made[i].bases, m.bases) {
			r.spent = max(r.spent-1, 0)
			return r.use(i), nil
		}
	}
	again := r.known(m.bases)
	if len(r.made) == 0 || again && len(r.made) < maxReplays {
		r.spent++
		x, err := m.build(p)
		if err != nil {
			return nil, err
		}
		r.made = append(r.made, x)
		return x, nil
	}
	best, least := 0, len(p.commands)+1
	for i, x := range r.made {
		if n := m.moved(p, x); n < least {
			best, least = i, n
		}
	}
	if least > len(p.commands)/2 {
		if r.spent++; r.spent > patience {
			return nil, nil
		}
		best = 0
	}
	return r.use(best), m.change(p, r.made[len(r.made)-1])
}

// use makes a graph the one that was used last.
func (r *replays) use(i int) *replay {
	x := r.made[i]
	r.made = append(slices.Delete(r.made, i, i+1), x)
	return x
}

// known reports whether a run without a graph had the addresses lately, and
// remembers them.
func (r *replays) known(bases []driver.DevicePtr) bool {
	h := uint64(14695981039346656037) // FNV-1a, word by word
	for _, b := range bases {
		h = (h ^ uint64(b)) * 1099511628211
		h ^= h >> 29
	}
	if slices.Contains(r.missed[:], h) {
		return true
	}
	r.missed[r.next] = h
	r.next = (r.next + 1) % remembered
	return false
}

// moved counts the commands that have other addresses than in a graph.
func (m *model) moved(p *part, x *replay) (n int) {
	for i := range p.commands {
		if m.differs(&p.commands[i], x) {
			n++
		}
	}
	return n
}

// differs reports whether a command has other addresses than in a graph.
func (m *model) differs(c *command, x *replay) bool {
	for _, f := range c.fixes {
		if x.bases[f.memory] != m.bases[f.memory] {
			return true
		}
	}
	for _, r := range c.refs {
		if x.bases[r.Memory] != m.bases[r.Memory] {
			return true
		}
	}
	return c.product != nil && x.bases[c.work.Memory] != m.bases[c.work.Memory]
}

// build makes a graph of the commands with the present addresses: a node for each,
// one after another.
func (m *model) build(p *part) (_ *replay, err error) {
	x := &replay{bases: slices.Clone(m.bases), nodes: make([]driver.Node, len(p.commands))}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close())
		}
	}()
	if x.graph, err = m.dev.ctx.NewGraph(); err != nil {
		return nil, err
	}
	var last driver.Node
	for i := range p.commands {
		c := &p.commands[i]
		switch {
		case m.empty(c):
			continue
		case c.plain():
			m.bind(c)
			x.nodes[i], err = x.graph.AddKernel(last, c.f, c.how, c.params)
		default:
			err = m.captured(c, func(g *driver.Graph) error {
				x.nodes[i], err = x.graph.AddChild(last, g)
				return err
			})
		}
		if err != nil {
			return nil, err
		}
		last = x.nodes[i]
	}
	x.exec, err = x.graph.Instantiate()
	return x, err
}

// errOtherNodes says that a graph lacks a node, or has one too many.
var errOtherNodes = errors.New("a copy comes or goes")

// change gives the nodes the present addresses that have others. After an error the graph is
// of no use.
func (m *model) change(p *part, x *replay) error {
	for i := range p.commands {
		c := &p.commands[i]
		if !m.differs(c, x) {
			continue
		}
		node := x.nodes[i]
		var err error
		switch {
		case m.empty(c) != (node == driver.Node{}):
			err = errOtherNodes
		case m.empty(c):
		case c.plain():
			m.bind(c)
			err = x.exec.SetKernel(node, c.f, c.how, c.params)
		default:
			err = m.captured(c, func(g *driver.Graph) error { return x.exec.SetChild(node, g) })
		}
		if err != nil {
			return err
		}
	}
	copy(x.bases, m.bases)
	return nil
}

// plain reports whether a command is a kernel that a node can be.
func (c *command) plain() bool { return c.f != nil && c.how.Plain() }

// empty reports whether a command is a copy to where things are.
func (m *model) empty(c *command) bool {
	return c.copy > 0 && m.at(c.refs[0]) == m.at(c.refs[1])
}

// captured does something with a graph of a command alone.
func (m *model) captured(c *command, do func(g *driver.Graph) error) error {
	k := &m.dev.capturer
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == nil {
		s, err := m.dev.ctx.NewStream(0)
		if err != nil {
			return err
		}
		k.stream = s
		m.dev.atClose(s.Close)
	}
	if err := k.stream.BeginCapture(); err != nil {
		return err
	}
	err := m.command(k.stream, c)
	g, endErr := k.stream.EndCapture()
	if endErr != nil {
		return errors.Join(err, endErr)
	}
	if err == nil {
		err = do(g)
	}
	return errors.Join(err, g.Close()) // what is made of it stays
}

func (x *replay) close() error {
	var errs []error
	if x.exec != nil {
		errs = append(errs, x.exec.Close())
	}
	if x.graph != nil {
		errs = append(errs, x.graph.Close())
	}
	return errors.Join(errs...)
}

// dropReplays has the part enqueued command by command from now on.
func (m *model) dropReplays(p *part) {
	for _, x := range p.replays.made {
		_ = m.dev.check(x.close()) // only that the device is lost, which is kept
	}
	p.replays.made, p.replays.off = nil, true
}
