//go:build linux && cgo

package host

/*
#include "instance.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"slices"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// Instance is one instance of a library's model: a backend.ConstantModel. It has
// no constants at first. Instances of one library run at the same time; one
// instance is used by one goroutine at a time.
//
// What a run consists of lives in memory of C, so that a run is one call and
// makes nothing in Go.
type Instance struct {
	lib     *Library
	stream  *streamContext // nil on the CPU
	c       *C.lori_instance
	in, out []C.lori_value
	results []*tensor
	pairs   []C.lori_pair
	pin     runtime.Pinner
	room    [ir.MaxRank]int64 // for strides

	bound   []*packed  // by index of lib.all, the caller's; nil before the first bind
	private []*mutable // by index of lib.all: this instance's own
	ready   bool       // bound is complete and the library has it

	used  []accelerator.Memory // of the inputs of the run in progress
	token cgo.Handle           // of the instance, while it is open
	boxed []*Boxed             // by input of the run in progress; empty if none is

	collectives collectives // of the run in progress
}

// mutable is an instance's own copy of a constant that the library may write.
type mutable struct {
	from *packed // what it is a copy of, one reference
	t    *tensor
}

// NewInstance returns an instance. It holds the library until it is closed.
func (l *Library) NewInstance() (*Instance, error) {
	if !l.retain() {
		return nil, ErrLibraryClosed
	}
	m := &Instance{lib: l, private: make([]*mutable, len(l.all))}
	in, out, n := len(l.info.Inputs), len(l.info.Outputs), len(l.all)
	err := guarded(func() C.lori_error {
		m.c = C.lori_instance_new(l.c, C.int32_t(in), C.int32_t(out), C.int32_t(n))
		if m.c == nil {
			return C.LORI_FAIL
		}
		return C.LORI_OK
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make an instance: %w", err), l.release())
	}
	if l.deviceContext != nil {
		if m.stream, err = l.deviceContext.newStreamContext(); err != nil {
			C.lori_instance_delete(m.c)
			return nil, errors.Join(fmt.Errorf("make an instance: %w", err), l.release())
		}
		m.c.context = *m.stream.c
	}
	m.in, m.out = unsafe.Slice(m.c.in, in), unsafe.Slice(m.c.out, out)
	m.results, m.pairs = unsafe.Slice(m.c.results, out), unsafe.Slice(m.c.pair, n)
	m.token = cgo.NewHandle(m)
	m.c.context.instance = C.uintptr_t(m.token)
	return m, nil
}

// Spec returns the names of the inputs and outputs. The library does not tell
// their shapes.
func (m *Instance) Spec() backend.Spec {
	var s backend.Spec
	for _, n := range m.lib.info.Inputs {
		s.Inputs = append(s.Inputs, backend.Param{Name: n})
	}
	for _, n := range m.lib.info.Outputs {
		s.Outputs = append(s.Outputs, backend.Param{Name: n})
	}
	return s
}

// Place returns the device that the library runs on.
func (m *Instance) Place() ir.Device { return m.lib.where() }

// CallSpec returns how the inputs and outputs nest, as PyTorch's pytrees in JSON.
func (m *Instance) CallSpec() (in, out string) { return m.lib.info.InSpec, m.lib.info.OutSpec }

// Close frees the instance. Calling it again does nothing.
func (m *Instance) Close() error {
	if m.c == nil {
		return nil
	}
	var failed error
	if m.stream != nil {
		// What the library frees, its kernels too, must not be in use.
		failed = m.stream.stream.Wait(context.Background())
	}
	for i := range m.private {
		m.dropPrivate(i)
	}
	c := m.c
	m.c = nil
	err := guarded(func() C.lori_error { return C.lori_instance_delete(c) })
	m.token.Delete()
	if m.stream != nil {
		err = errors.Join(err, m.stream.close())
	}
	err = errors.Join(err, m.lib.release())
	if failed != nil {
		return nil // a device that fails all calls has told so in the run
	}
	return err
}

// Run computes the outputs from dense inputs in host memory, which must be what
// the model was compiled for. Outputs up to a few kilobytes are copied to memory
// of Go, larger ones keep the library's.
func (m *Instance) Run(ctx context.Context, inputs []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	defer m.pin.Unpin()
	if err := m.load(ctx, inputs); err != nil {
		return nil, err
	}
	if err := m.call(ctx, nil); err != nil {
		return nil, err
	}
	return m.take()
}

// RunInto is Run that copies outputs into the buffers that are given for them,
// which must have their shapes and which nobody reads meanwhile; where there is
// nil it puts a new buffer. If all are given it allocates nothing.
func (m *Instance) RunInto(ctx context.Context, inputs []backend.Buffer, _ []bool, outputs []backend.Buffer) error {
	defer m.pin.Unpin()
	if len(outputs) != len(m.out) {
		return fmt.Errorf("%w: the model has %d outputs, got buffers for %d", ir.ErrArg, len(m.out), len(outputs))
	}
	if err := m.load(ctx, inputs); err != nil {
		return err
	}
	if err := m.call(ctx, outputs); err != nil {
		return err
	}
	if !slices.Contains(outputs, nil) {
		return nil
	}
	made, err := m.take()
	for i, b := range made {
		if outputs[i] == nil {
			outputs[i] = b
		}
	}
	return err
}

// box notes which inputs are boxed. The library tells when it drops those.
func (m *Instance) box(inputs []backend.Buffer) {
	m.c.boxed = false
	m.boxed = m.boxed[:0]
	for i, b := range inputs {
		b, ok := b.(*Boxed)
		if !ok {
			continue
		}
		if len(m.boxed) == 0 {
			m.boxed = slices.Grow(m.boxed, len(inputs))[:len(inputs)]
			clear(m.boxed)
		}
		m.boxed[i] = b
		// The device may still use what the library has dropped.
		m.c.boxed = C.bool(bool(m.lib.c.tensors.own) && m.stream == nil)
	}
}

// callingInstance returns the instance whose run has called the host on this thread; nil for none.
func callingInstance() *Instance {
	t := C.lori_here_instance()
	if t == 0 {
		return nil
	}
	return cgo.Handle(t).Value().(*Instance)
}

// rowsVary reports whether rows are to be computed as if they were alone.
func rowsVary() bool {
	m := callingInstance()
	return m != nil && m.lib.rowsVary
}

//export lori_input_dropped
func lori_input_dropped(token C.uintptr_t, i C.int32_t) {
	m := cgo.Handle(token).Value().(*Instance)
	if b := m.boxed[i]; b != nil {
		b.Drop()
	}
}

// load describes the inputs to C and pins them.
func (m *Instance) load(ctx context.Context, inputs []backend.Buffer) error {
	if len(inputs) != len(m.in) {
		return fmt.Errorf("%w: the model has %d inputs, got %d", ir.ErrArg, len(m.in), len(inputs))
	}
	if !m.ready {
		return ErrNoConstants
	}
	m.box(inputs)
	m.used = m.used[:0]
	if m.stream != nil {
		m.stream.fault = nil
		m.stream.stream.Begin()
	}
	for i, b := range inputs {
		if err := m.describe(ctx, &m.in[i], b); err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		m.in[i].strided = false
		if m.lib.strides != nil {
			m.lay(&m.in[i], m.lib.strides(i, inputs, m.room[:0]))
		}
	}
	return nil
}

// lay sets the strides in which the library wants an input; none means row-major.
func (m *Instance) lay(v *C.lori_value, strides []int64) {
	v.strided = C.bool(len(strides) == int(v.ndim) && len(strides) > 0)
	for d, s := range strides {
		v.strides[d] = C.int64_t(s)
	}
}

func (m *Instance) describe(ctx context.Context, v *C.lori_value, b backend.Buffer) error {
	s := b.Shape()
	if d := b.Device(); m.lib.elsewhere(d) {
		return fmt.Errorf("%w: %w: the tensor is on %v, the model on %v", ir.ErrDevice, accelerator.ErrPlace, d, m.lib.where())
	}
	var data []byte
	if m.stream == nil {
		var err error
		if data, err = b.Bytes(ctx); err != nil {
			return err
		}
		if len(data) != s.Bytes() {
			return fmt.Errorf("%w: %v has %d bytes, the buffer %d", ir.ErrShape, s, s.Bytes(), len(data))
		}
	}
	v.dtype = C.int32_t(codes[s.DType()])
	v.ndim = C.int32_t(s.Rank())
	for d := range s.Rank() {
		v.sizes[d] = C.int64_t(s.Dim(d))
	}
	v.nbytes = C.int64_t(s.Bytes())
	if m.stream != nil {
		return m.locate(v, b)
	}
	p := unsafe.SliceData(data)
	if p != nil {
		m.pin.Pin(p)
	}
	storePointer(unsafe.Pointer(&v.data), unsafe.Pointer(p))
	return nil
}

// codes is scalartype.Code as an array.
var codes = func() (t [256]int32) {
	for _, d := range ir.DTypes() {
		t[d] = scalartype.Code(d)
	}
	return t
}()

// call runs with the inputs that were loaded. Outputs go to the given buffers, if
// any.
func (m *Instance) call(ctx context.Context, outputs []backend.Buffer) error {
	for i := range m.out {
		storePointer(unsafe.Pointer(&m.out[i].data), nil)
	}
	for i, b := range outputs {
		if b == nil {
			continue
		}
		if err := m.describe(context.Background(), &m.out[i], b); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		if m.stream != nil {
			if err := m.stream.stream.Overwrite(m.used[len(m.used)-1]); err != nil {
				return fmt.Errorf("output %d: %w", i, err)
			}
		}
		if m.stream == nil && m.out[i].data == nil {
			// Of no bytes: any address that is not NULL.
			storePointer(unsafe.Pointer(&m.out[i].data), unsafe.Pointer(m.c))
		}
	}
	if m.lib.groups != nil {
		return m.callInGroups(ctx)
	}
	code := C.lori_instance_run(m.c)
	var err error
	if m.stream != nil {
		err = m.ran(outputs)
	}
	if code != C.LORI_OK {
		return m.failure(err)
	}
	return err
}

// failure returns the text that the last call left, with what the device said.
func (m *Instance) failure(said error) error {
	text := C.GoString(&m.c.text[0])
	if m.stream != nil {
		said = errors.Join(m.stream.fault, said)
		m.stream.fault = nil
	}
	if said == nil {
		return errors.New(text)
	}
	return &deviceError{text, said}
}

// smallOutput is the size in bytes up to which an output is copied: that costs
// less than keeping track of memory of C.
const smallOutput = 16 << 10

// take returns the outputs of the last run that the caller gave no buffers for.
func (m *Instance) take() ([]backend.Buffer, error) {
	defer C.lori_instance_drop(m.c)
	out := make([]backend.Buffer, len(m.out))
	for i := range m.out {
		if m.results[i] == nil {
			continue // it was copied to where the caller wanted it
		}
		b, err := m.takeOutput(i)
		if err != nil {
			for _, b := range out {
				if b != nil {
					b.Release()
				}
			}
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		out[i] = b
	}
	return out, nil
}

func (m *Instance) takeOutput(i int) (backend.Buffer, error) {
	v := &m.out[i]
	d, err := scalartype.DType(int32(v.dtype))
	if err != nil {
		return nil, err
	}
	var dims [ir.MaxRank]int
	for k := range int(v.ndim) {
		dims[k] = int(v.sizes[k])
	}
	s, err := ir.NewShape(d, dims[:v.ndim])
	if err != nil {
		return nil, err
	}
	if h := heldOf(m.results[i]); h != nil {
		return m.takeThere(s, h, m.results[i])
	}
	data := unsafe.Slice((*byte)(v.data), int(v.nbytes))
	if len(data) <= smallOutput {
		return allocator.FromBytes(s, hostDevice(), data)
	}
	t := m.results[i]
	b, err := hostmem.Wrap(s, hostDevice(), data, func() { release(t) })
	if err == nil {
		m.results[i] = nil // the buffer's now
	}
	return b, err
}
