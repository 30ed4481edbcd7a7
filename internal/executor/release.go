package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// stepReleased is the step of a tensor that was released, which is scoped then. No step has this number.
const stepReleased = 0

// Release drops what tensors hold: they are dead from now on, and nothing is computed for them alone. The
// memory of their elements is used again at once if they are computed and nothing else may look at them;
// otherwise the garbage collector finds it, as that of tensors which are dropped. Tensors that are dead
// already stay as they are, and so do values that a variable waits for, and tensors of a function that is
// being traced, whose trace decides what is computed.
func (s *Session) Release(ts ...*Tensor) {
	var locked lockedSession
	defer locked.be(nil)
	for _, t := range ts {
		if t == nil || t.s == nil || t.s.core != s.core {
			continue
		}
		locked.be(t.s)
		if t.dead() || t.bits&(bitTraced|bitValue|bitInitial) != 0 {
			continue
		}
		if t.data != nil {
			t.empty()
		}
		t.bits = t.bits&^bitKeep | bitDiscarded | bitScoped
		t.step = stepReleased
	}
}

// hold makes the data, of which the caller knows no other tensor than those that hold it, the tensor's; its
// session is locked.
func (t *Tensor) hold(d *Data) {
	t.data = d
	if d.held {
		d.escape()
	}
	d.held = true
}

// empty drops what a dead tensor holds; its session is locked. The buffer is released if nothing but the
// tensor could look at it: no graph has it as a leaf, no variable had it, and nobody was given it.
func (t *Tensor) empty() {
	if d := t.data; d != nil && d.held && d.unused() {
		d.retire()
	}
	t.ir, t.data = nil, nil
}

// unused reports whether nothing but the tensor that holds the data can look at it; that one's session is
// locked.
func (d *Data) unused() bool {
	return !d.lent.Load() && !d.info.ReadOnly && d.leaf == nil && d.holder.Load() == nil && d.readers.Load() == 0
}

// death is the error for a use of a dead tensor; its session is locked, or core.mu held.
func (t *Tensor) death() error {
	if t.step == stepReleased {
		return ErrReleased
	}
	return ErrDead
}

// With syncs those of the tensors that are pending, in one graph, waits for all and calls fn with their
// buffers, in order. fn must not keep what it is given. Tensors that are released meanwhile keep their
// elements until it returns.
func (s *Session) With(ctx context.Context, fn func([]backend.Buffer) error, ts ...*Tensor) error {
	if err := s.tracedMisuse("read", "elements are read"); err != nil {
		return err
	}
	if err := s.Readable(ts...); err != nil {
		return err
	}
	if _, err := s.SyncTensors(ctx, ts, stepConfig); err != nil {
		return err
	}
	var reading []*Data
	defer func() { stopReading(reading) }()
	data, indices := s.gatherTensorsData(ts, func(d *Data) {
		d.readers.Add(1)
		reading = append(reading, d)
	})
	bufs, err := s.fetchTensors(ctx, data, indices, (*Data).Wait)
	if err != nil {
		return err
	}
	return fn(bufs)
}

// ReadableShape returns a tensor's shape, or the error that reading it would fail with at once, as Readable.
func (s *Session) ReadableShape(t *Tensor) (ir.Shape, error) {
	if err := s.Readable(t); err != nil {
		return ir.Shape{}, err
	}
	t.s.lock()
	defer t.s.unlock()
	if t.dead() {
		return ir.Shape{}, fmt.Errorf("loris: tensor 0: %w", t.death())
	}
	return t.shape(), nil
}

func stopReading(list []*Data) {
	for _, d := range list {
		d.readers.Add(-1)
	}
}

// Read is With for the elements of one tensor, on the host and little endian.
func (t *Tensor) Read(ctx context.Context, fn func([]byte) error) error {
	s := t.s
	if err := s.tracedMisuse("read", "elements are read"); err != nil {
		return err
	}
	s.lock()
	s.endView()
	d := t.data
	if d == nil || t.dead() || s.core.closed.Load() {
		s.unlock()
		return s.With(ctx, func(bufs []backend.Buffer) error { return s.readTo(ctx, bufs[0], fn) }, t)
	}
	d.readers.Add(1)
	s.unlock()
	defer d.readers.Add(-1)
	start := time.Now()
	buf, err := d.Wait(ctx)
	s.stage(report.StageFetch, start)
	if err != nil {
		tell(s.owner, err)
		return err
	}
	return s.readTo(ctx, buf, fn)
}

func (s *Session) readTo(ctx context.Context, buf backend.Buffer, fn func([]byte) error) error {
	b, err := s.read(ctx, buf)
	if err != nil {
		return err
	}
	return fn(b)
}
