// Package modelcall lets programs run models: the registry of those that are
// called, what they return for given inputs, and the one way in which every
// backend runs the op call_model.
package modelcall

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// entry is one registered model.
type entry struct {
	model  backend.Callable
	mu     sync.Mutex
	probed map[string][]ir.Shape // by the inputs' shapes; guarded by mu
}

// maxProbed bounds what is remembered of one model; then it is forgotten.
const maxProbed = 1024

// registry numbers the models. Programs in caches name them by their numbers,
// which are not used again.
var registry = struct {
	sync.RWMutex
	ids     map[backend.Callable]int
	entries map[int]*entry
	last    int
}{ids: map[backend.Callable]int{}, entries: map[int]*entry{}}

// closer is a model that tells when it is closed.
type closer interface{ OnClose(fn func()) }

// Register returns the number of a model, the same each time until it is
// forgotten, which one that has the method OnClose is when it is closed. It is an error
// wrapping ir.ErrArg if the model cannot be compared (it is no pointer).
func Register(m backend.Callable) (int, error) {
	if m == nil || !reflect.ValueOf(m).Comparable() {
		return 0, fmt.Errorf("%w: a %T cannot be called as a model: it must be comparable, as a pointer is", ir.ErrArg, m)
	}
	id, fresh := number(m)
	if c, ok := m.(closer); ok && fresh {
		c.OnClose(func() { Forget(m) }) // at once, if it is closed already
	}
	return id, nil
}

// number returns the number of a model, and whether it is a new one.
func number(m backend.Callable) (id int, fresh bool) {
	registry.Lock()
	defer registry.Unlock()
	if id, ok := registry.ids[m]; ok {
		return id, false
	}
	registry.last++
	registry.entries[registry.last] = &entry{model: m, probed: map[string][]ir.Shape{}}
	registry.ids[m] = registry.last
	return registry.last, true
}

// Forget drops a model: programs that call it fail with an error wrapping
// backend.ErrUnsupported. It does nothing for one that is not registered.
func Forget(m backend.Callable) {
	if m == nil || !reflect.ValueOf(m).Comparable() {
		return
	}
	registry.Lock()
	defer registry.Unlock()
	delete(registry.entries, registry.ids[m])
	delete(registry.ids, m)
}

func find(id int) (*entry, error) {
	registry.RLock()
	defer registry.RUnlock()
	e := registry.entries[id]
	if e == nil {
		return nil, fmt.Errorf("%w: model %d is not in this process, or was closed or released", backend.ErrUnsupported, id)
	}
	return e, nil
}

// Known returns an error wrapping backend.ErrUnsupported if there is no model of
// the number in this process.
func Known(id int) error {
	_, err := find(id)
	return err
}

