package container_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

var ctx = context.Background()

// ledger counts the bytes of the buffers of a test.
type ledger struct{ live, high atomic.Int64 }

func (l *ledger) add(n int64) {
	now := l.live.Add(n)
	for {
		h := l.high.Load()
		if now <= h || l.high.CompareAndSwap(h, now) {
			return
		}
	}
}

// buffer is a tensor of f32 that is counted and that notices its use after the
// last Release.
type buffer struct {
	ledger *ledger
	shape  ir.Shape
	data   []byte
	refs   atomic.Int32
}

func (l *ledger) buffer(s ir.Shape, data []byte) *buffer {
	b := &buffer{ledger: l, shape: s, data: data}
	b.refs.Store(1)
	l.add(int64(len(data)))
	return b
}

// filled is a buffer of n elements v.
func (l *ledger) filled(n int, v float32) *buffer {
	data := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
	}
	return l.buffer(ir.MakeShape(ir.F32, n), data)
}

func (b *buffer) Shape() ir.Shape   { return b.shape }
func (b *buffer) Device() ir.Device { return ir.Device{} }

func (b *buffer) Bytes(context.Context) ([]byte, error) {
	if b.refs.Load() <= 0 {
		panic("a buffer was used after its last Release")
	}
	return b.data, nil
}

func (b *buffer) Retain() {
	if b.refs.Add(1) <= 1 {
		panic("a buffer was retained after its last Release")
	}
}

func (b *buffer) Release() {
	switch n := b.refs.Add(-1); {
	case n < 0:
		panic("a buffer was released twice")
	case n == 0:
		b.ledger.add(-int64(len(b.data)))
	}
}

// first and last return elements, of any kind of buffer.
func first(b backend.Buffer) float32 {
	data, err := b.Bytes(ctx)
	if err != nil {
		panic(err)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(data))
}

func last(b backend.Buffer) float32 {
	data, err := b.Bytes(ctx)
	if err != nil {
		panic(err)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(data[len(data)-4:]))
}

// The constants of a double, by position.
const (
	cW = iota
	cB
	cTensor
	cRunning // written by each run
	cEmpty
	cSum // folded: w+b
	cCount
)

// wide is the number of elements of w, b and sum.
const wide = 256

const wideBytes = 4 * wide

func info() []backend.Constant {
	f := func(name, orig string, n int, t backend.ConstantType) backend.Constant {
		return backend.Constant{Name: name, OriginalName: orig, Shape: ir.MakeShape(ir.F32, n), Bytes: int64(4 * n), Type: t, FromFolded: t == backend.ConstantFolded}
	}
	return []backend.Constant{
		cW:       f("fc_weight", "fc.weight", wide, backend.ConstantParameter),
		cB:       f("fc_bias", "fc.bias", wide, backend.ConstantParameter),
		cTensor:  f("_tensor_constant0", "_tensor_constant0", 1, backend.ConstantUnknown),
		cRunning: f("bn_running", "bn.running", 1, backend.ConstantBuffer),
		cEmpty:   f("empty", "nothing", 0, backend.ConstantParameter),
		cSum:     f("_FOLDED_CONST_sum", "", wide, backend.ConstantFolded),
	}
}

// maker makes doubles, which share its hooks and its ledger.
type maker struct {
	ledger
	t testing.TB
	// run, fold, bind and making are called, when set, at the beginning of those.
	run, fold, bind func(context.Context, *double) error
	making          func(context.Context) error
	// constants are described in the place of info.
	constants []backend.Constant

	made, folds, binds, closes atomic.Int64
}

func (m *maker) make(ctx context.Context) (backend.Model, error) {
	if m.making != nil {
		if err := m.making(ctx); err != nil {
			return nil, err
		}
	}
	m.made.Add(1)
	return &double{m: m}, nil
}

// pool returns a container of doubles that is closed at the end of the test,
// when nothing may be left.
func (m *maker) pool(t testing.TB, cfg container.Config) *container.Container {
	t.Helper()
	m.t = t
	c, err := container.New(ctx, m.make, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := m.live.Load(); n != 0 {
			t.Errorf("%d bytes are left after Close", n)
		}
		if made, closed := m.made.Load(), m.closes.Load(); made != closed {
			t.Errorf("%d instances were made, %d closed", made, closed)
		}
	})
	return c
}

// double is a model that notices calls that the contract forbids. A run returns
// what it has seen: first and last elements of w, b and sum, and its running
// count.
type double struct {
	m       *maker
	busy    atomic.Int32
	closed  atomic.Bool
	bound   []backend.Buffer
	running float32        // the instance's own state, which begins from source
	source  backend.Buffer // of running
}

const outs = 7

func (d *double) enter() func() {
	if d.busy.Add(1) != 1 {
		d.m.t.Error("two calls of one instance at once")
	}
	if d.closed.Load() {
		d.m.t.Error("a call after Close")
	}
	return func() { d.busy.Add(-1) }
}

func (d *double) Spec() backend.Spec {
	spec := backend.Spec{Inputs: []backend.Param{{Name: "x"}}}
	for i := range outs {
		spec.Outputs = append(spec.Outputs, backend.Param{Name: fmt.Sprintf("out%d", i), Shape: ir.MakeShape(ir.F32, 1)})
	}
	return spec
}

