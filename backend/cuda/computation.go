//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"
	"sync"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// computation is a Program that runs in the streams of others, on memory of
// theirs. It implements accelerator.Computation.
type computation struct {
	m         *model // of which it has the commands, products and constants
	in, out   []int  // bytes of the memories
	mu        sync.Mutex
	streams   map[*driver.Stream]struct{} // guarded by mu: those that it ran in
	temporary []*memory                   // guarded by mu: of the present run
	returns   []copyBack                  // guarded by mu: of the present run
	closed    bool                        // guarded by mu
}

// copyBack is a result that was computed elsewhere, because its own memory is that
// of an operand, too.
type copyBack struct {
	to, from driver.DevicePtr
	bytes    int
}

// Compile makes a Program ready whose operands and results lie as the layouts say.
func (a aotiDevice) Compile(ctx context.Context, p *graph.Program, l accelerator.Layouts) (accelerator.Computation, error) {
	p, _ = graph.Optimize(p, graph.Options{Supports: steps.Supports})
	o := steps.Options{Aliases: l.InPlace}
	for i, q := range p.Params {
		o.Inputs = append(o.Inputs, viewOf(q.Shape, l.In[i]))
	}
	for j, id := range p.Returns {
		o.Outputs = append(o.Outputs, viewOf(p.Shape(id), l.Out[j]))
	}
	c := &computation{m: &model{name: p.Name, dev: a.d}, streams: map[*driver.Stream]struct{}{}}
	// Nothing is timed: a run that comes here would wait for it.
	_, err := c.m.lower(ctx, p, o, a.d.newTuner(true, nil), nil, nil)
	if err == nil {
		err = c.m.uploadConstants(ctx)
	}
	if err != nil {
		_ = c.m.Close() // of what was made so far; the first error tells more
		return nil, fmt.Errorf("%v: %w", a.d.id, err)
	}
	for i := range o.Inputs {
		c.in = append(c.in, plan.Extent(p.Params[i].Shape, &o.Inputs[i]))
	}
	for j, id := range p.Returns {
		c.out = append(c.out, plan.Extent(p.Shape(id), &o.Outputs[j]))
	}
	return c, nil
}

func viewOf(s ir.Shape, l accelerator.Layout) strided.View {
	v := strided.View{Rank: s.Rank(), Offset: l.Offset}
	for i := range v.Rank {
		v.Dims[i], v.Strides[i] = s.Dim(i), l.Strides[i]
	}
	return v
}

// Run enqueues the work.
func (c *computation) Run(ctx context.Context, s accelerator.Stream, ins, outs []uintptr) (err error) {
	h := s.(*hostStream)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.m.named(errClosed)
	}
	if h.d != c.m.dev || len(ins) != len(c.in) || len(outs) != len(c.out) {
		return c.m.named(fmt.Errorf("%w: %d operands and %d results on %v", ir.ErrArg, len(ins), len(outs), h.d.id))
	}
	if err := h.d.lostErr(); err != nil {
		return err
	}
	c.streams[h.s] = struct{}{}
	defer c.end()
	if err := c.place(ctx, h, ins, outs); err != nil {
		return c.m.named(err)
	}
	if err := c.m.issue(h.s, &c.m.parts[0]); err != nil {
		return c.m.named(h.d.check(err))
	}
	for _, r := range c.returns {
		if err := h.s.Copy(r.to, r.from, int64(r.bytes)); err != nil {
			return c.m.named(h.d.check(err))
		}
	}
	return nil
}

// place finds the addresses of a run; mu is held.
func (c *computation) place(ctx context.Context, h *hostStream, ins, outs []uintptr) error {
	m := c.m
	if m.constants != nil {
		if err := m.constants.waitReady(h.s); err != nil {
			return err
		}
		m.bases[steps.Constants] = m.constants.ptr
	}
	for i, at := range ins {
		m.bases[m.seq.Input(i)] = driver.DevicePtr(at)
	}
	for j := range outs {
		if err := c.result(ctx, h, j, ins, outs); err != nil {
			return err
		}
	}
	if m.seq.Workspace > 0 {
		work, err := c.temp(ctx, h, m.seq.Workspace)
		if err != nil {
			return err
		}
		m.bases[steps.Workspace] = work.ptr
	}
	if m.seq.Faults > 0 {
		at, err := h.faults.reserve(ctx, h, m.seq)
		if err != nil {
			return err
		}
		m.bases[m.faults()] = at
	}
	return nil
}

// result finds the address of result j: its own, unless an operand that is needed
// longer lies there, too.
func (c *computation) result(ctx context.Context, h *hostStream, j int, ins, outs []uintptr) error {
	m := c.m
	at, n := outs[j], uintptr(c.out[j])
	m.bases[m.seq.Output(j)] = driver.DevicePtr(at)
	meets := func(start, bytes uintptr) bool { return at < start+bytes && start < at+n }
	apart := true
	for i, in := range ins {
		if meets(in, uintptr(c.in[i])) && (m.seq.Donors[j] != i || in != at) {
			apart = false
		}
	}
	for k, out := range outs {
		apart = apart && (k == j || !meets(out, uintptr(c.out[k])))
	}
	if apart {
		return nil
	}
	t, err := c.temp(ctx, h, int(n))
	if err != nil {
		return err
	}
	m.bases[m.seq.Output(j)] = t.ptr
	c.returns = append(c.returns, copyBack{driver.DevicePtr(at), t.ptr, int(n)})
	// What lies between the elements goes there and back.
	return h.d.check(h.s.Copy(t.ptr, driver.DevicePtr(at), int64(n)))
}

// temp returns memory until the end of the run.
func (c *computation) temp(ctx context.Context, h *hostStream, bytes int) (*memory, error) {
	t, err := h.d.alloc(ctx, h.s, bytes)
	if err == nil {
		c.temporary = append(c.temporary, t)
	}
	return t, err
}

// end gives back what the run took, in the order of the stream; mu is held.
func (c *computation) end() {
	for _, t := range c.temporary {
		t.release()
	}
	clear(c.temporary)
	c.temporary, c.returns = c.temporary[:0], c.returns[:0]
}

// Close frees the computation, after its runs.
func (c *computation) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if k := c.m.constants; k != nil {
		for s := range c.streams {
			if now, err := c.m.dev.record(s); err == nil { // fails only for a device that is lost
				k.use(now)
				now.release()
			}
		}
	}
	return c.m.Close()
}
