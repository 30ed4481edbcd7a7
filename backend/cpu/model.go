package cpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/parallel"
)

// errClosed is what Run returns after Close.
var errClosed = errors.New("the model is closed")

// model is a compiled Program. Between runs it holds no tensor memory: the
// workspace comes from the allocator's pool for the time of a run, so that many
// cached models share it.
type model struct {
	name    string
	mem     *hostmem.Allocator
	spec    backend.Spec
	plan    *plan.Plan[work]
	limiter *parallel.Limiter

	program  *graph.Program // for describe
	observer *atomic.Pointer[func(Step)]

	workspace ir.Shape
	limit     int64 // of the host's memory, see backend.CompileOptions
	held      int64 // bytes, see HeldBytes

	mu     sync.Mutex // held by Run: guards the rest
	table  *memory
	titles []title           // of the steps, once a trace has asked for them
	outs   []*hostmem.Buffer // of the present run
	work   []*hostmem.Buffer // what it has borrowed
	closed bool
}

func compile(b *Backend, p *graph.Program, o backend.CompileOptions) (*model, error) {
	return compileNoting(context.Background(), b, p, o, b.engine.journal(o.Threads))
}

// compileNoting is compile, which records the code and probes that it needs in j.
func compileNoting(ctx context.Context, b *Backend, p *graph.Program, o backend.CompileOptions, j *journal) (*model, error) {
	l, err := j.lowered(ctx, func() (*lowering, error) { return lower(p, b.tune, j, o, b.Supports) })
	if err != nil {
		return nil, err
	}
	if err := planned(p, l.Buffers, o.MemoryLimit); err != nil {
		return nil, err
	}
	m := &model{name: p.Name, mem: b.mem, table: l.mem, limiter: l.limiter, program: p, observer: &b.observer, limit: o.MemoryLimit}
	m.plan = plan.Make(l.steps, l.Buffers, plan.Options[work]{Alignment: lineBytes, Inputs: len(p.Params), Aliases: o.Aliases, Eager: true})
	pairTransfers(m.plan.Steps)
	m.workspace = ir.MakeShape(ir.U8, m.plan.Workspace)
	m.outs = make([]*hostmem.Buffer, len(p.Returns))
	m.table.bufs = make([][]byte, len(m.plan.Buffers))
	m.table.inputs = make([]*hostmem.Buffer, len(p.Params))
	for i := range m.plan.Buffers {
		if m.plan.Buffers[i].Kind == plan.Constant {
			m.table.bufs[i] = alignedCopy(m.plan.Buffers[i].Data)
			m.held += int64(len(m.table.bufs[i]))
		}
	}
	m.held += int64(unsafe.Sizeof(*m)) + p.HeldBytes() + m.plan.HeldBytes() + int64(len(m.plan.Steps))*runBytes +
		int64(len(m.table.bufs))*int64(unsafe.Sizeof(m.table.bufs[0]))
	if j != nil {
		for key, c := range j.codes {
			m.held += codeBytes(key, c.code)
		}
	}
	for _, q := range p.Params {
		m.spec.Inputs = append(m.spec.Inputs, backend.Param{Name: q.Name, Shape: q.Shape})
	}
	for i, id := range p.Returns {
		m.spec.Outputs = append(m.spec.Outputs, backend.Param{Name: fmt.Sprintf("out%d", i), Shape: p.Shape(id)})
	}
	return m, nil
}

// alignedCopy returns the bytes at an address that is good for all dtypes.
func alignedCopy(b []byte) []byte {
	words := make([]uint64, (len(b)+7)/8)
	out := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:len(b)]
	copy(out, b)
	return out
}

// Spec returns the parameters and the results, the latter named out0, out1, …
func (m *model) Spec() backend.Spec { return m.spec }

// runBytes is what a step's closures take, about: 400 bytes for a kernel, 700 for a product.
const runBytes = 640

// HeldBytes returns the bytes of code, constants, the plan and the Program.
func (m *model) HeldBytes() int64 { return m.held }

