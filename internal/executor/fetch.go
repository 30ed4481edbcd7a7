package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// FetchTensors syncs those of the tensors that are pending, in one graph, waits for all and
// returns their buffers in order. Tensors that share data share the buffer.
func (s *Session) FetchTensors(ctx context.Context, ts ...*Tensor) ([]backend.Buffer, error) {
	return s.fetchSynced(ctx, ts, (*Data).escape, (*Data).Wait)
}

// FetchQueued is FetchTensors for those who enqueue work behind what makes the contents: on a
// device that keeps its work in order it waits until that is enqueued. An error of the work is then
// told by what waits for the buffers (backend.AsyncBuffer), and by FetchTensors.
func (s *Session) FetchQueued(ctx context.Context, ts ...*Tensor) ([]backend.Buffer, error) {
	return s.fetchSynced(ctx, ts, (*Data).escape, (*Data).queued)
}

// awaiter is how the buffer of data is waited for.
type awaiter = func(*Data, context.Context) (backend.Buffer, error)

// fetchSynced calls note with the data of each tensor while its session is locked: escape, as the caller has
// the bytes, or another word that somebody looks at it.
func (s *Session) fetchSynced(ctx context.Context, ts []*Tensor, note func(*Data), wait awaiter) ([]backend.Buffer, error) {
	if err := s.tracedMisuse("read", "elements are read"); err != nil {
		return nil, err
	}
	if err := s.Readable(ts...); err != nil {
		return nil, err
	}
	if _, err := s.SyncTensors(ctx, ts, stepConfig); err != nil {
		return nil, err
	}
	data, indices, err := s.gatherTensorsData(ts, note)
	if err != nil {
		return nil, err
	}
	return s.fetchTensors(ctx, data, indices, wait)
}

// Readable returns the error that reading the tensors would fail with at once:
// ErrClosed, ErrDead, ErrReleased, ErrSession, or that one is nil or zero.
func (s *Session) Readable(ts ...*Tensor) error {
	if s.core.closed.Load() {
		return ErrClosed
	}
	var locked lockedSession
	defer locked.be(nil)
	for i, t := range ts {
		if err := s.readable(&locked, i, t); err != nil {
			return err
		}
	}
	return nil
}

// ReadableShape returns a tensor's shape, or the error of Readable.
func (s *Session) ReadableShape(t *Tensor) (ir.Shape, error) {
	if s.core.closed.Load() {
		return ir.Shape{}, ErrClosed
	}
	var locked lockedSession
	defer locked.be(nil)
	if err := s.readable(&locked, 0, t); err != nil {
		return ir.Shape{}, err
	}
	return t.shape(), nil
}

// readable is Readable for tensor i, whose session it locks.
func (s *Session) readable(locked *lockedSession, i int, t *Tensor) error {
	if t == nil || t.s == nil {
		return fmt.Errorf("loris: tensor %d is nil or zero", i)
	}
	locked.be(t.s)
	switch {
	case t.s.core != s.core:
		return fmt.Errorf("loris: tensor %d: %w", i, ErrSession)
	case t.dead():
		return fmt.Errorf("loris: tensor %d: %w", i, t.death())
	}
	return nil
}

var errNotSynced = errors.New("the tensor has no data: a hook kept it from being synced")

// gatherTensorsData returns the distinct data of synced tensors and, for each tensor, the position
// of its data among them. note is called with the data of each tensor while its session is locked. It returns
// the error of a tensor whose step has ended meanwhile.
func (s *Session) gatherTensorsData(ts []*Tensor, note func(*Data)) (data []*Data, indices []int, err error) {
	at := make(map[*Data]int, len(ts))
	indices, data = make([]int, len(ts)), make([]*Data, 0, len(ts))
	var locked lockedSession
	defer locked.be(nil)
	for i, t := range ts {
		locked.be(t.s)
		d := t.data
		switch {
		case d != nil:
			note(d)
		case t.dead():
			return nil, nil, fmt.Errorf("loris: tensor %d: %w", i, t.death())
		}
		k, seen := at[d]
		if !seen {
			k = len(data)
			at[d] = k
			data = append(data, d)
		}
		indices[i] = k
	}
	return data, indices, nil
}

// fetchTensors waits for the data and returns the buffers at the indices, in their order.
func (s *Session) fetchTensors(ctx context.Context, data []*Data, indices []int, wait awaiter) ([]backend.Buffer, error) {
	start := time.Now()
	defer func() { s.stage(report.StageFetch, start) }()
	bufs := make([]backend.Buffer, len(data))
	for i, d := range data {
		if d == nil {
			return nil, fmt.Errorf("loris: %w", errNotSynced)
		}
		var err error
		if bufs[i], err = wait(d, ctx); err != nil {
			tell(s.owner, err)
			return nil, err
		}
	}
	out := make([]backend.Buffer, len(indices))
	for k, i := range indices {
		out[k] = bufs[i]
	}
	return out, nil
}

// readers are data that somebody looks at for a while.
type readers []*Data

func (r *readers) add(d *Data) {
	d.readers.Add(1)
	*r = append(*r, d)
}

func (r *readers) done() {
	for _, d := range *r {
		d.readers.Add(-1)
	}
}

// With syncs those of the tensors that are pending, in one graph, waits for all and calls fn with their
// buffers, in order. fn must not keep what it is given. Tensors that are released meanwhile keep their
// elements until it returns.
func (s *Session) With(ctx context.Context, fn func([]backend.Buffer) error, ts ...*Tensor) error {
	var r readers
	defer r.done()
	bufs, err := s.fetchSynced(ctx, ts, r.add, (*Data).Wait)
	if err != nil {
		return err
	}
	return fn(bufs)
}

// Read is With for the elements of one tensor, on the host and little endian.
func (t *Tensor) Read(ctx context.Context, fn func([]byte) error) error {
	var r readers
	defer r.done()
	b, err := t.fetch(ctx, r.add)
	if err != nil {
		return err
	}
	return fn(b)
}

// Fetch returns the tensor's elements on the host, little endian; it syncs and
// waits as needed. The bytes must not be changed.
func (t *Tensor) Fetch(ctx context.Context) ([]byte, error) { return t.fetch(ctx, (*Data).escape) }

// fetch is Fetch, with note as for fetchSynced.
func (t *Tensor) fetch(ctx context.Context, note func(*Data)) ([]byte, error) {
	if t.s == nil {
		return nil, fmt.Errorf("loris: use of a zero Tensor")
	}
	if err := t.s.tracedMisuse("read", "elements are read"); err != nil {
		return nil, err
	}
	s := t.s
	s.resumed()
	s.lock()
	s.endView()
	data := t.data
	if t.dead() || s.core.closed.Load() {
		data = nil
	}
	if data != nil {
		note(data)
	}
	s.unlock()
	if data == nil {
		bufs, err := s.fetchSynced(ctx, []*Tensor{t}, note, (*Data).Wait)
		if err != nil {
			return nil, err
		}
		return s.read(ctx, bufs[0])
	}
	start := time.Now()
	buf, err := data.Wait(ctx)
	s.stage(report.StageFetch, start)
	if err != nil {
		tell(s.owner, err)
		return nil, err
	}
	return s.read(ctx, buf)
}

func (s *Session) read(ctx context.Context, buf backend.Buffer) ([]byte, error) {
	b, err := backend.Contents(ctx, buf)
	s.core.stats.fetched.Add(int64(len(b)))
	return b, err
}
