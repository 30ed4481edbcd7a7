package aoti

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/aoti/internal/host"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

// Runner is a loaded model. Its methods are safe for concurrent use; as many
// runs go on at once as there are instances, and others wait in turn. The
// methods that replace, fold, extract and swap constants, with saved versions,
// are those of the Container.
type Runner struct {
	*container.Container

	name, device string
	opened       *hostedModel
	spec         *pt2.Spec
	closing      sync.Once
}

var _ backend.Callable = (*Runner)(nil)

// Name returns the model's name in its package.
func (r *Runner) Name() string { return r.name }

// Device returns the device that it runs on, such as "cpu".
func (r *Runner) Device() string { return r.device }

// Inputs describes the inputs as far as the package tells: their dtypes, and
// sizes with bounds. It is empty for a library without source.
func (r *Runner) Inputs() []InputSpec { return slices.Clone(r.spec.Inputs) }

// Run computes the outputs, each a new reference. The inputs, in the order of
// InputNames, stay the caller's. One that is not what the model was compiled for
// is an *InputError. It waits for an instance as long as ctx allows; what has
// begun to run is not interrupted.
func (r *Runner) Run(ctx context.Context, inputs ...Buffer) ([]Buffer, error) {
	return r.Container.Run(ctx, inputs, nil)
}

// RunInto is Run that writes the outputs into given buffers, which must have
// their shapes and which nobody reads meanwhile. It allocates nothing. A nil in
// outputs is replaced by a new buffer.
func (r *Runner) RunInto(ctx context.Context, inputs, outputs []Buffer) error {
	return r.Container.RunInto(ctx, inputs, nil, outputs)
}

// BoxedRun is Run that takes over the references to the inputs, and sets the
// elements of inputs to nil. Each is dropped as soon as the model does not need
// it, which may be before the run is over, and at its end at the latest, also if
// it fails.
func (r *Runner) BoxedRun(ctx context.Context, inputs []Buffer) ([]Buffer, error) {
	boxed := make([]Buffer, len(inputs))
	for i, b := range inputs {
		if b != nil {
			box := &host.Boxed{Buffer: b}
			defer box.Drop()
			boxed[i] = box
		}
		inputs[i] = nil
	}
	return r.Container.Run(ctx, boxed, nil)
}

// RunNamed is Run with inputs and outputs by name. Unknown and missing names are
// errors wrapping ir.ErrArg.
func (r *Runner) RunNamed(ctx context.Context, inputs map[string]Buffer) (map[string]Buffer, error) {
	if err := ir.CheckContext("aoti.RunNamed", ctx); err != nil {
		return nil, err
	}
	in, err := r.order(inputs)
	if err != nil {
		return nil, err
	}
	outs, err := r.Run(ctx, in...)
	if err != nil {
		return nil, err
	}
	named := make(map[string]Buffer, len(outs))
	for i, name := range r.OutputNames() {
		named[name] = outs[i]
	}
	return named, nil
}

func (r *Runner) order(inputs map[string]Buffer) ([]Buffer, error) {
	var errs []error
	names := r.InputNames()
	in := make([]Buffer, len(names))
	for i, name := range names {
		if in[i] = inputs[name]; in[i] == nil {
			errs = append(errs, fmt.Errorf("%w: input %q is not given", ir.ErrArg, name))
		}
	}
	for name := range inputs {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("%w: there is no input %q; the inputs are %q", ir.ErrArg, name, names))
		}
	}
	return in, errors.Join(errs...)
}

// Close refuses further calls, waits for runs in flight, and unloads the model.
// Outputs that were returned stay valid. Calling it again does nothing but wait
// for the first call.
func (r *Runner) Close() (err error) {
	// Once, because a second caller must not unload what the first one's runs use.
	r.closing.Do(func() {
		if r.Container != nil {
			err = r.Container.Close()
		}
		err = errors.Join(err, r.opened.close())
	})
	return err
}
