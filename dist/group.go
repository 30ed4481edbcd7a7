package dist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Group is a group of ranks that compute together, seen from one of them. Its methods for tensors record
// ops, see the files of ops. Programs of one session, and of its forks, may use a group: several
// sessions would begin their collectives in an order of chance.
type Group struct {
	name   string
	boxed  any // name, as an argument of ops
	world  *world
	engine Engine

	mu     sync.Mutex
	queue  []func() // parts of this rank that wait for their turn
	busy   bool     // a goroutine runs parts; who sets it does so until the queue is empty, or has another go on
	closed bool

	runs    uint64 // agreed so far
	splits  int
	last    map[peerTag]chan struct{} // by peer and tag: closed when the latest send or recv is done
	bound   bounded                   // context of the part that runs, but for sends and receives
	buffers [3][]byte                 // scratch of the goroutine that runs the parts
	cuts    [][]byte                  // likewise
	gpu     gpuSide                   // of the goroutine that runs the parts, which sets it with mu held
}

// peerTag tells apart what may be under way at the same time.
type peerTag struct {
	op        string
	peer, tag int
}

// world is what the groups of a process share. It runs the collectives of the process's rank.
type world struct {
	ctx    context.Context // ends with the one of Init, with Close, and with the first failure
	cancel context.CancelCauseFunc
	// unwatch ends what aborts the engine when the context of Init ends.
	unwatch func() bool
	limit   time.Duration
	late    error // that the limit is over
	shards  int
	bucket  int // bytes of gradients in one collective
	// library says that long sums are the library's own.
	library bool
	root    *Group

	meters meters
	trace  *trace // of all ranks; nil for none
	// measured is the file with the sizes of buckets that were measured; nil leaves bucket as it is.
	measured *string

	mu     sync.Mutex
	groups map[string]*Group
}

// Option sets up a group.
type Option func(*world)

// WithLimit sets after how long a collective is given up whose ranks have not all come. The default is
// five minutes; a limit must be longer than the slowest rank may take for a step.
func WithLimit(d time.Duration) Option { return func(w *world) { w.limit = d } }

// WithShards sets into how many parts the work of a step is cut, whatever the number of ranks, see
// Group.Shards. The default is one for each rank.
func WithShards(n int) Option { return func(w *world) { w.shards = n } }

// WithLibrarySums makes AllReduce add long tensors of f32 and f64 by the engine's own all-reduce, such as
// MPI_Allreduce, in place of the balanced tree: sums are other bits on another number of ranks, and may be
// in each run. An engine that has none is an error wrapping loris.ErrArg.
func WithLibrarySums() Option { return func(w *world) { w.library = true } }

// New returns the group of all ranks of an engine. ctx bounds its life: where it ends, so do all waits.
// Options that do not fit the number of ranks are an error wrapping loris.ErrArg.
func New(ctx context.Context, e Engine, opts ...Option) (*Group, error) {
	w, err := newWorld(e.Size(), opts)
	if err != nil {
		return nil, err
	}
	return w.begin(ctx, e)
}

// newWorld returns a world without an engine.
func newWorld(size int, opts []Option) (*world, error) {
	w := &world{limit: 5 * time.Minute, bucket: 4 << 20, shards: size, groups: map[string]*Group{}, meters: meters{base: time.Now()}}
	for _, o := range opts {
		o(w)
	}
	if w.limit <= 0 || w.bucket <= 0 {
		return nil, fmt.Errorf("dist: %w: a limit of %v and buckets of %d bytes: both must be positive", ir.ErrArg, w.limit, w.bucket)
	}
	if n := w.shards; n < 1 || n%size != 0 || (n/size)&(n/size-1) != 0 {
		return nil, fmt.Errorf("dist: %w: %d shards cannot be divided among %d ranks so that each has a power of two of them", ir.ErrArg, n, size)
	}
	w.late = fmt.Errorf("not all ranks came within %v: %w", w.limit, context.DeadlineExceeded)
	return w, nil
}