// Outputs returns the shapes that a model returns for inputs of the given
// shapes on a device: those of its Spec where it says them all, and otherwise those
// that it returns for zeros, which it is run on once. Inputs that contradict the
// Spec are an error wrapping ir.ErrArg, ir.ErrShape or ir.ErrDType, and a model
// that runs elsewhere is a *backend.PlaceError.
func Outputs(ctx context.Context, id int, inputs []ir.Shape, d ir.Device) ([]ir.Shape, error) {
	e, err := find(id)
	if err != nil {
		return nil, err
	}
	if err := e.fits(d); err != nil {
		return nil, err
	}
	spec := e.model.Spec()
	if err := Fit(spec.Inputs, inputs); err != nil {
		return nil, err
	}
	if out, ok := fixed(spec.Outputs); ok {
		return out, nil
	}
	var key []byte
	for _, s := range inputs {
		key = s.Append(key)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if out, ok := e.probed[string(key)]; ok {
		return out, nil
	}
	out, err := e.probe(ctx, inputs, d)
	if err != nil {
		return nil, fmt.Errorf("run the model on zeros, to learn the shapes of its outputs: %w", err)
	}
	if len(e.probed) >= maxProbed {
		clear(e.probed)
	}
	e.probed[string(key)] = out
	return out, nil
}

// Fit checks shapes against what a Spec says; a parameter of no dtype may have
// any. An error wraps ir.ErrArg, ir.ErrShape or ir.ErrDType.
func Fit(params []backend.Param, shapes []ir.Shape) error {
	if len(params) != len(shapes) {
		return fmt.Errorf("%w: the model takes %d inputs, got %d", ir.ErrArg, len(params), len(shapes))
	}
	for i, p := range params {
		want, got := p.Shape, shapes[i]
		if !want.DType().Valid() || want == got {
			continue
		}
		kind := ir.ErrShape
		if want.DType() != got.DType() {
			kind = ir.ErrDType
		}
		return fmt.Errorf("%w: input %d (%s) of the model is %v, got %v", kind, i, p.Name, want, got)
	}
	return nil
}

// fixed returns the shapes of parameters if all are known.
func fixed(params []backend.Param) ([]ir.Shape, bool) {
	out := make([]ir.Shape, len(params))
	for i, p := range params {
		if out[i] = p.Shape; !p.Shape.DType().Valid() {
			return nil, false
		}
	}
	return out, true
}

// fits returns a *backend.PlaceError if the model says that it runs where tensors
// of the device are not.
func (e *entry) fits(d ir.Device) error {
	placed, ok := e.model.(backend.PlacedModel)
	if !ok || d.IsAny() {
		return nil
	}
	here := placed.Place()
	if here.IsAny() || here == d || memoryOf(here) == nil && memoryOf(d) == nil {
		return nil
	}
	return &backend.PlaceError{Model: here, Tensors: d}
}

// memoryOf returns the backend of a device that has memory of its own, nil if the
// device's tensors are in host memory.
func memoryOf(d ir.Device) backend.MemoryBackend {
	if b, err := backend.For(d); err == nil {
		m, _ := b.(backend.MemoryBackend)
		return m
	}
	return nil
}

func (e *entry) probe(ctx context.Context, inputs []ir.Shape, d ir.Device) ([]ir.Shape, error) {
	var bufs []backend.Buffer
	var err error
	if m := memoryOf(d); m != nil {
		bufs, err = e.probeOn(ctx, inputs, d, m)
	} else {
		in := make([]Tensor, len(inputs))
		for i, s := range inputs {
			in[i] = Tensor{s, make([]byte, s.Bytes())}
		}
		bufs, err = e.run(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	out := make([]ir.Shape, len(bufs))
	for i, b := range bufs {
		out[i] = b.Shape()
		b.Release()
	}
	return out, nil
}

// probeOn runs the model on zeros of a device.
func (e *entry) probeOn(ctx context.Context, inputs []ir.Shape, d ir.Device, m backend.MemoryBackend) (out []backend.Buffer, err error) {
	defer recovered(&err)
	bufs := make([]backend.Buffer, len(inputs))
	for i, s := range inputs {
		if bufs[i], err = m.Upload(ctx, s, d, make([]byte, s.Bytes())); err != nil {
			return nil, err
		}
		defer bufs[i].Release()
	}
	return e.model.Call(ctx, bufs, nil)
}

// Tensor is dense data in host memory.
type Tensor struct {
	Shape ir.Shape
	Data  []byte
}

// Run runs a model on in and copies its results to out, whose shapes they must
// have. A panic in the model is returned as an error.
func Run(ctx context.Context, id int, in, out []Tensor) error {
	e, err := find(id)
	if err != nil {
		return err
	}
	bufs, err := e.run(ctx, in)
	if err != nil {
		return err
	}
	defer func() {
		for _, b := range bufs {
			b.Release()
		}
	}()
	shapes := make([]ir.Shape, len(out))
	for i := range out {
		shapes[i] = out[i].Shape
	}
	if err := match(bufs, shapes); err != nil {
		return err
	}
	for i, b := range bufs {
		data, err := b.Bytes(ctx)
		if err != nil {
			return fmt.Errorf("output %d of the model: %w", i, err)
		}
		copy(out[i].Data, data)
		if out[i].Shape.DType() == ir.Bool {
			normalise(out[i].Data)
		}
	}
	return nil
}

// normalise makes bools 0 or 1, which kernels rely on.
func normalise(bools []byte) {
	for i, b := range bools {
		if b != 0 {
			bools[i] = 1
		}
	}
}

// run runs the model on host data, which it must not keep.
func (e *entry) run(ctx context.Context, in []Tensor) (out []backend.Buffer, err error) {
	defer recovered(&err)
	bufs := make([]backend.Buffer, len(in))
	for i, t := range in {
		b, err := hostmem.Wrap(t.Shape, ir.Device{}, t.Data, func() {})
		if err != nil {
			return nil, err
		}
		defer b.Release()
		bufs[i] = b
	}
	return e.model.Call(ctx, bufs, nil)
}

// recovered turns a panic of a model into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		cause, ok := r.(error)
		if !ok {
			cause = fmt.Errorf("%v", r)
		}
		*err = fmt.Errorf("panic in a model: %w\n%s", cause, debug.Stack())
	}
}

// Start runs a model on tensors of a device with memory of its own, and does not
// wait for the work where the model need not. The outputs have these shapes and are on the
// device. wait, if it is not nil, waits for the work and returns its error. Outputs
// that are elsewhere are a *backend.PlaceError.
func Start(ctx context.Context, id int, d ir.Device, in []backend.Buffer, want []ir.Shape) (outs []backend.Buffer, wait func(context.Context) error, err error) {
	e, err := find(id)
	if err != nil {
		return nil, nil, err
	}
	if err := e.fits(d); err != nil {
		return nil, nil, err
	}
	if outs, wait, err = e.start(ctx, in); err != nil {
		return nil, nil, err
	}
	if err := accept(outs, want, d); err != nil {
		for _, b := range outs {
			b.Release()
		}
		return nil, nil, err
	}
	return outs, wait, nil
}

func (e *entry) start(ctx context.Context, in []backend.Buffer) (outs []backend.Buffer, wait func(context.Context) error, err error) {
	defer recovered(&err)
	if a, ok := e.model.(backend.AsyncCallable); ok {
		return a.StartCall(ctx, in, nil)
	}
	outs, err = e.model.Call(ctx, in, nil)
	return outs, nil, err
}

// accept checks the outputs of a model and where they are.
func accept(outs []backend.Buffer, want []ir.Shape, d ir.Device) error {
	if err := match(outs, want); err != nil {
		return err
	}
	for i, b := range outs {
		if at := b.Device(); at != d {
			return fmt.Errorf("output %d of the model: %w", i, &backend.PlaceError{Model: at, Tensors: d})
		}
	}
	return nil
}

// match checks the outputs of a model.
func match(outs []backend.Buffer, want []ir.Shape) error {
	if len(outs) != len(want) {
		return fmt.Errorf("%w: the model returned %d outputs, not %d", ir.ErrArg, len(outs), len(want))
	}
	for i, b := range outs {
		if b.Shape() != want[i] {
			return fmt.Errorf("%w: output %d of the model is %v, expected was %v", ir.ErrShape, i, b.Shape(), want[i])
		}
	}
	return nil
}
