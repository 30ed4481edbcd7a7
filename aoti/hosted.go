package aoti

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/aoti/internal/host"
	_ "github.com/loris-ml/loris/aoti/internal/vecmath" // which libraries call
	"github.com/loris-ml/loris/backend"
	_ "github.com/loris-ml/loris/backend/cpu" // computes what libraries ask of the host
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/escape"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

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
	return escape.Text(fmt.Sprintf("aoti: model %q needs what this host does not have: %s", e.Model, strings.Join(parts, "; ")))
}

// Unwrap returns backend.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return backend.ErrUnsupported }

// hostedModel is a library opened in this process.
type hostedModel struct {
	lib     *host.Library
	private *pt2.Private
	shims   *host.BoundShims // the custom ops that it calls by a C function; may be nil
	blob    *mapping
	spec    *pt2.Spec // nil if inputs are not to be checked
	step    Step
	weights map[string]Buffer
}

// openLibrary opens a model of a package, which is closed afterwards.
func openLibrary(ctx context.Context, m *pt2.Model, o *options) (*hostedModel, error) {
	if err := host.Available(); err != nil {
		return nil, fmt.Errorf("load model %q: %w", m.Name, err)
	}
	acc, err := findAccelerator(o)
	if err != nil {
		return nil, fmt.Errorf("load model %q: %w", m.Name, err)
	}
	if err := m.CheckTarget(target()); err != nil {
		return nil, err
	}
	calls, err := supported(m, o.libtorch != "")
	if err != nil {
		return nil, err
	}
	if err := checkGroups(m, calls, o); err != nil {
		return nil, err
	}
	spec, err := m.Spec()
	if err != nil {
		return nil, err
	}
	c := &hostedModel{step: o.step}
	if !o.unchecked && m.SourceFile != "" {
		c.spec = spec
	}
	if err := c.open(ctx, m, spec, calls, acc, o); err != nil {
		return nil, errors.Join(fmt.Errorf("load model %q: %w", m.Name, err), c.close())
	}
	return c, nil
}

