//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
	"github.com/loris-ml/loris/internal/ir"
)

// errClosed is what Run returns after Close.
var errClosed = errors.New("the model is closed")

// model is a compiled Program on one device. It implements backend.AsyncModel: Run
// enqueues its work in a stream of its own and returns. Memory for outputs and
// workspace comes from the device's pool in the order of that stream, so that many
// cached models share it.
type model struct {
	name     string
	dev      *device
	spec     backend.Spec
	seq      *steps.Sequence
	parts    []part
	kernels  map[string]*kernel // of the parts
	products []*driver.Matmul

	constants *memory         // nil if there are none
	faultMem  *memory         // nil if no step may leave a fault
	faultHost *driver.HostMem // copies of it after runs, in maxFlights slots

	mu      sync.Mutex // held by Run: guards the rest
	stream  *driver.Stream
	bases   []driver.DevicePtr // by memory, in the present run
	mems    []*memory          // by memory, of a model with calls, in the present run
	outs    []*buffer          // of the present run
	marks   []bool             // by input: it is donated and becomes an output
	temps   []*memory          // of the present run
	work    *memory            // the workspace, if it is kept between runs
	foreign []*memory          // of the present run: what called models returned
	waits   []waiter           // of the present run: for the work of called models, and transfers
	moves   transfers          // of the present run
	last    *run               // nil before the first
	flights []*run             // those that left with a slot or a handle and are not settled, in order
	slots   []int              // of faultHost, those that no run has
	closed  bool
}

// part is what a run enqueues without asking anybody: all commands, or those up to
// the call of a model, or a transfer between ranks.
type part struct {
	commands []command
	call     *steps.Step // after the commands; nil in the last part
	transfer *steps.Step // the same
	replays  replays
}

// waiter waits for the work of a called model.
type waiter = func(context.Context) error

// Spec returns the parameters and the results, the latter named out0, out1, …
func (m *model) Spec() backend.Spec { return m.spec }

// allocate takes what the model holds between runs: constants, and where faults
// are left.
func (m *model) allocate(ctx context.Context) (err error) {
	if m.stream, err = m.dev.stream(); err != nil {
		return err
	}
	if err := m.uploadConstants(ctx); err != nil {
		return err
	}
	if m.constants != nil {
		if err := m.constants.waitReady(m.stream); err != nil {
			return err
		}
	}
	m.outs = make([]*buffer, len(m.seq.Outputs))
	m.marks = make([]bool, len(m.seq.Inputs))
	if n := steps.FaultBytes * m.seq.Faults; n > 0 {
		if m.faultMem, err = m.dev.alloc(ctx, m.stream, n); err != nil {
			return err
		}
		if m.faultHost, err = m.dev.ctx.NewHostMem(maxFlights * n); err != nil {
			return m.dev.check(err)
		}
		for i := range maxFlights {
			m.slots = append(m.slots, i)
		}
	}
	return nil
}

func (m *model) uploadConstants(ctx context.Context) (err error) {
	if len(m.seq.Constants) == 0 {
		return nil
	}
	if m.constants, err = m.dev.upload(ctx, m.seq.Constants, false); err != nil {
		return fmt.Errorf("constants: %w", err)
	}
	return nil
}

// named adds the program to an error.
func (m *model) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cuda: program %q: %w", m.name, err)
}

// Close ends the use of the model. It waits for its last run; a later Run fails.
// Calling it again does nothing.
func (m *model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	defer m.dev.leaveModel()
	m.settleAll()
	for i := range m.parts {
		m.dropReplays(&m.parts[i])
	}
	var errs []error
	for _, p := range m.products {
		errs = append(errs, p.Close())
	}
	if m.stream != nil {
		// A run that failed half way has left work that uses the kernels.
		_ = m.dev.check(m.stream.Wait(context.Background()))
	}
	m.dev.release(m.kernels)
	m.kernels = nil
	m.dropWorkspace()
	for _, held := range []*memory{m.constants, m.faultMem} {
		if held != nil {
			held.release()
		}
	}
	if m.faultHost != nil {
		if err := m.faultHost.Close(); m.dev.lostErr() == nil {
			errs = append(errs, err)
		}
	}
	if m.stream != nil {
		m.dev.putStream(m.stream)
	}
	return errors.Join(errs...)
}

// check finds inputs that do not fit.
func (m *model) check(inputs []backend.Buffer, donated []bool) error {
	if m.closed {
		return errClosed
	}
	if len(inputs) != len(m.spec.Inputs) {
		return fmt.Errorf("%w: %d inputs, want %d", ir.ErrArg, len(inputs), len(m.spec.Inputs))
	}
	if donated != nil && len(donated) != len(inputs) {
		return fmt.Errorf("%w: %d donation marks for %d inputs", ir.ErrArg, len(donated), len(inputs))
	}
	for i, in := range inputs {
		q := &m.spec.Inputs[i]
		if in.Shape() != q.Shape {
			return fmt.Errorf("%w: input %d (%s) is %v, want %v", ir.ErrShape, i, q.Name, in.Shape(), q.Shape)
		}
		if b, ok := in.(*buffer); ok && b.dev.lostErr() != nil {
			return fmt.Errorf("input %d (%s): %w", i, q.Name, b.dev.lostErr())
		}
		if b, ok := in.(*buffer); !ok || b.dev != m.dev {
			return fmt.Errorf("%w: input %d (%s) is on %v, the model on %v; copy it there first", ir.ErrDevice, i, q.Name, in.Device(), m.dev.id)
		}
	}
	return nil
}
