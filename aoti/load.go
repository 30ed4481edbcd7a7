package aoti

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
	"github.com/loris-ml/loris/internal/pt2"
)

// Load loads a model compiled by PyTorch's AOTInductor: a ".pt2" archive, a
// folder extracted from one, or a bare shared library with its files beside it.
// Loading a package executes code that is in it.
//
// A package that is damaged is a *FormatError; one that was compiled for
// another device, machine or CPU a *TargetError; one that calls functions
// that this host does not have an *UnsupportedError.
func Load(ctx context.Context, path string, opts ...Option) (*Runner, error) {
	if err := ir.CheckContext("aoti.Load", ctx); err != nil {
		return nil, err
	}
	p, err := pt2.Open(path)
	if err != nil {
		return nil, err
	}
	return load(ctx, p, opts)
}

// LoadFrom is Load of an archive or a library of size bytes in r, which may be in
// memory. It is read only until LoadFrom returns.
func LoadFrom(ctx context.Context, r io.ReaderAt, size int64, opts ...Option) (*Runner, error) {
	if err := ir.CheckContext("aoti.LoadFrom", ctx); err != nil {
		return nil, err
	}
	p, err := pt2.OpenReader(r, size, "")
	if err != nil {
		return nil, err
	}
	return load(ctx, p, opts)
}

func load(ctx context.Context, p *pt2.Package, opts []Option) (_ *Runner, err error) {
	defer func() { err = errors.Join(err, p.Close()) }()
	o := options{instances: 1}
	for _, f := range opts {
		f(&o)
	}
	m, err := p.Model(o.model)
	if err != nil {
		return nil, err
	}
	if err := chooseDevice(p.Path, m, &o); err != nil {
		return nil, err
	}
	if o.threads > 0 {
		setThreads(o.threads)
	}
	memlimit.Default() // read once in a process, here rather than in the first run
	r := &Runner{name: m.Name, device: o.device}
	if r.spec, err = m.Spec(); err != nil {
		return nil, err
	}
	if r.opened, err = openLibrary(ctx, m, &o); err != nil {
		return nil, err
	}
	if err := r.start(ctx, &o); err != nil {
		return nil, fmt.Errorf("load model %q: %w", m.Name, errors.Join(err, r.Close()))
	}
	return r, nil
}

// start makes the pool and sets the weights that lie apart.
func (r *Runner) start(ctx context.Context, o *options) error {
	var err error
	r.Container, err = container.New(ctx, r.opened.newInstance, container.Config{Instances: o.instances, Max: o.maxInstances})
	if err != nil || o.noWeights {
		return err
	}
	weights := r.opened.takeWeights()
	defer func() {
		for _, b := range weights {
			b.Release()
		}
	}()
	if len(weights) == 0 {
		return nil
	}
	return r.Update(ctx, weights, Active, UserManaged())
}