func (d *double) Run(ctx context.Context, _ []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	defer d.enter()()
	if d.m.run != nil {
		if err := d.m.run(ctx, d); err != nil {
			return nil, err
		}
	}
	var out []backend.Buffer
	give := func(v float32) { out = append(out, d.m.filled(1, v)) }
	for _, i := range []int{cW, cB, cSum} {
		give(first(d.bound[i]))
		runtime.Gosched() // let others try to change what has not been read
		give(last(d.bound[i]))
	}
	d.running++
	give(d.running)
	return out, nil
}

func (d *double) Close() error {
	d.closed.Store(true)
	d.m.closes.Add(1)
	return nil
}

func (d *double) Constants() []backend.Constant {
	if d.m.constants != nil {
		return d.m.constants
	}
	return info()
}

func (d *double) InitialConstants(context.Context) ([]backend.Buffer, error) {
	out := make([]backend.Buffer, len(d.Constants()))
	for i, k := range d.Constants() {
		if !k.FromFolded && k.Bytes > 0 {
			out[i] = d.m.filled(k.Shape.Numel(), 1)
		}
	}
	return out, nil
}

func (d *double) PackConstant(ctx context.Context, _ int, v backend.Buffer, copy bool) (backend.Buffer, error) {
	if !copy {
		v.Retain()
		return v, nil
	}
	data, err := v.Bytes(ctx)
	if err != nil {
		return nil, err
	}
	return d.m.buffer(v.Shape(), append([]byte(nil), data...)), nil
}

func (d *double) UnpackConstant(ctx context.Context, i int, v backend.Buffer, copy bool) (backend.Buffer, error) {
	return d.PackConstant(ctx, i, v, copy)
}

func (d *double) BindConstants(values []backend.Buffer) error {
	defer d.enter()()
	d.m.binds.Add(1)
	if d.m.bind != nil {
		if err := d.m.bind(ctx, d); err != nil {
			return err
		}
	}
	d.bound = values
	if v := values[cRunning]; v != d.source {
		d.source, d.running = v, first(v)
	}
	return nil
}

func (d *double) FoldConstants(ctx context.Context) ([]backend.Buffer, error) {
	defer d.enter()()
	d.m.folds.Add(1)
	if d.m.fold != nil {
		if err := d.m.fold(ctx, d); err != nil {
			return nil, err
		}
	}
	out := make([]backend.Buffer, len(d.Constants()))
	out[cSum] = d.m.filled(wide, first(d.bound[cW])+last(d.bound[cB]))
	return out, nil
}

// seen is what a run of a double returned.
type seen struct{ w, b, sum, running float32 }

// run runs a double and checks that what it saw fits together.
func run(t testing.TB, c *container.Container) (seen, error) {
	t.Helper()
	out, err := c.Run(ctx, x, nil)
	if err != nil {
		return seen{}, err
	}
	return look(t, out), nil
}

var x = []backend.Buffer{new(ledger).filled(1, 0)}

func look(t testing.TB, out []backend.Buffer) seen {
	t.Helper()
	var v [outs]float32
	for i, o := range out {
		v[i] = first(o)
		o.Release()
	}
	if v[0] != v[1] || v[2] != v[3] || v[4] != v[5] || v[4] != v[0]+v[2] {
		t.Errorf("a torn run: %v", v)
	}
	return seen{v[0], v[2], v[4], v[6]}
}

// mustRun is run that may not fail.
func mustRun(t testing.TB, c *container.Container) seen {
	t.Helper()
	s, err := run(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// version returns values for w and b, both v.
func (m *maker) version(v float32) map[string]backend.Buffer {
	return map[string]backend.Buffer{"fc.weight": m.filled(wide, v), "fc_bias": m.filled(wide, v)}
}

func release(values map[string]backend.Buffer) {
	for _, v := range values {
		v.Release()
	}
}

// update puts version v into a set.
func (m *maker) update(c *container.Container, v float32, which container.Which, opts ...container.UpdateOption) error {
	values := m.version(v)
	defer release(values)
	return c.Update(ctx, values, which, opts...)
}

// asyncMaker makes doubles whose runs end when the test says so.
type asyncMaker struct {
	maker
	instances []*asyncDouble
}

func newAsync() *asyncMaker { return new(asyncMaker) }

// asyncDouble is a double whose work ends when end is called.
type asyncDouble struct {
	double
	mu   sync.Mutex
	done chan struct{} // closed when the work ends; nil before the first
	err  error
}

func (m *asyncMaker) pool(t testing.TB, cfg container.Config) *container.Container {
	t.Helper()
	m.t = t
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) {
		m.made.Add(1)
		d := &asyncDouble{double: double{m: &m.maker}}
		m.instances = append(m.instances, d)
		return d, nil
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (d *asyncDouble) Run(ctx context.Context, in []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	out, err := d.double.Run(ctx, in, donated)
	if err == nil {
		d.mu.Lock()
		d.done, d.err = make(chan struct{}), nil
		d.mu.Unlock()
	}
	return out, err
}

// end ends the work in flight.
func (d *asyncDouble) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	close(d.done)
}

// idle reports whether there is no work in flight.
func (d *asyncDouble) idle() bool { done, _ := d.Finished(); return done }

func (d *asyncDouble) Finished() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		return true, nil
	}
	select {
	case <-d.done:
		return true, d.err
	default:
		return false, nil
	}
}

func (d *asyncDouble) Wait(ctx context.Context) error {
	d.mu.Lock()
	done := d.done
	d.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := d.Finished()
	return err
}
