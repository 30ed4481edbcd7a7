package aoti

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/aoti/host"
	_ "github.com/loris-ml/loris/aoti/host/vecmath" // which libraries call
	"github.com/loris-ml/loris/aoti/pt2"
	"github.com/loris-ml/loris/backend"
	_ "github.com/loris-ml/loris/backend/cpu" // computes what libraries ask of the host
	"github.com/loris-ml/loris/ir"
)

func init() { RegisterRunner("cpu", openCPU) }

// UnsupportedError says that a model calls functions or ops that this host does
// not have.
type UnsupportedError struct {
	// Model is the model's name in its package.
	Model string
	// Symbols are the functions, by the names in the library, and Ops the ops that
	// it calls by name.
	Symbols, Ops []string
}

// Error names everything that is missing.
func (e *UnsupportedError) Error() string {
	var parts []string
	if len(e.Symbols) > 0 {
		parts = append(parts, "the functions "+strings.Join(e.Symbols, ", "))
	}
	if len(e.Ops) > 0 {
		parts = append(parts, "the ops "+strings.Join(e.Ops, ", "))
	}
	return fmt.Sprintf("aoti: model %q needs what this host does not have: %s", e.Model, strings.Join(parts, "; "))
}

// Unwrap returns backend.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return backend.ErrUnsupported }

// cpuModel is a library opened in this process.
type cpuModel struct {
	lib     *host.Library
	private *pt2.Private
	shims   *host.BoundShims // the custom ops that it calls by a C function; may be nil
	blob    *mapping
	spec    *pt2.Spec // nil if inputs are not to be checked
	step    Step
	weights map[string]Buffer
}

func openCPU(ctx context.Context, m *pt2.Model, o *Options) (Opened, error) {
	if err := host.Available(); err != nil {
		return nil, fmt.Errorf("load model %q: %w", m.Name, err)
	}
	if _, index, ok := strings.Cut(o.Device, ":"); ok && index != "0" {
		return nil, fmt.Errorf("%w: %q: the only CPU is cpu:0", ir.ErrDevice, o.Device)
	}
	if err := m.CheckTarget(pt2.HostTarget()); err != nil {
		return nil, err
	}
	calls, err := supported(m, o.Libtorch != "")
	if err != nil {
		return nil, err
	}
	spec, err := m.Spec()
	if err != nil {
		return nil, err
	}
	c := &cpuModel{step: o.Step}
	if !o.Unchecked && m.SourceFile != "" {
		c.spec = spec
	}
	if err := c.open(ctx, m, spec, calls, o); err != nil {
		return nil, errors.Join(fmt.Errorf("load model %q: %w", m.Name, err), c.Close())
	}
	return c, nil
}

func (c *cpuModel) open(ctx context.Context, m *pt2.Model, spec *pt2.Spec, calls []string, o *Options) (err error) {
	lo := host.LibraryOptions{
		Libtorch:    o.Libtorch,
		KeepNothing: o.UnpackedWeights,
		CheckInputs: !o.Unchecked && (o.LibraryChecks || m.SourceFile == ""),
		Constants:   constantInfo(spec),
	}
	for _, x := range m.Externs {
		lo.Externs = append(lo.Externs, x.Node)
	}
	if slices.ContainsFunc(spec.Inputs, func(in pt2.InputSpec) bool { return in.Known && !in.RowMajor }) {
		lo.Strides = func(i int, inputs []Buffer, dst []int64) []int64 {
			if spec.Inputs[i].RowMajor {
				return nil
			}
			return pt2.Strides(spec, inputs, i, dst)
		}
	}
	if !o.NoWeights {
		if err := c.readWeights(m); err != nil {
			return err
		}
		lo.Weights = c.blob.bytes()
	}
	// What the library calls is made to find the custom ops that it calls by C
	// functions.
	if c.shims, err = host.BindShims(calls); err != nil {
		return err
	}
	var renames []pt2.Rename
	for from, to := range c.shims.Names {
		renames = append(renames, pt2.Rename{From: from, To: to, Whole: true})
	}
	if c.private, err = m.Private(ctx, o.TempDir, o.Libtorch != "", renames...); err != nil {
		return err
	}
	c.lib, err = host.OpenLibrary(c.private.Path(), lo)
	return err
}

// supported returns an *UnsupportedError if the model calls what this process,
// or with libtorch that, does not have. Otherwise it returns the functions that the
// library calls and this process has.
func supported(m *pt2.Model, libtorch bool) (calls []string, err error) {
	e := &UnsupportedError{Model: m.Name}
	for _, x := range m.Externs {
		if libtorch || !supportsExtern(x.Target) {
			e.Ops = append(e.Ops, x.Target)
		}
	}
	if m.CustomObjects {
		e.Ops = append(e.Ops, "objects of C++ classes")
	}
	lib, err := m.Library()
	if err != nil {
		return nil, err
	}
	for _, s := range lib.Undefined {
		if libtorch {
			continue
		}
		if host.Provides(s.Name) {
			calls = append(calls, s.Name)
			continue
		}
		if s.Weak {
			continue
		}
		switch s.Class() {
		case pt2.ClassHost, pt2.ClassVectorMath, pt2.ClassOpenMP, pt2.ClassLibtorch, pt2.ClassDevice, pt2.ClassOther:
			e.Symbols = append(e.Symbols, s.Name)
		}
	}
	if len(e.Symbols)+len(e.Ops) > 0 {
		return nil, e
	}
	return calls, nil
}