// begin returns the group of all ranks.
func (w *world) begin(ctx context.Context, e Engine) (*Group, error) {
	if _, ok := e.(Summer); w.library && !ok && e.Size() > 1 {
		return nil, fmt.Errorf("dist: %w: the engine (%T) has no sums of its own, which WithLibrarySums wants", ir.ErrArg, e)
	}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.root = w.add("world", e)
	w.unwatch = context.AfterFunc(ctx, func() { e.Abort(context.Cause(ctx)) })
	if w.measured != nil && e.Size() > 1 {
		if err := w.root.together(ctx, "measure buckets", w.measureBuckets); err != nil {
			return nil, err
		}
	}
	if w.trace != nil {
		err := w.root.together(ctx, "trace", func(ctx context.Context) (err error) {
			w.trace.begin, err = w.trace.compareClocks(ctx, e)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return w.root, nil
}

// add makes a group.
func (w *world) add(name string, e Engine) *Group {
	g := &Group{name: name, boxed: name, world: w, engine: e, last: map[peerTag]chan struct{}{}, bound: bounded{w: w}}
	w.mu.Lock()
	w.groups[name] = g
	w.mu.Unlock()
	return g
}

// Rank returns this process's rank in the group, from 0.
func (g *Group) Rank() int { return g.engine.Rank() }

// Size returns the number of ranks.
func (g *Group) Size() int { return g.engine.Size() }

// Communicator is what packages that PyTorch compiled reach the group by, see aoti.Groups.
func (g *Group) Communicator() (collective.Communicator, string) { return g.world, g.name }

// Shards returns the shards of a step that are this rank's: n of them from first on, of all in all. The
// sums of shards are the same bits on any number of ranks, see Average. first and n are those of
// WithShards divided among the ranks of the group that Init or New returned.
func (g *Group) Shards() (first, n, all int) {
	all = g.world.shards
	n = all / g.world.root.Size()
	return g.world.root.Rank() * n, n, all
}

// Session returns a session whose programs may use the group and those that are split from it.
func (g *Group) Session(opts ...loris.SessionOption) (*loris.Session, error) {
	s, err := loris.New(append(slices.Clone(opts), func(c *executor.Config) { c.Collectives = g.world })...)
	if err != nil || g.world.trace == nil {
		return s, err
	}
	g.world.mu.Lock()
	defer g.world.mu.Unlock()
	return s, g.world.trace.add(s)
}

// Split returns the group of the ranks that give the same color, ordered by key and then by rank. All
// ranks of g call it, in the same order. It blocks until they have.
func (g *Group) Split(ctx context.Context, color, key int) (*Group, error) {
	g.mu.Lock()
	g.splits++
	name := fmt.Sprintf("%s.%d", g.name, g.splits) // not of the color: graphs must be equal on all ranks
	g.mu.Unlock()
	var e Engine
	err := g.together(ctx, "split", func(ctx context.Context) (err error) {
		e, err = g.engine.Split(ctx, color, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return g.world.add(name, e), nil
}

// Wait blocks until all ranks have called it.
func (g *Group) Wait(ctx context.Context) error {
	return g.together(ctx, "wait", func(context.Context) error { return nil })
}

// Close ends the use of the group that Init or New returned, and of all groups split from it. It blocks
// until the other ranks have called it, too, or have failed. Collectives fail afterwards.
func (g *Group) Close(ctx context.Context) error {
	w := g.world
	var traced error
	if w.trace != nil {
		traced = w.trace.finish(ctx, w.root)
	}
	err := w.root.together(ctx, "close", w.root.engine.Close)
	if err != nil {
		w.root.engine.Abort(err) // the others must not wait for this rank
	}
	w.unwatch()
	w.cancel(errClosed)
	failed := err != nil
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, g := range w.groups {
		err = errors.Join(err, g.end(failed))
		delete(w.groups, name)
	}
	return errors.Join(traced, err)
}

// end has no further collective begin. It ends the engine on GPUs, with what that has enqueued if a rank
// has failed.
func (g *Group) end(failed bool) error {
	g.mu.Lock()
	g.closed = true
	e := g.gpu.engine
	g.mu.Unlock()
	if e == nil {
		return nil
	}
	if failed {
		e.Abort()
		return nil
	}
	return e.Close()
}

var errClosed = errors.New("the group is closed")

// do runs a part of this rank after those begun before, on the caller's goroutine if there are none: to
// wake another one takes longer than a short collective. Where ctx ends first the group fails, so that
// the part ends, too.
func (g *Group) do(ctx context.Context, op, line string, part func(ctx context.Context) error) error {
	if !g.take() {
		return g.begin(op, line, part).Wait(ctx)
	}
	defer g.next()
	return g.run(&g.bound, ctx, op, line, part)
}

// take has the caller run a part, unless others wait for their turn; next is called behind it.
func (g *Group) take() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy || g.closed {
		return false
	}
	g.busy = true
	return true
}

// next has what came meanwhile run, after a part that was not of the queue.
func (g *Group) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy = len(g.queue) > 0; g.busy {
		go g.drain()
	}
}

// drain runs the queue until it is empty.
func (g *Group) drain() {
	for {
		g.mu.Lock()
		if len(g.queue) == 0 {
			g.busy = false
			g.mu.Unlock()
			return
		}
		part := g.queue[0]
		g.queue = slices.Delete(g.queue, 0, 1)
		g.mu.Unlock()
		part()
	}
}

// together is do for what all ranks do by a call of this package, which they agree about like about
// collectives.
func (g *Group) together(ctx context.Context, op string, part func(ctx context.Context) error) error {
	line := ir.FormatLine(ir.UserPC())
	return g.do(ctx, op, line, func(ctx context.Context) error {
		if err := newAgreement(g, []Use{{g.Rank(), op, line}}).agree(ctx); err != nil {
			return err
		}
		return part(ctx)
	})
}

// job is a part of this rank that runs or will run.
type job struct {
	w    *world
	done chan struct{}
	err  error
}

// Wait waits for the job. Where ctx ends first the group fails, so that the job ends, too.
func (j *job) Wait(ctx context.Context) error {
	select {
	case <-j.done:
	case <-ctx.Done():
		j.w.Fail(context.Cause(ctx))
		<-j.done
	}
	return j.err
}

// begin queues a part of this rank, which another goroutine runs.
func (g *Group) begin(op, line string, part func(ctx context.Context) error) *job {
	j := &job{w: g.world, done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		j.err = g.failed(op, line, errClosed)
		close(j.done)
		return j
	}
	g.queue = append(g.queue, func() {
		j.err = g.run(&g.bound, context.Background(), op, line, part)
		close(j.done)
	})
	if !g.busy {
		g.busy = true
		go g.drain()
	}
	return j
}

// run runs a part within the limit, until caller ends. within is not in use.
func (g *Group) run(within *bounded, caller context.Context, op, line string, part func(ctx context.Context) error) error {
	w := g.world
	within.begin(caller)
	defer within.end()
	err := within.ended()
	if err == nil {
		err = part(within)
	}
	if err == nil {
		return nil
	}
	if m := (*MismatchError)(nil); errors.As(err, &m) && !m.oneSided {
		return m
	}
	if cause := within.Err(); cause != nil {
		err = cause
	}
	err = g.failed(op, line, err)
	w.Fail(err)
	return err
}

func (g *Group) failed(op, line string, err error) error {
	if e := (*RankError)(nil); errors.As(err, &e) {
		return err // it says more
	}
	return &RankError{Group: g.name, Rank: g.Rank(), Op: op, Line: line, Status: g.engine.Status(), Err: err}
}

// Fail implements collective.Communicator.
func (w *world) Fail(err error) {
	if m := (*MismatchError)(nil); errors.As(err, &m) && !m.oneSided {
		return // all ranks have it, and none has begun
	}
	if w.ctx.Err() != nil {
		return // the first failure is told
	}
	w.cancel(err)
	w.root.engine.Abort(err)
}

// Run implements collective.Communicator.
func (w *world) Run(ctx context.Context, u *collective.Use, out, in []byte) error {
	g := w.group(u.Group)
	if g == nil || sends(u) {
		return w.Start(u, out, in).Wait(ctx)
	}
	m := w.meters.of(u, len(in))
	if !g.take() {
		r := metered{g.begin(u.Op, u.Line, func(ctx context.Context) error { return g.timed(ctx, m, out, in) }), m}
		return r.Wait(ctx)
	}
	defer g.next()
	begun := m.meters.now()
	err := g.run(&g.bound, ctx, u.Op, u.Line, func(ctx context.Context) error { return g.execute(ctx, u, out, in) })
	m.ran(begun)
	m.waited(m.took)
	return err
}

// timed runs this rank's part of a collective and meters it.
func (g *Group) timed(ctx context.Context, m *meter, out, in []byte) error {
	begun := m.meters.now()
	err := g.execute(ctx, m.use, out, in)
	m.ran(begun)
	return err
}

// sends reports whether a use is of two ranks, beside those of the whole group.
func sends(u *collective.Use) bool { return u.Op == "send" || u.Op == "recv" }

// Start implements collective.Communicator.
func (w *world) Start(u *collective.Use, out, in []byte) collective.Request {
	g := w.group(u.Group)
	if g == nil {
		return &job{w: w, done: closedChan, err: w.unknown(u)}
	}
	m := w.meters.of(u, len(in))
	part := func(ctx context.Context) error { return g.timed(ctx, m, out, in) }
	var j *job
	if sends(u) {
		j = g.beside(u, part)
	} else {
		j = g.begin(u.Op, u.Line, part)
	}
	return &metered{j, m}
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// unknown is the error of a group that this rank is not in.
func (w *world) unknown(u *collective.Use) error {
	return fmt.Errorf("dist: %w: %s (at %s): this rank is in no group %q that is open", ir.ErrArg, u.Op, u.Line, u.Group)
}

// beside runs a send or a recv beside collectives, after the one before with the same peer and tag.
func (g *Group) beside(u *collective.Use, part func(ctx context.Context) error) *job {
	key := peerTag{u.Op, u.Peer, u.Tag}
	j := &job{w: g.world, done: make(chan struct{})}
	g.mu.Lock()
	before := g.last[key]
	g.last[key] = j.done
	g.mu.Unlock()
	go func() {
		if before != nil {
			<-before
		}
		j.err = g.run(&bounded{w: g.world}, context.Background(), u.Op, u.Line, part)
		close(j.done)
	}()
	return j
}

// scratch returns n bytes that the part under way may use until its end.
func (g *Group) scratch(i, n int) []byte {
	if len(g.buffers[i]) < n {
		g.buffers[i] = aligned(n)
	}
	return g.buffers[i][:n]
}

// cut returns the parts of all ranks that lie one after another; it may be called again.
func (g *Group) cut(all []byte) [][]byte {
	n := g.Size()
	g.cuts = g.cuts[:0]
	for r := range n {
		g.cuts = append(g.cuts, all[len(all)/n*r:][:len(all)/n])
	}
	return g.cuts
}
