package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// ErrClosed is returned by a loader after Close.
var ErrClosed = errors.New("data: the loader is closed")

// Option is a setting of a Loader.
type Option func(*config)

type config struct {
	seed     uint64
	shuffle  bool
	dropLast bool
	rank     int
	ranks    int
	workers  int
	prefetch int
}

// Shuffle draws the samples of epoch e in the order of Permutation(Len(), seed+e), which is another
// one in each epoch. Without it they come in the order of the dataset.
func Shuffle(seed uint64) Option { return func(c *config) { c.seed, c.shuffle = seed, true } }

// Seed seeds the random numbers of transforms where the order is not shuffled. It is 0 if not set.
func Seed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// DropLast leaves out the samples at the end of an epoch that do not fill a batch (of every rank,
// see Shard). Without it the last batch is smaller.
func DropLast() Option { return func(c *config) { c.dropLast = true } }

// Shard divides each epoch among ranks processes, of which this is number rank, from 0: of the
// epoch's order it takes the samples at rank, rank+ranks, … So batch b of all ranks together is
// batch b of one process with batches ranks times as large. All ranks have the same number of
// samples: those that are left over are dropped with DropLast; without it the first samples of the
// epoch's order come again at its end.
func Shard(rank, ranks int) Option { return func(c *config) { c.rank, c.ranks = rank, ranks } }

// Workers sets how many goroutines make batches, at most. It is 2 if not set, or 1 on one
// processor: reading and decoding take processors from the training.
func Workers(n int) Option { return func(c *config) { c.workers = n } }

// Prefetch sets how many batches are made ahead of the one that is asked for, at most; they are
// held in memory. It is twice the number of workers if not set; 0 makes batches when they are asked
// for.
func Prefetch(n int) Option { return func(c *config) { c.prefetch = n } }

// Loader makes batches of a dataset, ahead of the program that takes them. Its goroutines live only
// while there is a batch to make. One goroutine uses a Loader; Close and Stats may be called from
// any.
type Loader[T, B any] struct {
	ds      Dataset[T]
	size    int
	collate func(samples []T) (B, error)
	cfg     config
	ctx     context.Context // of the reads ahead; Close ends it
	cancel  context.CancelFunc

	epoch uint64 // of the next batch that Next returns
	batch int    // its number in the epoch

	mu      sync.Mutex
	queue   []*job[B] // batches that are made ahead, in order; the first belongs to the next call of Next
	order   *order    // of the epoch of the last of them
	running int       // goroutines
	stats   Stats
	first   time.Time // when Next was called first
}

// job is a batch that is made, was made or will be.
type job[B any] struct {
	epoch    uint64
	number   int
	order    *order
	taken    bool          // by a goroutine
	done     chan struct{} // closed when what follows is set
	value    B
	err      error
	panicked any
}

// order is the permutation of an epoch, which the first goroutine that needs it computes.
type order struct {
	epoch uint64
	once  sync.Once
	index []int
}

