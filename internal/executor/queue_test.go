package executor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

var (
	queueType   = ir.RegisterDeviceType("queue")
	queueDevice = ir.Device{Type: queueType}
)

// queue is a backend whose device does its work in order, in the background, while
// models say that theirs is enqueued. It computes as ref does.
type queue struct {
	work chan func()
	// failing, when set, is the failure of a run's work.
	failing func(p *graph.Program, inputs [][]byte) error

	mu          sync.Mutex // held by the device while it works: who holds it holds it up
	submissions atomic.Int64
	runs        atomic.Int64
	most        atomic.Int64 // that were enqueued at a time
}

// newQueue registers a queue for the time of the test.
func newQueue(t testing.TB) *queue {
	q := &queue{work: make(chan func(), 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for f := range q.work {
			q.mu.Lock()
			f()
			q.mu.Unlock()
		}
	}()
	t.Cleanup(func() { close(q.work); <-done })
	backend.Register(q)
	return q
}

func (q *queue) DeviceType() ir.DeviceType  { return queueType }
func (q *queue) NumDevices() (int, error)   { return 1, nil }
func (q *queue) Version() string            { return "queue" }
func (q *queue) Supports(op ir.Op) bool     { return ref.New().Supports(op) }
func (q *queue) BytesInUse(ir.Device) int64 { return 0 }

func (q *queue) Compile(_ context.Context, p *graph.Program, _ ir.Device, _ backend.CompileOptions) (backend.Model, error) {
	return &queueModel{q: q, p: p}, nil
}

func (q *queue) Upload(_ context.Context, s ir.Shape, _ ir.Device, data []byte) (backend.Buffer, error) {
	b := &queueBuffer{shape: s, data: slices.Clone(data), there: make(chan struct{})}
	close(b.there)
	return b, nil
}

type queueModel struct {
	q    *queue
	p    *graph.Program
	last *queueRun
}

func (m *queueModel) Close() error { return m.Wait(context.Background()) }

func (m *queueModel) Spec() backend.Spec {
	return backend.Spec{Inputs: make([]backend.Param, len(m.p.Params)), Outputs: make([]backend.Param, len(m.p.Returns))}
}

func (m *queueModel) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	outs, _, err := m.Start(ctx, inputs, donated)
	return outs, err
}

func (m *queueModel) Start(_ context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, backend.Run, error) {
	q, r := m.q, &queueRun{done: make(chan struct{})}
	outs := make([]backend.Buffer, len(m.p.Returns))
	for i, id := range m.p.Returns {
		outs[i] = &queueBuffer{shape: m.p.Shape(id), there: make(chan struct{})}
	}
	inputs, donated = slices.Clone(inputs), slices.Clone(donated)
	q.runs.Add(1)
	now := q.submissions.Add(1)
	q.most.Store(max(q.most.Load(), now)) // the device's lock keeps others out
	m.last = r
	q.work <- func() {
		r.err = q.compute(m.p, inputs, donated, outs)
		q.submissions.Add(-1)
		close(r.done)
	}
	return outs, r, nil
}

// compute does the work of a run. Outputs of one that fails have garbage, and so
// have inputs that were donated to one that does not.
func (q *queue) compute(p *graph.Program, inputs []backend.Buffer, donated []bool, outs []backend.Buffer) (err error) {
	data := make([][]byte, len(inputs))
	for i, in := range inputs {
		data[i] = in.(*queueBuffer).data
	}
	if q.failing != nil {
		err = q.failing(p, data)
	}
	var results [][]byte
	if err == nil {
		results, err = ref.Eval(p, data)
	}
	for i, o := range outs {
		b := o.(*queueBuffer)
		if b.data = slices.Repeat([]byte{0xa5}, b.shape.Bytes()); err == nil {
			b.data = results[i]
		}
		close(b.there)
	}
	for i := range donated {
		if donated[i] {
			in := inputs[i].(*queueBuffer)
			in.data = slices.Repeat([]byte{0x5a}, len(in.data))
		}
	}
	return err
}

func (m *queueModel) Finished() (bool, error) {
	if m.last == nil {
		return true, nil
	}
	return m.last.Finished()
}

func (m *queueModel) Wait(ctx context.Context) error {
	if m.last == nil {
		return nil
	}
	return m.last.Wait(ctx)
}