// constantInfo is what the source tells about the constants.
func constantInfo(spec *pt2.Spec) map[string]host.ConstantInfo {
	out := make(map[string]host.ConstantInfo, len(spec.Constants))
	for i := range spec.Constants {
		k := &spec.Constants[i]
		info := host.ConstantInfo{Shape: k.Shape, ReadOnly: k.ReadOnly || k.Type == backend.ConstantParameter}
		if !rowMajor(k.Sizes, k.Strides) {
			info.Strides = k.Strides
		}
		out[k.Name] = info
	}
	return out
}

func rowMajor(sizes, strides []int64) bool {
	dense := int64(1)
	for d := len(sizes) - 1; d >= 0; d-- {
		if sizes[d] > 1 && strides[d] != dense {
			return false
		}
		dense *= max(sizes[d], 1)
	}
	return true
}

// NewInstance returns an instance of the library's model.
func (c *cpuModel) NewInstance(context.Context) (Model, error) {
	m, err := c.lib.NewInstance()
	if err != nil {
		return nil, err
	}
	return &cpuInstance{m, c}, nil
}

// Weights hands over the constants that lay in files of their own.
func (c *cpuModel) Weights(context.Context) (map[string]Buffer, error) {
	w := c.weights
	c.weights = nil
	return w, nil
}

// Close unloads the library once nothing of it is in use.
func (c *cpuModel) Close() error {
	var errs []error
	for _, b := range c.weights {
		b.Release()
	}
	c.weights = nil
	if c.lib != nil {
		errs = append(errs, c.lib.Close())
	}
	if c.private != nil {
		errs = append(errs, c.private.Close())
	}
	errs = append(errs, c.blob.close())
	if c.shims != nil {
		c.shims.Close()
	}
	c.lib, c.private, c.blob = nil, nil, nil
	return errors.Join(errs...)
}

// cpuInstance is an instance whose inputs are checked and whose run can be
// replaced.
type cpuInstance struct {
	*host.Instance
	of *cpuModel
}

// Run checks the inputs and runs the instance.
func (m *cpuInstance) Run(ctx context.Context, inputs []Buffer, donated []bool) ([]Buffer, error) {
	if err := m.check(inputs); err != nil {
		return nil, err
	}
	if m.of.step != nil {
		return m.of.step(ctx, m.Instance, inputs, donated)
	}
	return m.Instance.Run(ctx, inputs, donated)
}

// RunInto is Run into given buffers.
func (m *cpuInstance) RunInto(ctx context.Context, inputs []Buffer, donated []bool, outputs []Buffer) error {
	if err := m.check(inputs); err != nil {
		return err
	}
	if m.of.step == nil {
		return m.Instance.RunInto(ctx, inputs, donated, outputs)
	}
	outs, err := m.of.step(ctx, m.Instance, inputs, donated)
	if err != nil {
		return err
	}
	return deliver(ctx, outs, outputs)
}

// deliver copies outs into the outputs that are given, and puts them where there
// is none, consuming outs. On an error what was nil is nil.
func deliver(ctx context.Context, outs, outputs []Buffer) (err error) {
	if len(outs) != len(outputs) {
		err = fmt.Errorf("%w: the step of a run returned %d outputs, not %d", ir.ErrArg, len(outs), len(outputs))
	}
	for i := 0; i < len(outs) && err == nil; i++ {
		if outputs[i] != nil {
			err = fill(ctx, i, outputs[i], outs[i])
		}
	}
	for i, b := range outs {
		if err == nil && outputs[i] == nil {
			outputs[i] = b
		} else if b != nil {
			b.Release()
		}
	}
	return err
}

// fill copies output i to the buffer that was given for it.
func fill(ctx context.Context, i int, to, from Buffer) error {
	if to.Shape() != from.Shape() {
		return fmt.Errorf("%w: output %d is %v, the buffer given for it is %v", ir.ErrShape, i, from.Shape(), to.Shape())
	}
	src, err := from.Bytes(ctx)
	if err != nil {
		return err
	}
	dst, err := to.Bytes(ctx)
	if err != nil {
		return err
	}
	copy(dst, src)
	return nil
}

func (m *cpuInstance) check(inputs []Buffer) error {
	if m.of.spec == nil {
		return nil
	}
	return pt2.Check(m.of.spec, inputs)
}

// supportsExtern reports whether the host computes an op that libraries call by
// name.
func supportsExtern(target string) bool { return host.ProvidesOp(target) }
