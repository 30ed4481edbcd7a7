//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
)

// Run enqueues the work and returns. The outputs are ready in the order of the
// device's work: who reads them waits for them. What goes wrong in the work is told
// by Finished and Wait. Concurrent calls enqueue one after another.
//
// Errors: ir.ErrArg, ir.ErrShape, ir.ErrDevice for an input that is not on the
// model's device, *OutOfMemory, a device that is lost.
func (m *model) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.launch(ctx, inputs, donated)
}

// launch enqueues a run, which is then last; mu is held.
func (m *model) launch(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.check(inputs, donated); err != nil {
		return nil, m.named(err)
	}
	slot, err := m.takeSlot(ctx)
	if err != nil {
		return nil, m.named(err)
	}
	if err = m.follow(ctx); err == nil {
		err = m.begin(ctx, inputs, donated)
	}
	if err == nil {
		err = m.enqueue(ctx, slot)
	}
	err = errors.Join(err, m.end(inputs, &run{m: m, slot: slot, broken: err != nil}))
	if err == nil {
		err = m.lead(ctx)
	}
	outs := make([]backend.Buffer, len(m.outs))
	for i, o := range m.outs {
		if o != nil && err != nil {
			o.Release()
		}
		outs[i] = o
	}
	clear(m.outs)
	if err != nil {
		return nil, m.named(err)
	}
	return outs, nil
}

// userStream returns the stream of WithStream, or nil.
func (m *model) userStream(ctx context.Context) *driver.Stream {
	if handle, ok := ctx.Value(streamKey{}).(uintptr); ok {
		return m.dev.ctx.WrapStream(handle)
	}
	return nil
}

// follow makes the run wait for what is in the caller's stream.
func (m *model) follow(ctx context.Context) error {
	s := m.userStream(ctx)
	if s == nil {
		return nil
	}
	at, err := m.dev.record(s)
	if err != nil {
		return err
	}
	defer at.release()
	return at.before(m.stream)
}

// lead makes the caller's stream wait for the run.
func (m *model) lead(ctx context.Context) error {
	if s := m.userStream(ctx); s != nil {
		return m.last.end.before(s)
	}
	return nil
}

// begin makes the stream wait for the inputs and finds memory for the rest.
func (m *model) begin(ctx context.Context, inputs []backend.Buffer, donated []bool) error {
	if m.constants != nil {
		m.place(steps.Constants, m.constants, m.constants.ptr)
	}
	if m.faultMem != nil {
		m.bases[m.faults()] = m.faultMem.ptr
	}
	for i := range inputs {
		if err := m.input(ctx, i, inputs[i].(*buffer)); err != nil {
			return err
		}
	}
	for j := range m.outs {
		if err := m.output(ctx, j, inputs, donated); err != nil {
			return err
		}
	}
	if m.seq.Workspace > 0 {
		work, err := m.workspace(ctx)
		if err != nil {
			return err
		}
		m.place(steps.Workspace, work, work.ptr)
	}
	return nil
}

// place says where a memory of the run is.
func (m *model) place(memory int, in *memory, at driver.DevicePtr) {
	m.bases[memory] = at
	if m.mems != nil {
		m.mems[memory] = in
	}
}

// temporary returns memory until the end of the run.
func (m *model) temporary(ctx context.Context, bytes int) (*memory, error) {
	t, err := m.dev.alloc(ctx, m.stream, bytes)
	if err == nil {
		m.temps = append(m.temps, t)
	}
	return t, err
}

// input finds the address of an input; one that is not aligned is copied.
func (m *model) input(ctx context.Context, i int, b *buffer) error {
	return m.read(ctx, m.seq.Input(i), b, false)
}

// read makes a buffer that the stream waits for a memory of the run; a copy of it if
// it is not aligned, or if the run must have its own.
func (m *model) read(ctx context.Context, number int, b *buffer, own bool) error {
	if err := b.waitReady(m.stream); err != nil {
		return err
	}
	at, mem := b.address(), b.mem
	if own || at%steps.Alignment != 0 {
		t, err := m.temporary(ctx, b.shape.Bytes())
		if err != nil {
			return err
		}
		if err := m.dev.check(m.stream.Copy(t.ptr, at, int64(b.shape.Bytes()))); err != nil {
			return err
		}
		at, mem = t.ptr, t
	}
	m.place(number, mem, at)
	return nil
}

