package aoti

import (
	"errors"
	"fmt"
	"io"

	"github.com/loris-ml/loris/aoti/internal/host"
	_ "github.com/loris-ml/loris/aoti/internal/vecmath" // which libraries call
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

// Inspect reports everything that a package says of its models without loading
// it: inputs, constants, instruction sets, symbols and sizes, what this host
// lacks to run them, and why it can't if so. Every file of it is read and
// checked; one that is damaged is a *FormatError.
func Inspect(path string) (r *Report, err error) {
	p, err := pt2.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	h := pt2.Host{Target: target(), Provides: host.Provides, ProvidesOp: supportsExtern}
	why := host.Available()
	if why != nil {
		h.Provides = nil // whether it has them says nothing where none can be called
	}
	if r, err = p.Inspect(h); err == nil && why != nil {
		r.Notes = append(r.Notes, why.Error())
	}
	return r, err
}

// Rewrite writes a package again, with new values for constants of one of its
// models; name is empty for the only one. Constants are found by their names in the
// model or in the program that was compiled. Without partial every constant must
// have a value but those that full updates may leave out: folded ones, buffers,
// unnamed tensors and empty ones. Everything else is copied as it is.
//
// The package must be an archive, or a bare library, of which only the library is
// written; and its weights must lie in the library, at its end, or in one file
// beside it. An unknown name, another dtype or shape, and weights that only oneDNN
// can lay out are errors.
func Rewrite(w io.Writer, path, name string, values map[string]ConstantValue, partial bool) (err error) {
	p, err := pt2.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	m, err := p.Model(name)
	if err != nil {
		return err
	}
	return m.Rewrite(w, values, partial)
}

// The errors of packages, what Inspect reports and what Rewrite takes.
type (
	// FormatError says that a package, or a member of it, is not what it should be:
	// damaged, not of this kind, or made to mislead.
	FormatError = pt2.FormatError
	// TargetError says that a model was compiled for something that this process does
	// not have: a device, a platform, a machine or CPU features.
	TargetError = pt2.TargetError
	// InputError says that an input is not what the model was compiled for: which,
	// what was expected and what came.
	InputError = pt2.InputError
	// InputSpec describes an input: its name, dtype, device, and sizes with bounds.
	InputSpec = pt2.InputSpec
	// Report is everything that a package says of its models. It marshals to JSON;
	// WriteText writes it for people.
	Report = pt2.Report
	// ModelReport is what a package says of one model.
	ModelReport = pt2.ModelReport
	// ConstantValue is a constant's new value: dense, row-major and little endian.
	ConstantValue = pt2.Value
)

// ExampleShapes returns shapes of inputs that the model accepts. sizes gives dynamic sizes
// by their names ("s0"); those that it lacks are 8 if the bounds allow it. An input whose
// shape or dtype is not known, a name that there is not, and sizes that contradict each
// other are errors.
func (r *Runner) ExampleShapes(sizes map[string]int64) ([]ir.Shape, error) {
	if known, names := len(r.spec.Inputs), r.InputNames(); known < len(names) { // no source, or not of this library
		return nil, fmt.Errorf("the package does not tell shape and dtype of input %d (%q)", known, names[known])
	}
	return r.spec.ExampleShapes(sizes)
}
