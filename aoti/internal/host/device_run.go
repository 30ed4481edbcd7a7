//go:build linux && cgo

package host

/*
#include "device.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// computations keeps what a device has compiled for a library, by decomposition and
// layouts: those that were used last.
type computations struct {
	mu   sync.Mutex
	kept *simplelru.LRU[string, *madeReady] // guarded by mu
}

func newComputations() *computations {
	kept, err := simplelru.NewLRU(computationLimit, func(_ string, m *madeReady) {
		if m.evicted = true; m.users == 0 {
			_ = m.close() // only that the device is lost
		}
	})
	if err != nil {
		panic(err) // computationLimit is no capacity
	}
	return &computations{kept: kept}
}

// madeReady is a decomposition that was compiled, or why it cannot be.
type madeReady struct {
	err     error
	run     accelerator.Computation
	results []ir.Shape
	tables  []*held
	users   int  // guarded by computations.mu
	evicted bool // guarded by computations.mu
}

// computationLimit bounds the computations that are kept for a library.
const computationLimit = 512

func (m *madeReady) close() error {
	for _, t := range m.tables {
		t.drop()
	}
	if m.run == nil {
		return nil
	}
	return m.run.Close()
}

// get returns what was made for a key, made by build at first, until put.
func (c *computations) get(key []byte, build func() *madeReady) *madeReady {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.kept.Get(string(key)); ok {
		m.users++
		return m
	}
	c.mu.Unlock()
	m := build()
	c.mu.Lock()
	m.users++
	// Somebody else's is kept, and what may work another time is not.
	if c.kept.Contains(string(key)) || m.err != nil && !errors.Is(m.err, backend.ErrUnsupported) {
		m.evicted = true
		return m
	}
	c.kept.Add(string(key), m)
	return m
}

func (c *computations) put(m *madeReady) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.users--; m.users == 0 && m.evicted {
		_ = m.close() // only that the device is lost
	}
}

// close frees all; nobody uses them.
func (c *computations) close() error {
	var errs []error
	for _, m := range c.kept.Values() {
		m.users++ // what is purged is closed here, for its error
		errs = append(errs, m.close())
	}
	c.kept.Purge()
	return errors.Join(errs...)
}

// devicePlace is where a tensor is for a Computation.
type devicePlace struct {
	base   uintptr
	layout accelerator.Layout
}

// placed returns it. Elements that lie across their size are ErrUnsupported.
func placed(t *tensor) (devicePlace, error) {
	at, size := addressOf(t), uintptr(dtypeSize(int32(t.dtype)))
	past := at % accelerator.Alignment
	if size == 0 || past%size != 0 {
		return devicePlace{}, fmt.Errorf("%w: a tensor at %#x", backend.ErrUnsupported, at)
	}
	p := devicePlace{at - past, accelerator.Layout{Offset: int(past / size)}}
	for _, s := range stridesOf(t) {
		p.layout.Strides = append(p.layout.Strides, int(s))
	}
	return p, nil
}

func (p *devicePlace) append(key []byte) []byte {
	key = fmt.Append(key, p.layout.Offset)
	for _, s := range p.layout.Strides {
		key = fmt.Append(key, ",", s)
	}
	return append(key, ';')
}

// run enqueues a decomposition. Results go to the tensors of into, converted and
// broadcast, or, where that has none, to new ones.
func (p *streamContext) run(r *decomposition, into ...*tensor) ([]*tensor, error) {
	in, shapes, err := p.operands(r)
	if err != nil {
		return nil, err
	}
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	for i := range in {
		key = in[i].append(key)
	}
	outs := make([]devicePlace, len(into))
	want := make([]ir.Shape, len(into))
	var same []backend.Alias
	for j, t := range into {
		key = append(key, '>')
		if t == nil {
			continue
		}
		if outs[j], err = placed(t); err != nil {
			return nil, err
		}
		if want[j], err = shapeOf(t); err != nil {
			return nil, fmt.Errorf("%w: result %d: %w", backend.ErrUnsupported, j, err)
		}
		key = outs[j].append(append(want[j].Append(key), ' '))
		for i, x := range r.in {
			if shapes[i] == want[j] && in[i].base == outs[j].base && slices.Equal(stridesOf(x), stridesOf(t)) && in[i].layout.Offset == outs[j].layout.Offset {
				same = append(same, backend.Alias{Input: i, Output: j})
				key = fmt.Append(key, "=", i)
			}
		}
	}
	m := p.deviceContext.ready.get(key, func() *madeReady { return p.compile(r, in, outs, want, same) })
	defer p.deviceContext.ready.put(m)
	if m.err != nil {
		return nil, m.err
	}
	return p.enqueue(r, m, in, outs, into)
}

// operands returns where the operands are.
func (p *streamContext) operands(r *decomposition) ([]devicePlace, []ir.Shape, error) {
	in, shapes := make([]devicePlace, len(r.in)), make([]ir.Shape, len(r.in))
	for i, t := range r.in {
		if !onDevice(t) {
			return nil, nil, fmt.Errorf("%w: operand %d is on the host", backend.ErrUnsupported, i)
		}
		var err error
		if in[i], err = placed(t); err != nil {
			return nil, nil, err
		}
		if shapes[i], err = shapeOf(t); err != nil {
			return nil, nil, fmt.Errorf("%w: operand %d: %w", backend.ErrUnsupported, i, err)
		}
	}
	return in, shapes, nil
}

// compile makes a decomposition ready.
func (p *streamContext) compile(r *decomposition, in, outs []devicePlace, into []ir.Shape, same []backend.Alias) *madeReady {
	program, err := r.program(into)
	if err != nil {
		return &madeReady{err: err}
	}
	l := accelerator.Layouts{InPlace: same}
	for _, x := range in {
		l.In = append(l.In, x.layout)
	}
	for _, q := range program.Params[len(in):] {
		l.In = append(l.In, accelerator.Layout{Strides: intsOf(rowMajor(int64s(q.Shape.Dims())))})
	}
	m := &madeReady{}
	for j, id := range program.Returns {
		s := program.Shape(id)
		m.results = append(m.results, s)
		if j < len(into) && into[j].DType() != ir.Invalid {
			l.Out = append(l.Out, outs[j].layout)
			continue
		}
		l.Out = append(l.Out, accelerator.Layout{Strides: intsOf(r.stridesOf(j, s))})
	}
	ctx := context.Background()
	m.run, m.err = p.deviceContext.acc.Compile(ctx, program, l)
	for _, t := range r.tables {
		if m.err != nil {
			break
		}
		var mem accelerator.Memory
		if mem, m.err = p.deviceContext.acc.Upload(ctx, t.data()); m.err == nil {
			m.tables = append(m.tables, &held{mem, p.deviceContext})
		}
	}
	if m.err != nil {
		_ = m.close() // the first error tells more
		return &madeReady{err: m.err}
	}
	return m
}

// stridesOf returns the strides of result j in a new tensor.
func (r *decomposition) stridesOf(j int, s ir.Shape) []int64 {
	if r.strides != nil {
		if strides := r.strides(j, s); strides != nil {
			return strides
		}
	}
	return rowMajor(int64s(s.Dims()))
}

// enqueue runs what was made ready. All memory of results is new or of the
// library, in the order of the stream.
func (p *streamContext) enqueue(r *decomposition, m *madeReady, in, outs []devicePlace, into []*tensor) (made []*tensor, err error) {
	ctx := context.Background()
	var from, to []uintptr
	for i := range in {
		from = append(from, in[i].base)
	}
	for _, t := range m.tables {
		if err := p.stream.Await(t.mem); err != nil {
			return nil, err
		}
		from = append(from, t.mem.Address())
	}
	if r.draws {
		seed, err := p.stream.Alloc(ctx, 8)
		if err != nil {
			return nil, err
		}
		defer seed.Release()
		if err := p.stream.Store(seed.Address(), drawSeed()); err != nil {
			return nil, err
		}
		from = append(from, seed.Address())
	}
	defer func() {
		if err != nil {
			_ = discard(made)
			made = nil
		}
	}()
	for j, s := range m.results {
		if j < len(into) && into[j] != nil {
			to = append(to, outs[j].base)
			continue
		}
		t, err := p.empty(s, r.stridesOf(j, s))
		if err != nil {
			return made, err
		}
		made = append(made, t)
		to = append(to, addressOf(t))
	}
	if err := m.run.Run(ctx, p.stream, from, to); err != nil {
		return made, err
	}
	for _, z := range r.zeros {
		t, err := p.zeros(z)
		if err != nil {
			return made, err
		}
		made = append(made, t)
	}
	return made, nil
}

// zeros returns a new tensor of zeros.
func (p *streamContext) zeros(z zeroTensor) (*tensor, error) {
	var dims [ir.MaxRank]C.int64_t
	for i, n := range z.dims {
		dims[i] = C.int64_t(n)
	}
	t, err := p.made(func() *tensor { return C.lori_device_empty(C.int64_t(len(z.dims)), &dims[0], nil, C.int32_t(z.code)) })
	if err != nil {
		return nil, err
	}
	err = p.guarded(func() C.lori_error { return C.lori_device_zero(C.lori_tensor_data(t), t.storage.nbytes) })
	return t, err
}

// empty returns a new tensor of the device for the work of a stream context.
func (p *streamContext) empty(s ir.Shape, strides []int64) (*tensor, error) {
	dims, n := cDims(s)
	var cs [ir.MaxRank]C.int64_t
	for i, x := range strides {
		cs[i] = C.int64_t(x)
	}
	return p.made(func() *tensor { return C.lori_device_empty(n, &dims[0], &cs[0], C.int32_t(scalartype.Code(s.DType()))) })
}

func int64s(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

func intsOf(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}

// drawSeed returns a seed for one op, of the generator that SetSeed sets.
func drawSeed() uint64 {
	rng.mu.Lock()
	defer rng.mu.Unlock()
	return rng.uint64()
}

//export loriGoDeviceCopy
func loriGoDeviceCopy(token C.uintptr_t, dst, src *C.lori_tensor) C.lori_error {
	p := streamContextOf(token)
	if p == nil {
		return C.LORI_ELSEWHERE
	}
	switch err := p.copied(dst, src); {
	case errors.Is(err, backend.ErrUnsupported):
		return C.LORI_ELSEWHERE
	case err != nil:
		return failWith("copy", err)
	}
	return C.LORI_OK
}

// copied copies to a view of the device, with conversion and broadcasting.
func (p *streamContext) copied(dst, src *tensor) error {
	if !onDevice(src) {
		there, err := p.made(func() *tensor { return C.lori_device_empty(C.int64_t(src.ndim), src.sizes, src.strides, src.dtype) })
		if err != nil {
			return err
		}
		defer release(there)
		n := int64(reach(src)) * int64(dtypeSize(int32(src.dtype)))
		err = p.guarded(func() C.lori_error {
			return C.lori_device_move(C.lori_tensor_data(there), true, C.lori_tensor_data(src), false, C.int64_t(n))
		})
		if err != nil {
			return err
		}
		src = there
	}
	_, err := p.run(&decomposition{what: []byte("copy"), in: []*tensor{src}, build: unchanged}, dst)
	return err
}
