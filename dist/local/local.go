// Package local is an engine of package dist whose ranks are goroutines of one process. It defines what
// engines do, and makes tests of programs for many ranks quick.
package local

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/loris-ml/loris/dist"
)

// Run calls fn once for each of n ranks, on goroutines of their own, and waits for all of them. fn gets
// its rank's group, which is closed when it returns without an error. The first error of a rank, or its
// panic as an error, makes the collectives of the others fail. Run returns the errors joined, in the
// order of the ranks.
func Run(ctx context.Context, n int, fn func(ctx context.Context, g *dist.Group) error, opts ...dist.Option) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, e := range Engines(n) {
		wg.Go(func() {
			if err := run(ctx, e, fn, opts); err != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func run(ctx context.Context, e dist.Engine, fn func(ctx context.Context, g *dist.Group) error, opts []dist.Option) (err error) {
	defer func() {
		if r := recover(); r != nil {
			cause, ok := r.(error)
			if !ok {
				cause = fmt.Errorf("%v", r)
			}
			err = fmt.Errorf("panic: %w\n%s", cause, debug.Stack())
		}
		if err != nil {
			e.Abort(fmt.Errorf("rank %d has ended: %w", e.Rank(), err))
		}
	}()
	g, err := dist.New(ctx, e, opts...)
	if err != nil {
		return err
	}
	if err := fn(ctx, g); err != nil {
		return err
	}
	return g.Close(ctx)
}

// Engines returns the engines of n ranks of this process.
func Engines(n int) []dist.Engine {
	h := newHub(n, &failure{done: make(chan struct{})})
	out := make([]dist.Engine, n)
	for r := range out {
		out[r] = &engine{hub: h, rank: r}
	}
	return out
}

// failure is the first error of any rank of a process's engines.
type failure struct {
	once sync.Once
	done chan struct{} // closed with err set
	err  error
}

// hub is what the ranks of a group share.
type hub struct {
	size int
	fail *failure

	mu    sync.Mutex
	calls []int            // by rank: collectives begun
	meets map[int]*meeting // by the number of the collective, until all ranks have left
	mail  map[mailKey]chan message
}

func newHub(size int, f *failure) *hub {
	return &hub{size: size, fail: f, calls: make([]int, size), meets: map[int]*meeting{}, mail: map[mailKey]chan message{}}
}

// meeting is one collective of all ranks.
type meeting struct {
	in       []any // by rank: what they brought
	came     int
	left     int
	all      chan struct{} // closed when all have come
	over     chan struct{} // closed when all have taken what they need
	children map[int]*hub  // of Split, by color
}

type mailKey struct{ from, to, tag int }

// message is a send under way; the receiver closes taken.
type message struct {
	buf   []byte
	taken chan struct{}
}

// engine is one rank of a hub.
type engine struct {
	hub  *hub
	rank int
}

func (e *engine) Rank() int { return e.rank }

func (e *engine) Size() int { return e.hub.size }

// wait waits for c, the end of ctx or the failure of a rank.
func (e *engine) wait(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	default:
	}
	select {
	case <-c:
		return nil
	case <-e.hub.fail.done:
		return e.hub.fail.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// meet brings something to the next collective, calls take with what all ranks brought, and returns when
// all have taken what they need. An error makes the engines fail, since others may still wait.
func (e *engine) meet(ctx context.Context, in any, take func(m *meeting)) error {
	h := e.hub
	h.mu.Lock()
	at := h.calls[e.rank]
	h.calls[e.rank]++
	m := h.meets[at]
	if m == nil {
		m = &meeting{in: make([]any, h.size), all: make(chan struct{}), over: make(chan struct{}), children: map[int]*hub{}}
		h.meets[at] = m
	}
	m.in[e.rank] = in
	if m.came++; m.came == h.size {
		close(m.all)
	}
	h.mu.Unlock()
	if err := e.wait(ctx, m.all); err != nil && h.withdraw(m, e.rank) {
		return err
	}
	take(m)
	h.mu.Lock()
	if m.left++; m.left == h.size {
		close(m.over)
		delete(h.meets, at)
	}
	h.mu.Unlock()
	<-m.over // all have come, and taking needs nobody
	return nil
}

// withdraw takes back what a rank brought to a meeting, and reports false if all ranks have come.
func (h *hub) withdraw(m *meeting, rank int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.came == h.size {
		return false
	}
	m.came--
	m.in[rank] = nil
	return true
}

// AllGather implements dist.Engine.
func (e *engine) AllGather(ctx context.Context, out, in []byte) error {
	return e.meet(ctx, in, func(m *meeting) {
		at := 0
		for _, x := range m.in {
			at += copy(out[at:], x.([]byte))
		}
	})
}

// AllToAll implements dist.Engine.
func (e *engine) AllToAll(ctx context.Context, out, in []byte) error {
	n := len(in) / e.hub.size
	return e.meet(ctx, in, func(m *meeting) {
		for r, x := range m.in {
			copy(out[r*n:(r+1)*n], x.([]byte)[e.rank*n:])
		}
	})
}

// Broadcast implements dist.Engine.
func (e *engine) Broadcast(ctx context.Context, buf []byte, root int) error {
	return e.meet(ctx, buf, func(m *meeting) {
		if e.rank != root {
			copy(buf, m.in[root].([]byte))
		}
	})
}

// box returns the queue of sends from one rank to another.
func (h *hub) box(k mailKey) chan message {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mail[k] == nil {
		h.mail[k] = make(chan message)
	}
	return h.mail[k]
}

// Send implements dist.Engine.
func (e *engine) Send(ctx context.Context, buf []byte, peer, tag int) error {
	m := message{buf, make(chan struct{})}
	select {
	case e.hub.box(mailKey{e.rank, peer, tag}) <- m:
		<-m.taken // a copy away
		return nil
	case <-e.hub.fail.done:
		return e.hub.fail.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Recv implements dist.Engine.
func (e *engine) Recv(ctx context.Context, buf []byte, peer, tag int) error {
	select {
	case m := <-e.hub.box(mailKey{peer, e.rank, tag}):
		copy(buf, m.buf)
		close(m.taken)
		return nil
	case <-e.hub.fail.done:
		return e.hub.fail.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Split implements dist.Engine.
func (e *engine) Split(ctx context.Context, color, key int) (dist.Engine, error) {
	type member struct{ color, key, rank int }
	var out *engine
	err := e.meet(ctx, member{color, key, e.rank}, func(m *meeting) {
		var members []member
		for _, x := range m.in {
			if x := x.(member); x.color == color {
				members = append(members, x)
			}
		}
		slices.SortStableFunc(members, func(a, b member) int { return a.key - b.key })
		e.hub.mu.Lock()
		defer e.hub.mu.Unlock()
		if m.children[color] == nil {
			m.children[color] = newHub(len(members), e.hub.fail)
		}
		out = &engine{hub: m.children[color], rank: slices.IndexFunc(members, func(x member) bool { return x.rank == e.rank })}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Abort implements dist.Engine.
func (e *engine) Abort(cause error) {
	e.hub.fail.once.Do(func() {
		e.hub.fail.err = cause
		close(e.hub.fail.done)
	})
}

// Failed implements dist.Engine.
func (e *engine) Failed() error {
	select {
	case <-e.hub.fail.done:
		return e.hub.fail.err
	default:
		return nil
	}
}

// Status implements dist.Engine.
func (e *engine) Status() string {
	h := e.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	most := slices.Max(h.calls)
	var behind []string
	for r, n := range h.calls {
		if n < most {
			behind = append(behind, fmt.Sprintf("rank %d is at transfer %d", r, n))
		}
	}
	if behind == nil {
		return ""
	}
	return fmt.Sprintf("%s, the others at %d", strings.Join(behind, ", "), most)
}

// Close implements dist.Engine.
func (e *engine) Close(ctx context.Context) error {
	return e.meet(ctx, nil, func(*meeting) {})
}
