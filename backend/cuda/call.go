//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/modelcall"
)

// call has another model compute a step. Its work is enqueued in a stream of its
// own, after what is in ours; ours goes on after it. Nobody waits on the host.
func (m *model) call(ctx context.Context, s *steps.Step) error {
	if err := m.publish(s); err != nil {
		return err
	}
	in := make([]backend.Buffer, len(s.Refs))
	for i, r := range s.Refs {
		in[i] = m.lend(r, s.Call.In[i])
		defer in[i].Release()
	}
	outs, wait, err := modelcall.Start(ctx, s.Call.Model, m.dev.id, in, s.Call.Out)
	if err != nil {
		return m.dev.check(err)
	}
	if wait != nil {
		m.waits = append(m.waits, func(ctx context.Context) error {
			if err := wait(ctx); err != nil {
				return fmt.Errorf("a called model: %w", err)
			}
			return nil
		})
	}
	for k, o := range outs {
		if err == nil {
			err = m.accept(ctx, s.Call.Returns+k, o)
		}
		o.Release()
	}
	if err != nil {
		return err
	}
	// What the model reads may be written over from now on.
	return m.published(s, func(x *memory) error { return x.waitIdle(m.stream) })
}

// publish says of the memory that a call reads, and that we write, that what is in
// the stream has made the contents.
func (m *model) publish(s *steps.Step) error {
	now, err := m.dev.record(m.stream)
	if err != nil {
		return err
	}
	defer now.release()
	return m.published(s, func(x *memory) error {
		x.markReady(now)
		return nil
	})
}

// published does something with the memories that a call reads and that we write.
func (m *model) published(s *steps.Step, do func(*memory) error) error {
	for _, r := range s.Refs {
		if x := m.mems[r.Memory]; m.writes(x) {
			if err := do(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// writes reports whether the run writes in a memory: donated inputs are among them.
func (m *model) writes(mem *memory) bool {
	for i, x := range m.mems {
		if x == mem && m.seq.Writable(i) {
			return true
		}
	}
	return false
}

// lend returns a buffer over a place in a memory of the run.
func (m *model) lend(r steps.Ref, s ir.Shape) *buffer {
	mem := m.mems[r.Memory]
	return newBuffer(s, mem.retain(), int(m.at(r)-mem.ptr))
}

// accept makes what a model returned a memory of the run. It is copied if it is in
// memory that we write, and if it is not aligned.
func (m *model) accept(ctx context.Context, k int, out backend.Buffer) error {
	o, ok := out.(*buffer)
	if !ok || o.dev != m.dev {
		return fmt.Errorf("%w: a model returned a buffer of another backend for %v", ir.ErrDevice, m.dev.id)
	}
	m.foreign = append(m.foreign, o.mem.retain()) // until the end of the run
	return m.read(ctx, m.seq.Return(k), o, m.writes(o.mem))
}
