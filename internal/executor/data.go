package executor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// Errors that reading or using a tensor may return (errors.Is).
var (
	// ErrClosed says that the session was closed.
	ErrClosed = errors.New("the session is closed")
	// ErrNoExecution is returned by reads in NoOp execution mode.
	ErrNoExecution = errors.New("nothing was executed: the session is in NoOp execution mode")
	// ErrDead says that a tensor's step has ended (Session.Step).
	ErrDead = errors.New("the tensor died at the end of its Step; Keep it to use it later")
	// ErrUncommitted says that a variable has no committed value yet: another session is making it
	// in a Step.
	ErrUncommitted = errors.New("the variable has no committed value yet")
	// ErrReleased says that a Snapshot, or a tensor, was released.
	ErrReleased = errors.New("it was released")
	// ErrSession says that one op was given tensors of unrelated sessions.
	ErrSession = errors.New("the tensors belong to unrelated sessions")
)

// DeviceDataInfo identifies data on a device and says whether it is shared.
type DeviceDataInfo struct {
	// TensorID is a number that no other data of the executor has.
	TensorID uint64
	// ReadOnly data is shared (scalars, cached host tensors, user memory) and is
	// never donated.
	ReadOnly bool
}

// Data is data on a device, or the placeholder of what a scheduled computation will put there.
type Data struct {
	shape  ir.Shape
	device ir.Device
	info   DeviceDataInfo

	// done is closed when buf and err are final; it is nil if they always were.
	done chan struct{}
	buf  backend.Buffer
	err  error
	// submission is the work that still computes the contents; nil if they are there. It is
	// final when buf and err are.
	submission *submission

	// digest identifies the contents of cached data whose device has memory of its own; it is
	// nil for other data.
	digest *[sha256.Size]byte

	// leaf is made when the data is first used in a graph, and guarded by the lock of that group of
	// sessions; others have leaves of their own (leavesApart).
	leaf *ir.Node
	// valueLeaf is memory for the first leaf of a variable that holds the data; guarded as that variable is.
	valueLeaf variableLeaf
	// escaped says that a handle may outlive the step: never donated. It is set with
	// the lock of the tensor's session held, or core.mu; donations are decided with both.
	escaped atomic.Bool
	// lent says that something besides one tensor may look at the buffer, for as long as it likes: its
	// memory is the garbage collector's then. It is set with the lock of the tensor's session held, or
	// core.mu.
	lent atomic.Bool
	// held says that a tensor has it; guarded by the lock of that tensor's session.
	held bool
	// readers is how many look at the buffer at the moment; it grows with the lock of the tensor's session held.
	readers atomic.Int32

	holder atomic.Pointer[Variable] // the first variable whose value it was

	// Guarded by core.mu; donated is set by the session that has escaped it nowhere, with the stripe of
	// its variable:
	donated bool
	failed  bool     // its computation failed
	prior   *Data    // if it failed: what its variable held before
	history *history // what it was computed as, if that was in this step
	by      *Async   // what computes it, if a sync does
}

// failure returns the error of the data's computation if that has failed; core.mu is held.
func (d *Data) failure() error {
	switch {
	case d.by != nil && d.by.failed != nil:
		return d.by.failed
	case !d.Ready() || d.by != nil:
		return nil
	case d.err != nil:
		return d.err
	case d.submission != nil:
		return d.submission.err
	}
	return nil
}

// LeafName names the data in dumps.
func (d *Data) LeafName() string { return fmt.Sprintf("t%d", d.info.TensorID) }

func readyData(buf backend.Buffer, info DeviceDataInfo) *Data {
	return &Data{shape: buf.Shape(), device: buf.Device(), buf: buf, info: info}
}

// placeholder returns data that is still to be computed. Whoever computes it closes done when
// buf and err are set; several placeholders may share one done.
func placeholder(s ir.Shape, d ir.Device, id uint64, done chan struct{}) *Data {
	return &Data{shape: s, device: d, info: DeviceDataInfo{TensorID: id}, done: done}
}

// Shape returns the dtype and dimensions.
func (d *Data) Shape() ir.Shape { return d.shape }

// Device returns where the data is or will be.
func (d *Data) Device() ir.Device { return d.device }

// Info returns the data's number and whether it is shared.
func (d *Data) Info() DeviceDataInfo { return d.info }

// Ready reports, without waiting, whether the data is there or its computation has failed.
func (d *Data) Ready() bool {
	if d.done == nil {
		return true
	}
	select {
	case <-d.done:
		return d.submission == nil || d.submission.isDone()
	default:
		return false
	}
}

// Wait blocks until the data is there and returns its buffer, or the error of
// the computation that should have made it, or ctx's error.
func (d *Data) Wait(ctx context.Context) (backend.Buffer, error) {
	buf, err := d.queued(ctx)
	if err != nil {
		return nil, err // the submission is not final if ctx ended the wait
	}
	if f := d.submission; f != nil {
		select {
		case <-f.done:
		default:
			select {
			case <-f.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if f.err != nil {
			return nil, f.err
		}
	}
	return buf, nil
}

// queued is Wait for a caller that enqueues work behind the work which computes the contents:
// it neither waits for a submission to be done nor returns its error.
func (d *Data) queued(ctx context.Context) (backend.Buffer, error) {
	if d.done != nil {
		select {
		case <-d.done:
		default:
			select {
			case <-d.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return d.buf, d.err
}

// mayDie reports whether nothing can reach the data once the variable that holds it has another
// value; core.mu is held.
func (d *Data) mayDie() bool { return !d.escaped.Load() && !d.info.ReadOnly }

// outlive marks the data as escaped.
func (d *Data) outlive() { d.escaped.Store(true) }

// escape marks the data as escaped and lent.
func (d *Data) escape() {
	if !d.lent.Load() {
		d.outlive()
		d.lent.Store(true)
	}
}

// retire releases the buffer of data that nothing can reach any more, so that its memory is
// reused before the garbage collector has noticed.
func (d *Data) retire() {
	if d.Ready() && d.buf != nil {
		d.buf.Release()
		d.buf = nil
	}
}

// node returns the data's leaf, for the group of session s, whose tensor it is; that is locked.
func (d *Data) node(s *Session) *ir.Node {
	if d.leaf == nil {
		d.leaf = s.leafKind(d).Leaf(d)
	}
	return d.leaf
}

// placement is what the kind of a leaf depends on.
type placement struct {
	shape  ir.Shape
	device ir.Device
}

// maxLeafKinds bounds the kinds of leaves that a session keeps. A step has batches like those of the step before.
const maxLeafKinds = 64

// leafKind returns the kind of the data's leaves; the session is locked.
func (s *Session) leafKind(d *Data) ir.LeafKind {
	at := placement{d.shape, d.device}
	k, ok := s.leafKinds[at]
	if !ok {
		if len(s.leafKinds) >= maxLeafKinds {
			clear(s.leafKinds)
		}
		k = ir.NewLeafKind(d.shape, d.device)
		s.leafKinds[at] = k
	}
	return k
}
