package aoti

import (
	"errors"

	"github.com/loris-ml/loris/aoti/internal/host"
	_ "github.com/loris-ml/loris/aoti/internal/vecmath" // which libraries call
	"github.com/loris-ml/loris/aoti/pt2"
	"github.com/loris-ml/loris/ir"
)

// Inspect reports everything that a package says of its models without loading
// it: inputs, constants, instruction sets, symbols and sizes, what this host
// lacks to run them, and why it can't if so. Every file of it is read and
// checked; one that is damaged is a *pt2.FormatError.
func Inspect(path string) (r *pt2.Report, err error) {
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

// ExampleShapes returns shapes of inputs that the model accepts, as
// [pt2.Spec.ExampleShapes]. sizes gives dynamic sizes by their names.
func (r *Runner) ExampleShapes(sizes map[string]int64) ([]ir.Shape, error) {
	return r.spec.ExampleShapes(sizes)
}