// output makes an output: a new one, or a donated input.
func (m *model) output(ctx context.Context, j int, inputs []backend.Buffer, donated []bool) error {
	shape := m.seq.Outputs[j]
	if i := m.seq.Donors[j]; i >= 0 && donated != nil && donated[i] {
		if b := m.donor(inputs, i); b != nil {
			if err := b.mem.waitIdle(m.stream); err != nil {
				return err
			}
			if b.shape == shape {
				b.Retain()
				m.outs[j] = b
			} else {
				m.outs[j] = newBuffer(shape, b.mem.retain(), b.off)
			}
			m.marks[i] = true
			m.place(m.seq.Output(j), b.mem, b.address())
			return nil
		}
	}
	mem, err := m.dev.alloc(ctx, m.stream, shape.Bytes())
	if err != nil {
		return err
	}
	m.outs[j] = newBuffer(shape, mem, 0)
	m.place(m.seq.Output(j), mem, mem.ptr)
	return nil
}

// donor returns input i if its memory may be overwritten: nothing else lies there,
// and it is no other input as well.
func (m *model) donor(inputs []backend.Buffer, i int) *buffer {
	b := inputs[i].(*buffer)
	if b.mem.deleter != nil || b.mem.refs.Load() != 1 || b.address()%steps.Alignment != 0 {
		return nil
	}
	for k, o := range inputs {
		if k != i && o.(*buffer).mem == b.mem {
			return nil
		}
	}
	return b
}

// enqueue enqueues the work, and a copy of its faults.
func (m *model) enqueue(ctx context.Context, slot int) error {
	if m.faultMem != nil {
		if err := m.stream.Set(m.faultMem.ptr, 0, 4, int64(steps.FaultBytes/4*m.seq.Faults)); err != nil {
			return m.dev.check(err)
		}
	}
	for i := range m.parts {
		p := &m.parts[i]
		if err := m.start(p); err != nil {
			return m.dev.check(err)
		}
		if p.call != nil {
			if err := m.call(ctx, p.call); err != nil {
				return p.call.Located(err)
			}
		}
		if p.transfer != nil {
			if err := m.transfer(ctx, p.transfer); err != nil {
				return p.transfer.Located(m.dev.check(err))
			}
		}
	}
	if m.faultMem != nil {
		return m.dev.check(m.stream.CopyOut(m.faultsOf(slot), m.faultMem.ptr))
	}
	return nil
}

// issue enqueues the commands in a stream.
func (m *model) issue(s *driver.Stream, p *part) error {
	for i := range p.commands {
		if err := m.command(s, &p.commands[i]); err != nil {
			return err
		}
	}
	return nil
}

// at returns the address of a place.
func (m *model) at(r steps.Ref) driver.DevicePtr {
	return m.bases[r.Memory] + driver.DevicePtr(r.Offset)
}

// bind sets the addresses of a kernel.
func (m *model) bind(c *command) {
	for _, x := range c.fixes {
		c.params[x.slot] = uint64(m.bases[x.memory] + driver.DevicePtr(x.offset))
	}
}

// command enqueues a command.
func (m *model) command(s *driver.Stream, c *command) error {
	switch {
	case c.f != nil:
		m.bind(c)
		return c.f.Launch(s, c.how, c.params)
	case c.product != nil:
		args := driver.MatmulArgs{D: m.at(c.refs[0]), A: m.at(c.refs[1]), B: m.at(c.refs[2]), Alpha: c.alpha, Choice: c.product.choice, Workspace: m.at(c.work)}
		more := c.refs[3:]
		if c.scaled {
			args.ScaleA, args.ScaleB, more = m.at(more[0]), m.at(more[1]), more[2:]
		}
		if c.bias {
			args.Bias = m.at(more[0])
		}
		if c.addend {
			args.C, args.Beta = m.at(c.refs[len(c.refs)-1]), 1
		}
		return c.product.mm.Run(s, args)
	}
	to, from := m.at(c.refs[0]), m.at(c.refs[1])
	if to == from {
		return nil
	}
	return s.Copy(to, from, int64(c.copy))
}

// end notes what the work that was enqueued uses, also if not all of it was.
func (m *model) end(inputs []backend.Buffer, r *run) error {
	for _, t := range m.temps {
		t.release() // in the order of the stream
	}
	clear(m.temps)
	m.temps = m.temps[:0]
	clear(m.mems)
	err := m.moves.end(m.stream)
	end, failed := m.dev.record(m.stream)
	err = errors.Join(err, failed)
	for _, x := range m.foreign {
		if err == nil {
			x.use(end)
		}
		x.release()
	}
	clear(m.foreign)
	m.foreign = m.foreign[:0]
	if err != nil {
		m.waits = nil
		clear(m.marks)
		if r.slot >= 0 {
			m.slots = append(m.slots, r.slot)
		}
		return err
	}
	for i, in := range inputs {
		if !m.marks[i] {
			in.(*buffer).mem.use(end)
		}
	}
	clear(m.marks)
	for _, o := range m.outs {
		if o != nil {
			o.mem.markReady(end)
		}
	}
	r.end, r.waits, m.waits = end, m.waits, nil
	m.enqueued(r)
	return nil
}