func (c *hostedModel) open(ctx context.Context, m *pt2.Model, spec *pt2.Spec, calls []string, acc accelerator.Device, o *options) (err error) {
	lo := host.LibraryOptions{
		Device:      acc,
		Libtorch:    o.libtorch,
		KeepNothing: o.unpackedWeights,
		CheckInputs: !o.unchecked && (o.libraryChecks || m.SourceFile == ""),
		RowsVary:    rowsVary(spec),
		Constants:   constantInfo(spec),
		Groups:      o.groups,
		Model:       fmt.Sprintf("model %q", m.Name),
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
	if !o.noWeights {
		if err := c.readWeights(ctx, m, !o.unverified); err != nil {
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
	if acc != nil {
		if lo.Files, err = kernelFiles(ctx, m); err != nil {
			return err
		}
	}
	if c.private, err = m.Private(ctx, o.tempDir, o.libtorch != "", renames...); err != nil {
		return err
	}
	c.lib, err = host.OpenLibrary(c.private.Path(), lo)
	return err
}

// rowsVary reports whether the first dimension of an input has no fixed size, as far as is known.
func rowsVary(spec *pt2.Spec) bool {
	return slices.ContainsFunc(spec.Inputs, func(in pt2.InputSpec) bool {
		return in.Known && len(in.Dims) > 0 && in.Dims[0].Min != in.Dims[0].Max
	})
}

// target is what this process can run.
func target() pt2.Target {
	t := pt2.HostTarget()
	t.Devices = append(t.Devices, accelerator.Types()...)
	return t
}

// findAccelerator returns the device to run on, nil for the CPU.
func findAccelerator(o *options) (accelerator.Device, error) {
	kind, number, numbered := strings.Cut(o.device, ":")
	index, err := 0, error(nil)
	if numbered {
		index, err = strconv.Atoi(number)
	}
	devices := accelerator.Of(kind)
	switch {
	case err != nil || index < 0 || index > math.MaxUint8:
		return nil, fmt.Errorf("%w: %q", ir.ErrDevice, o.device)
	case devices == nil && index != 0:
		return nil, fmt.Errorf("%w: %q: the only CPU is cpu:0", ir.ErrDevice, o.device)
	case devices == nil:
		return nil, nil
	case o.libtorch != "":
		return nil, fmt.Errorf("%w: a libtorch is for models on the CPU, not on %s", ir.ErrDevice, o.device)
	}
	return devices.Accelerator(index)
}

// kernelFiles reads the kernels that a model keeps in files of its package: a library
// asks for them when it first runs, after the package is closed.
func kernelFiles(ctx context.Context, m *pt2.Model) (func(string) ([]byte, error), error) {
	files := map[string][]byte{}
	for _, name := range m.Files() {
		switch path.Ext(name) {
		case ".cubin", ".ptx", ".fatbin":
		default:
			continue
		}
		s, err := m.Open(name)
		if err != nil {
			return nil, err
		}
		data, err := openSection(ctx, s, true)
		if err != nil {
			return nil, err
		}
		files[path.Base(name)] = bytes.Clone(data.data)
		if err := data.release(); err != nil {
			return nil, err
		}
	}
	return func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("the package has no %s: %w", name, fs.ErrNotExist)
	}, nil
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

// checkGroups returns an error if a model computes with other processes, and the options do not say with
// whom or are not for that.
func checkGroups(m *pt2.Model, calls []string, o *options) error {
	ops := make([]string, len(m.Externs))
	for i, x := range m.Externs {
		ops[i] = x.Target
	}
	uses := host.Collectives(calls, ops)
	kind, _, _ := strings.Cut(o.device, ":")
	switch {
	case len(uses) == 0:
		return nil
	case o.groups == nil:
		return fmt.Errorf("aoti: %w: model %q computes with other processes (%s): say with whom by aoti.Groups", ir.ErrArg, m.Name, strings.Join(uses, ", "))
	case accelerator.Of(kind) != nil:
		return fmt.Errorf("aoti: model %q: %w: collectives (%s) run on the CPU, not on %s", m.Name, backend.ErrUnsupported, strings.Join(uses, ", "), o.device)
	case max(o.instances, o.maxInstances) > 1:
		return fmt.Errorf("aoti: %w: model %q computes with other processes and cannot have %d instances: their collectives would begin in an order of chance", ir.ErrArg, m.Name, max(o.instances, o.maxInstances))
	}
	return nil
}

// constantInfo is what the source tells about the constants.
func constantInfo(spec *pt2.Spec) map[string]host.ConstantInfo {
	out := make(map[string]host.ConstantInfo, len(spec.Constants))
	for i := range spec.Constants {
		k := &spec.Constants[i]
		info := host.ConstantInfo{Shape: k.Shape, ReadOnly: k.ReadOnly || k.Type == backend.ConstantParameter}
		if len(k.Strides) == len(k.Sizes) && !rowMajor(k.Sizes, k.Strides) {
			info.Strides = k.Strides
		}
		out[k.Name] = info
	}
	return out
}

// rowMajor reports whether strides, one for each size, are those of a dense row-major
// tensor.
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

// newInstance returns an instance of the library's model.
func (c *hostedModel) newInstance(context.Context) (Model, error) {
	m, err := c.lib.NewInstance()
	if err != nil {
		return nil, err
	}
	return &hostedInstance{m, c}, nil
}

// takeWeights hands over the constants that lay in files of their own.
func (c *hostedModel) takeWeights() map[string]Buffer {
	w := c.weights
	c.weights = nil
	return w
}

// close unloads the library once nothing of it is in use.
func (c *hostedModel) close() error {
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
	errs = append(errs, c.blob.release())
	if c.shims != nil {
		c.shims.Close()
	}
	c.lib, c.private, c.blob = nil, nil, nil
	return errors.Join(errs...)
}

// hostedInstance is an instance whose inputs are checked and whose run can be
// replaced.
type hostedInstance struct {
	*host.Instance
	of *hostedModel
}

// Run checks the inputs and runs the instance.
func (m *hostedInstance) Run(ctx context.Context, inputs []Buffer, donated []bool) ([]Buffer, error) {
	if err := m.check(inputs); err != nil {
		return nil, err
	}
	if m.of.step != nil {
		return m.of.step(ctx, m.Instance, inputs, donated)
	}
	return m.Instance.Run(ctx, inputs, donated)
}

// RunInto is Run into given buffers.
func (m *hostedInstance) RunInto(ctx context.Context, inputs []Buffer, donated []bool, outputs []Buffer) error {
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

func (m *hostedInstance) check(inputs []Buffer) error {
	if m.of.spec == nil {
		return nil
	}
	return pt2.Check(m.of.spec, inputs)
}

// supportsExtern reports whether the host computes an op that libraries call by
// name.
func supportsExtern(target string) bool { return host.ProvidesOp(target) }