// NewLoader returns a loader of batches of size samples, which collate joins: Stack for samples of
// arrays, Collect for a list of whatever they are. Nothing is read before the first batch is asked
// for. It panics with an *OpError if a setting cannot be.
func NewLoader[T, B any](ds Dataset[T], size int, collate func(samples []T) (B, error), opts ...Option) *Loader[T, B] {
	cfg := config{ranks: 1, workers: min(2, runtime.GOMAXPROCS(0)), prefetch: -1}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.prefetch == -1 {
		cfg.prefetch = 2 * cfg.workers
	}
	misuse := func(format string, args ...any) {
		panic(ir.NewOpError("data.NewLoader", loris.ErrArg, nil, format, args...))
	}
	switch {
	case size < 1:
		misuse("batches of %d samples", size)
	case cfg.ranks < 1 || cfg.rank < 0 || cfg.rank >= cfg.ranks:
		misuse("rank %d of %d", cfg.rank, cfg.ranks)
	case cfg.workers < 1:
		misuse("%d workers", cfg.workers)
	case cfg.prefetch < 0:
		misuse("prefetch of %d batches", cfg.prefetch)
	}
	l := &Loader[T, B]{ds: ds, size: size, collate: collate, cfg: cfg}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Close ends reads ahead and gives up what was read. Calls of Next end with ErrClosed. It does not
// wait for the goroutines, which end when the dataset's At returns.
func (l *Loader[T, B]) Close() {
	l.cancel()
	l.mu.Lock()
	l.queue = nil
	l.mu.Unlock()
}

// samples returns how many samples of an epoch this rank has.
func (l *Loader[T, B]) samples() int {
	n := l.ds.Len()
	if !l.cfg.dropLast && n > 0 {
		return (n-1)/l.cfg.ranks + 1
	}
	return n / l.cfg.ranks
}

// Batches returns the number of batches of an epoch.
func (l *Loader[T, B]) Batches() int {
	n := l.samples()
	if !l.cfg.dropLast && n > 0 {
		return (n-1)/l.size + 1
	}
	return n / l.size
}

// Next returns the next batch. At the end of an epoch it returns io.EOF once; the call after that
// begins the next epoch. It blocks until the batch is made or ctx ends; then the batch comes with a
// later call. An error of the dataset names epoch, batch and sample, and a later call tries that
// batch again. A panic of the dataset is a panic of Next.
func (l *Loader[T, B]) Next(ctx context.Context) (batch B, err error) {
	if err := l.check(ctx); err != nil {
		return batch, err
	}
	if l.batch >= l.Batches() {
		l.epoch, l.batch = l.epoch+1, 0
		return batch, io.EOF
	}
	start := time.Now()
	j := l.head(start)
	select {
	case <-j.done:
	case <-ctx.Done():
		return batch, context.Cause(ctx)
	case <-l.ctx.Done():
		return batch, ErrClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.stats.Waited += now.Sub(start)
	l.stats.Elapsed = now.Sub(l.first)
	if j.panicked != nil || j.err != nil {
		l.queue = nil
		if j.panicked != nil {
			panic(j.panicked)
		}
		return batch, j.err
	}
	l.batch++
	l.stats.Batches++
	if len(l.queue) > 0 { // not after Close
		l.queue[0] = nil // the batch belongs to the caller alone
		l.queue = l.queue[1:]
		l.fill(l.cfg.prefetch)
	}
	return j.value, nil
}

func (l *Loader[T, B]) check(ctx context.Context) error {
	if err := ir.CheckContext("data.Next", ctx); err != nil {
		return err
	}
	if l.ctx.Err() != nil {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Epoch returns an iterator over the batches that are left of the epoch, for one loop. It ends after
// the first error, which it yields; ctx ends it, too. After a loop that was left early the next one
// goes on behind the last batch that it had.
func (l *Loader[T, B]) Epoch(ctx context.Context) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		for {
			b, err := l.Next(ctx)
			if err == io.EOF {
				return
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// head returns the job of the batch that is next.
func (l *Loader[T, B]) head(now time.Time) *job[B] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		l.first = now
	}
	if len(l.queue) == 0 {
		l.append(l.epoch, l.batch)
	}
	l.fill(l.cfg.prefetch + 1)
	return l.queue[0]
}

// fill appends batches until there are n, unless there is none, and starts goroutines for those that
// nobody makes. The lock is held.
func (l *Loader[T, B]) fill(n int) {
	batches := l.Batches()
	for 0 < len(l.queue) && len(l.queue) < n {
		last := l.queue[len(l.queue)-1]
		if last.number+1 < batches {
			l.append(last.epoch, last.number+1)
		} else {
			l.append(last.epoch+1, 0)
		}
	}
	waiting := 0
	for _, j := range l.queue {
		if !j.taken {
			waiting++
		}
	}
	for ; waiting > 0 && l.running < l.cfg.workers; waiting-- {
		l.running++
		go l.work()
	}
}

func (l *Loader[T, B]) append(epoch uint64, number int) {
	if l.order == nil || l.order.epoch != epoch {
		l.order = &order{epoch: epoch}
	}
	l.queue = append(l.queue, &job[B]{epoch: epoch, number: number, order: l.order, done: make(chan struct{})})
}

// work makes batches until none waits.
func (l *Loader[T, B]) work() {
	ended := false
	defer func() {
		if !ended { // the dataset ended the goroutine
			l.mu.Lock()
			l.running--
			l.fill(0)
			l.mu.Unlock()
		}
	}()
	g := newGenerator()
	for {
		j := l.take()
		if j == nil {
			ended = true
			return
		}
		l.make(j, g)
	}
}

// take returns the first batch that nobody makes, or counts the goroutine out.
func (l *Loader[T, B]) take() *job[B] {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.queue {
		if !j.taken {
			j.taken = true
			return j
		}
	}
	l.running--
	return nil
}

// make makes a batch. Whatever happens, the job is done after it.
func (l *Loader[T, B]) make(j *job[B], g *generator) {
	j.err = errors.New("data: the dataset ended the goroutine that called it")
	defer close(j.done)
	defer func() {
		if p := recover(); p != nil {
			j.panicked = p
		}
	}()
	j.value, j.err = l.load(j, g)
}

func (l *Loader[T, B]) load(j *job[B], g *generator) (batch B, err error) {
	n := l.ds.Len()
	if l.cfg.shuffle {
		j.order.once.Do(func() { j.order.index = Permutation(n, l.cfg.seed+j.epoch) })
	}
	begin := j.number * l.size
	samples := make([]T, min(l.size, l.samples()-begin))
	for k := range samples {
		i := ((begin+k)*l.cfg.ranks + l.cfg.rank) % n
		if l.cfg.shuffle {
			i = j.order.index[i]
		}
		if samples[k], err = l.ds.At(l.ctx, i, g.of(l.cfg.seed, j.epoch, i)); err != nil {
			return batch, fmt.Errorf("data: epoch %d, batch %d, sample %d: %w", j.epoch, j.number, i, err)
		}
	}
	if batch, err = l.collate(samples); err != nil {
		return batch, fmt.Errorf("data: epoch %d, batch %d: %w", j.epoch, j.number, err)
	}
	return batch, nil
}
