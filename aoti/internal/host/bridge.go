//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// The eager bridge computes what has no kernel of its own here: ops of ir are
// recorded on the operands' shapes, compiled by the backend of the CPU, and run.
// What was compiled is kept by op, attributes and shapes.

// builder records the ops of one call on stand-ins of the operands.
type builder func(b *ir.Builder, in []ir.Value) []ir.Value

// bridgeLimit bounds the compiled programs that are kept.
const bridgeLimit = 512

// compiled is a program with its free instances.
type compiled struct {
	program *graph.Program
	backend backend.Backend

	mu   sync.Mutex
	free []backend.Model // guarded by mu
}

var bridge = newProgramCache()

// programCache keeps the programs that were used last. Of several callers that miss a key at once
// one builds the program for all.
type programCache struct {
	building singleflight.Group

	mu   sync.Mutex
	kept *simplelru.LRU[string, *compiled] // guarded by mu
}

func newProgramCache() *programCache {
	kept, err := simplelru.NewLRU(bridgeLimit, func(_ string, p *compiled) { p.closeFree() })
	if err != nil {
		panic(err) // bridgeLimit is no capacity
	}
	return &programCache{kept: kept}
}

// get returns the program of a key, made by build at first. What build fails with is not kept.
func (c *programCache) get(key []byte, build func() (*compiled, error)) (*compiled, error) {
	if p, ok := c.find(unsafe.String(unsafe.SliceData(key), len(key))); ok { // it is not kept
		return p, nil
	}
	p, err, _ := c.building.Do(string(key), func() (any, error) {
		if p, ok := c.find(string(key)); ok { // since the caller looked
			return p, nil
		}
		p, err := build()
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.kept.Add(string(key), p)
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return p.(*compiled), nil
}

func (c *programCache) find(key string) (*compiled, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.Get(key)
}

// closeFree closes the instances that nobody uses; one that is in use is closed
// by the collector's finding, as it holds Go memory only.
func (p *compiled) closeFree() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.free {
		_ = m.Close() // it computes nothing any more
	}
	p.free = nil
}

func (p *compiled) run(ctx context.Context, in []backend.Buffer) ([]backend.Buffer, error) {
	var m backend.Model
	p.mu.Lock()
	if k := len(p.free) - 1; k >= 0 {
		m, p.free = p.free[k], p.free[:k]
	}
	p.mu.Unlock()
	if m == nil {
		var err error
		if m, err = p.backend.Compile(ctx, p.program, cpuDevice(), backend.CompileOptions{}); err != nil {
			return nil, err
		}
	}
	out, err := m.Run(ctx, in, nil)
	p.mu.Lock()
	p.free = append(p.free, m)
	p.mu.Unlock()
	return out, err
}

var cpuType = ir.RegisterDeviceType("cpu")

func cpuDevice() ir.Device { return ir.Device{Type: cpuType} }

// newParams returns parameters, in0, in1, …, of some shapes.
func newParams(shapes []ir.Shape) []ir.Value {
	params := make([]graph.Param, len(shapes))
	for i, s := range shapes {
		params[i] = graph.Param{Name: fmt.Sprintf("in%d", i), Shape: s}
	}
	return graph.NewParams(params)
}

func compileOps(shapes []ir.Shape, build builder) (p *compiled, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = recovered(r)
		}
	}()
	vals := newParams(shapes)
	b := ir.NewConsing(0)
	outs := build(b, vals)
	program := graph.FromValues("eager", vals, outs)
	be, err := backendFor(program)
	if err != nil {
		return nil, err
	}
	program, _ = graph.Optimize(program, graph.Options{Supports: be.Supports})
	return &compiled{program: program, backend: be}, nil
}

// smallProgram is up to how many bytes operands and results of a program have together that is run
// by portable kernels: making machine code for it takes some ten times as long as these take to be
// made ready, and saves a few microseconds in a run. It depends on shapes alone, so that one
// program gives the same bits in every run.
const smallProgram = 4 << 10

var portable = sync.OnceValue(cpu.NewPortable)

// backendFor returns the backend that computes a program on the CPU.
func backendFor(p *graph.Program) (backend.Backend, error) {
	bytes := 0
	for _, q := range p.Params {
		bytes += q.Shape.Bytes()
	}
	for _, id := range p.Returns {
		bytes += p.Shape(id).Bytes()
	}
	if bytes <= smallProgram {
		return portable(), nil
	}
	return backend.For(cpuDevice())
}