// Run computes the outputs. Concurrent calls run one after another.
func (m *model) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	outs, err := m.run(ctx, inputs, donated)
	if err != nil {
		return nil, fmt.Errorf("cpu: program %q: %w", m.name, err)
	}
	return outs, nil
}

func (m *model) run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if m.closed {
		return nil, errClosed
	}
	if len(inputs) != len(m.spec.Inputs) {
		return nil, fmt.Errorf("%w: %d inputs, want %d", ir.ErrArg, len(inputs), len(m.spec.Inputs))
	}
	if donated != nil && len(donated) != len(inputs) {
		return nil, fmt.Errorf("%w: %d donation marks for %d inputs", ir.ErrArg, len(donated), len(inputs))
	}
	for i, in := range inputs {
		q := &m.spec.Inputs[i]
		if in.Shape() != q.Shape {
			return nil, fmt.Errorf("%w: input %d (%s) is %v, want %v", ir.ErrShape, i, q.Name, in.Shape(), q.Shape)
		}
		data, err := backend.Contents(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("input %d (%s): %w", i, q.Name, err)
		}
		m.table.inputs[i], _ = in.(*hostmem.Buffer)
		if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%8 != 0 {
			data = alignedCopy(data)
			m.table.inputs[i] = nil
		}
		m.table.bufs[i] = data
	}
	m.table.run = m.mem.NextRun()
	outs := m.outs
	defer clear(outs)
	err := m.outputs(inputs, donated)
	if err == nil {
		err = m.borrow()
	}
	if err == nil {
		m.bind(outs)
		if err = m.compute(ctx); err != nil {
			m.drain()
			began(err)
		}
	}
	m.unbind()
	if err != nil {
		for _, o := range outs {
			if o != nil {
				o.Release()
			}
		}
		return nil, err
	}
	results := make([]backend.Buffer, len(outs))
	for i, o := range outs {
		results[i] = o
	}
	return results, nil
}

// outputs makes the output buffers: new ones, or donated inputs.
func (m *model) outputs(inputs []backend.Buffer, donated []bool) error {
	outs := m.outs
	for i := range m.plan.Storages {
		st := &m.plan.Storages[i]
		if st.Output < 0 {
			continue
		}
		shape := m.spec.Outputs[st.Output].Shape
		if st.Donor >= 0 && donated != nil && donated[st.Donor] {
			if in := donatedBuffer(inputs, st.Donor, m.table.bufs[st.Donor]); in != nil {
				in.Written()
				m.table.inputs[st.Donor] = nil
				if in.Shape() == shape {
					in.Retain()
					outs[st.Output] = in
				} else {
					outs[st.Output] = in.View(shape)
				}
				continue
			}
		}
		b, err := m.mem.NewWithin(m.limit, shape, Device)
		if err != nil {
			return m.outOfMemory(err, st)
		}
		outs[st.Output] = b
	}
	return nil
}

// donatedBuffer returns input i if its memory may be overwritten: it is the
// host's, is what the kernels see, and is no other input as well.
func donatedBuffer(inputs []backend.Buffer, i int, data []byte) *hostmem.Buffer {
	in, ok := inputs[i].(*hostmem.Buffer)
	if !ok || in.Device() != Device || len(data) == 0 || &in.Data()[0] != &data[0] {
		return nil
	}
	for k, o := range inputs {
		if k != i && o == inputs[i] {
			return nil
		}
	}
	return in
}

// borrow takes the memory of the storages that are no outputs: one buffer for
// all, or one for each where buffers are guarded, so that each ends at a guard.
func (m *model) borrow() error {
	if !m.mem.Guarded() {
		if m.plan.Workspace == 0 {
			return nil
		}
		w, err := m.mem.NewWithin(m.limit, m.workspace, Device)
		if err != nil {
			return m.outOfMemory(err, m.largestInside())
		}
		m.work = append(m.work, w)
		return nil
	}
	for i := range m.plan.Storages {
		w, err := m.mem.NewWithin(m.limit, ir.MakeShape(ir.U8, m.plan.Storages[i].Bytes), Device)
		if err != nil {
			return m.outOfMemory(err, &m.plan.Storages[i])
		}
		m.work = append(m.work, w)
	}
	return nil
}