type queueRun struct {
	done chan struct{}
	err  error
}

func (r *queueRun) Finished() (bool, error) {
	select {
	case <-r.done:
		return true, r.err
	default:
		return false, nil
	}
}

func (r *queueRun) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type queueBuffer struct {
	shape ir.Shape
	there chan struct{}
	data  []byte // the device's, until there is closed
}

func (b *queueBuffer) Shape() ir.Shape   { return b.shape }
func (b *queueBuffer) Device() ir.Device { return queueDevice }
func (b *queueBuffer) Retain()           {}
func (b *queueBuffer) Release()          {}

func (b *queueBuffer) Bytes(ctx context.Context) ([]byte, error) {
	select {
	case <-b.there:
		return b.data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// number applies an op to a tensor and a number.
func number(s *executor.Session, op ir.Op, x *executor.Tensor, v float64) *executor.Tensor {
	out := newTensor()
	s.BinaryNumber(op, out, x, v, false)
	return out
}

// pause lets others go on for a while.
func pause() { time.Sleep(time.Millisecond) }

// until waits for something that comes soon.
func until(f func() bool) {
	for !f() {
		pause()
	}
}

// TestStepsAreEnqueuedAhead checks that steps that build on each other are given to
// the device before the first is done, as many as the session allows and no more.
func TestStepsAreEnqueuedAhead(t *testing.T) {
	for _, ahead := range []int{0, 1, 2, 5} {
		q := newQueue(t)
		s := newSession(t, executor.Config{Device: queueDevice, InFlight: ahead})
		v := s.NewVariable(floatsOn(t, s, queueDevice, 0))
		step := func() error {
			v.Assign(number(s, aten.Add, value(s, v), 1))
			return s.MarkStep(ctx)
		}
		most := max(ahead, 1)
		if ahead == 0 {
			most = 3
		}
		q.mu.Lock()
		for range most {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		until(func() bool { return q.submissions.Load() == int64(most) })
		further := make(chan error) // it has the lock and waits for a place
		go func() {
			for range 2 {
				if err := step(); err != nil {
					further <- err
					return
				}
			}
			further <- nil
		}()
		pause()
		q.mu.Unlock()
		if err := <-further; err != nil {
			t.Fatal(err)
		}
		want(t, value(s, v), float32(most+2))
		if n := q.most.Load(); n != int64(most) {
			t.Errorf("%d steps were ahead at a time, want %d", n, most)
		}
	}
}

// failsOn has runs whose first input starts with a byte fail.
func (q *queue) failsOn(err error, when func(p *graph.Program) bool) {
	q.failing = func(p *graph.Program, _ [][]byte) error {
		if when(p) {
			return err
		}
		return nil
	}
}

// TestLateFailures checks that the failure of a step that others were enqueued
// behind is told by all that was computed from it or, where nobody reads that, once by
// what waits for the device; the rest goes on, and variables go back to the last value
// that there is.
func TestLateFailures(t *testing.T) {
	for _, reads := range []bool{false, true} {
		lateFailures(t, reads)
	}
}

func lateFailures(t *testing.T, reads bool) {
	wrong := errors.New("a kernel failed")
	q := newQueue(t)
	q.failsOn(wrong, func(p *graph.Program) bool { return strings.Contains(p.String(), "div") })
	s := newSession(t, executor.Config{Device: queueDevice})
	v := s.NewVariable(floatsOn(t, s, queueDevice, 4))
	w := s.NewVariable(floatsOn(t, s, queueDevice, 10))
	mark(t, s)

	q.mu.Lock()
	bad := number(s, aten.Div, value(s, v), 2)
	v.Assign(bad)
	mark(t, s)
	behind := number(s, aten.Mul, value(s, v), 2)
	v.Assign(behind)
	w.Assign(binaryOp(s, aten.Add, value(s, w), value(s, v)))
	mark(t, s)
	apart := number(s, aten.Add, floatsOn(t, s, queueDevice, 1), 1)
	mark(t, s)
	q.mu.Unlock()

	want(t, apart, 2)
	for name, x := range map[string]*executor.Tensor{"the step": bad, "a step behind": behind} {
		if !reads {
			break
		}
		if _, err := x.Fetch(ctx); !errors.Is(err, wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.WaitDeviceOps(ctx); !reads && (!errors.Is(err, wrong) || !errors.As(err, new(*devicelock.AsyncError))) {
		t.Errorf("waiting for the device: %v", err)
	}
	if err := s.WaitDeviceOps(ctx); err != nil {
		t.Errorf("the failure was told again: %v", err)
	}
	want(t, value(s, v), 4)
	want(t, value(s, w), 10)
	v.Assign(number(s, aten.Add, value(s, v), 1))
	mark(t, s)
	want(t, value(s, v), 5)
}

// TestWaitingForFlights checks that WaitDeviceOps and Close wait for what is
// enqueued, and the former no longer than its context.
func TestWaitingForFlights(t *testing.T) {
	q := newQueue(t)
	s := newSession(t, executor.Config{Device: queueDevice})
	x := number(s, aten.Add, floatsOn(t, s, queueDevice, 1), 1)
	q.mu.Lock()
	mark(t, s)
	until(func() bool { return q.submissions.Load() == 1 })
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.WaitDeviceOps(short); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that is given up: %v", err)
	}
	if _, err := x.Fetch(short); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that is given up: %v", err)
	}
	ended := make(chan error, 2)
	go func() { ended <- s.WaitDeviceOps(ctx) }()
	go func() { ended <- s.Fork().Close(ctx) }()
	pause()
	select {
	case err := <-ended:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	q.mu.Unlock()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := q.submissions.Load(); n != 0 {
		t.Errorf("%d steps are still enqueued", n)
	}
}

// TestQueuedBuffers has the buffer of a result while the device is held up, and computes with it as
// a tensor of another session that adopts it.
func TestQueuedBuffers(t *testing.T) {
	q := newQueue(t)
	s, other := newSession(t, executor.Config{Device: queueDevice}), newSession(t, executor.Config{Device: queueDevice})
	x := number(s, aten.Add, floatsOn(t, s, queueDevice, 1), 1)
	q.mu.Lock()
	bufs, err := s.FetchQueued(ctx, x)
	if err != nil {
		t.Fatal(err)
	}
	if n := q.submissions.Load(); n != 1 {
		t.Errorf("%d steps are enqueued, want 1", n)
	}
	bufs[0].Retain()
	y := newTensor()
	if err := other.Adopt(y, bufs[0]); err != nil {
		t.Fatal(err)
	}
	z := number(other, aten.Mul, y, 3)
	mark(t, other)
	q.mu.Unlock()
	want(t, z, 6)
	want(t, x, 2)
	if err := other.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := other.Adopt(newTensor(), bufs[0]); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("a closed session adopts: %v", err)
	}
}

// TestReadGivenUpBeforeSubmission has the race detector look at a read that is given up
// while the step waits for its place in the device's queue.
func TestReadGivenUpBeforeSubmission(t *testing.T) {
	q := newQueue(t)
	s := newSession(t, executor.Config{Device: queueDevice, InFlight: 1})
	v := s.NewVariable(floatsOn(t, s, queueDevice, 0))
	short, cancel := context.WithCancel(ctx)
	cancel()
	q.mu.Lock()
	var last *executor.Tensor
	for range 2 {
		last = number(s, aten.Add, value(s, v), 1)
		v.Assign(last)
		mark(t, s)
	}
	given, begun := make(chan error, 1), make(chan struct{})
	go func() {
		close(begun)
		_, err := last.Fetch(short)
		given <- err
	}()
	<-begun
	pause()
	q.mu.Unlock()
	want(t, last, 2)
	if err := <-given; !errors.Is(err, context.Canceled) { // not before: it would order the two
		t.Errorf("a read that is given up: %v", err)
	}
}

// TestDonationToFlights checks that steps that are enqueued overwrite each other's
// results in order.
func TestDonationToFlights(t *testing.T) {
	q := newQueue(t)
	s := newSession(t, executor.Config{Device: queueDevice})
	v := s.NewVariable(floatsOn(t, s, queueDevice, 1, 2))
	mark(t, s)
	q.mu.Lock()
	for range 3 {
		if err := s.Step(ctx, func() error {
			v.Assign(number(s, aten.Mul, value(s, v), 2))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	q.mu.Unlock()
	want(t, value(s, v), 8, 16)
	if q.runs.Load() == 0 {
		t.Error("nothing ran")
	}
}