// scratch is what a call of eager needs while it runs.
type scratch struct {
	key   []byte
	loans []loan
	bufs  []backend.Buffer
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// lend fills the scratch for operands: their memory, and the key of the program that what names.
func (c *scratch) lend(what []byte, in []*tensor) error {
	c.key = append(append(c.key[:0], what...), '|')
	c.loans = slices.Grow(c.loans[:0], len(in)) // bufs has pointers into it
	for i, t := range in {
		s, err := shapeOf(t)
		if err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
		l, err := loanOf(t, s)
		if err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
		c.loans = append(c.loans, l)
		c.bufs = append(c.bufs, &c.loans[i])
		c.key = append(s.Append(c.key), ';')
	}
	return nil
}

// end gives back what was lent, and the scratch.
func (c *scratch) end() {
	for i := range c.loans {
		c.loans[i].end()
	}
	clear(c.loans)
	clear(c.bufs)
	c.loans, c.bufs = c.loans[:0], c.bufs[:0]
	scratches.Put(c)
}

// eager computes ops on tensors. what names the op and its attributes: two calls
// with equal what and equal shapes build the same. The results are on the host, and the caller's.
func eager(what []byte, in []*tensor, build builder) ([]backend.Buffer, error) {
	c := scratches.Get().(*scratch)
	defer c.end()
	if err := c.lend(what, in); err != nil {
		return nil, err
	}
	p, err := bridge.get(c.key, func() (*compiled, error) {
		shapes := make([]ir.Shape, len(c.loans))
		for i := range c.loans {
			shapes[i] = c.loans[i].shape
		}
		return compileOps(shapes, build)
	})
	if err != nil {
		return nil, err
	}
	return p.run(context.Background(), c.bufs)
}

// loan is an operand as the input of a program for the time of one call. No program of the CPU
// keeps an input, or returns one that was not donated to it, so a loan counts no references.
type loan struct {
	shape ir.Shape
	data  []byte
	dense *tensor // a copy that is the loan's, nil where the tensor's own memory is lent
}

// loanOf lends a tensor's memory, or a dense copy of it on the host.
func loanOf(t *tensor, s ir.Shape) (loan, error) {
	l := loan{shape: s}
	n := s.Bytes()
	if n == 0 {
		return l, nil
	}
	at := C.lori_host_elements(t)
	if at == nil {
		dense, err := made(func() *tensor { return C.lori_dense(t) })
		if err != nil {
			return l, err
		}
		l.dense, at = dense, C.lori_host_elements(dense)
	}
	l.data = unsafe.Slice((*byte)(at), n)
	return l, nil
}

func (l *loan) end() {
	if l.dense != nil {
		release(l.dense)
	}
}

func (l *loan) Shape() ir.Shape                       { return l.shape }
func (l *loan) Device() ir.Device                     { return cpuDevice() }
func (l *loan) Bytes(context.Context) ([]byte, error) { return l.data, nil }
func (l *loan) Retain()                               {}
func (l *loan) Release()                              {}

// lend returns a buffer over a tensor's memory, or over a dense copy.
func lend(t *tensor, s ir.Shape) (*hostmem.Buffer, error) {
	dense, err := made(func() *tensor { return C.lori_dense(t) })
	if err != nil {
		return nil, err
	}
	b, err := hostmem.Wrap(s, cpuDevice(), tensorBytes(dense), func() { release(dense) })
	if err != nil {
		release(dense)
	}
	return b, err
}

// storeBuffer copies a result to a tensor of the library, converting its dtype.
func storeBuffer(dst *tensor, b *hostmem.Buffer) error {
	return withBuffer(b, func(src *tensor) error { return copyTensor(dst, src) })
}

// withBuffer calls fn with a handle over a buffer's memory.
func withBuffer(b *hostmem.Buffer, fn func(*tensor) error) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	src, err := borrow(b.Shape(), b.Data(), &pin)
	if err != nil {
		return err
	}
	defer release(src)
	return fn(src)
}

// newFromBuffer returns a handle to a copy of a result, row-major, or with the
// given strides.
func newFromBuffer(b *hostmem.Buffer, strides []int64) (*tensor, error) {
	t, err := newStrided(b.Shape(), strides)
	if err != nil {
		return nil, err
	}
	if at := C.lori_host_elements(t); at != nil {
		copy(unsafe.Slice((*byte)(at), len(b.Data())), b.Data())
		return t, nil
	}
	if err := storeBuffer(t, b); err != nil {
		release(t)
		return nil, err
	}
	return t, nil
}

// newStrided returns a handle to new memory; nil strides are row-major ones.
func newStrided(s ir.Shape, strides []int64) (*tensor, error) {
	if strides == nil {
		return newTensor(s)
	}
	dims, n := cDims(s)
	var cs [ir.MaxRank]C.int64_t
	for i, x := range strides {
		cs[i] = C.int64_t(x)
	}
	return made(func() *tensor {
		return C.lori_tensor_empty(n, &dims[0], &cs[0], C.int32_t(scalartype.Code(s.DType())))
	})
}

// eagerInto is eager with one result, which goes to a tensor of the library.
func eagerInto(out *tensor, what []byte, in []*tensor, build builder) error {
	res, err := eager(what, in, build)
	if err != nil {
		return err
	}
	defer res[0].Release()
	return storeBuffer(out, res[0].(*hostmem.Buffer))
}