// working returns the memory of a storage that is no output.
func (m *model) working(storage int) []byte {
	if m.mem.Guarded() {
		return m.work[storage].Data()
	}
	st := &m.plan.Storages[storage]
	return m.work[0].Data()[st.Offset : st.Offset+st.Bytes : st.Offset+st.Bytes]
}

// bind points the buffers at their storages.
func (m *model) bind(outs []*hostmem.Buffer) {
	for i := range m.plan.Buffers {
		b := &m.plan.Buffers[i]
		if b.Storage < 0 {
			continue
		}
		switch st := &m.plan.Storages[b.Storage]; {
		case st.Output >= 0:
			m.table.bufs[i] = outs[st.Output].Data()
		case st.Bytes > 0:
			m.table.bufs[i] = m.working(b.Storage)
		}
	}
}

// unbind releases the workspace and drops the references to memory that is no longer the
// model's.
func (m *model) unbind() {
	for _, w := range m.work {
		w.Release()
	}
	clear(m.work)
	m.work = m.work[:0]
	clear(m.table.inputs)
	for i := range m.plan.Buffers {
		if m.plan.Buffers[i].Kind != plan.Constant {
			m.table.bufs[i] = nil
		}
	}
}

// compute runs the steps. Between them it looks whether ctx is done; a panic of
// a kernel becomes an error that names the op and the user's line.
func (m *model) compute(ctx context.Context) (err error) {
	at := 0
	defer func() {
		if r := recover(); r != nil {
			err = runError(m.plan.Steps[at].Instr, r)
		}
	}()
	if err := m.limiter.Acquire(ctx); err != nil {
		return err
	}
	defer m.limiter.Release()
	observer, kernels := m.observer.Load(), backend.Kernels(ctx)
	for ; at < len(m.plan.Steps); at++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.limiter.Yield(ctx); err != nil {
			return err
		}
		if observer != nil {
			if err := m.observe(ctx, at, *observer); err != nil {
				return err
			}
			continue
		}
		start := time.Time{}
		if kernels != nil {
			start = time.Now()
		}
		if err := runWork(ctx, m.limiter, &m.plan.Steps[at].Payload); err != nil {
			return err
		}
		if kernels != nil {
			name, line := m.title(at)
			kernels(name, line, start, time.Since(start))
		}
	}
	return nil
}

// runWork runs a step. A step that runs another model or waits for other ranks releases the permit
// meanwhile, as that may wait for other runs, which may wait for this permit.
func runWork(ctx context.Context, limiter *parallel.Limiter, s *work) error {
	switch {
	case s.loop != nil:
		return s.loop(ctx)
	case s.begin != nil:
		return s.begin.start(ctx)
	case s.wait != nil:
		limiter.Release()
		err := s.wait.finish(ctx)
		return errors.Join(err, limiter.Acquire(ctx))
	case !s.callsModel:
		limiter.For(s.n, s.grain, s.run)
		return nil
	}
	limiter.Release()
	s.run(0, s.n)
	return limiter.Acquire(ctx)
}

// drain waits for collectives that a failed run has left under way, since they use its memory.
func (m *model) drain() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // whoever runs the others may wait for this rank for ever
	for i := range m.plan.Steps {
		if t := m.plan.Steps[i].Payload.wait; t != nil && t.pending != nil {
			_ = t.finish(ctx) // the run's own error says more
		}
	}
}

// runError turns what a kernel panicked with into an error.
func runError(in *graph.Instr, r any) error {
	if f, ok := r.(fault); ok {
		if r = f.value; f.instr != nil {
			in = f.instr
		}
	}
	switch v := r.(type) {
	case kernels.IndexError:
		return check.Located(in, fmt.Errorf("%w: %v", ir.ErrIndex, v))
	case error:
		return check.Located(in, v)
	}
	return check.Located(in, fmt.Errorf("panic: %v", r))
}

// Close ends the use of the model; a later Run fails.
func (m *model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
