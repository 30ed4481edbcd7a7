package tensorfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/safetensors"
)

// The ways in which the tensors of a file are not those of a program.
var (
	ErrMissing    = errors.New("tensor is missing in the file")
	ErrUnexpected = errors.New("unexpected tensor in the file")
	ErrMismatch   = errors.New("shape or dtype mismatch")
)

// Place is what a program has a tensor for.
type Place struct {
	Name  string
	Shape ir.Shape
}

// Matching says how the tensors of a file differ from a program's, in the order of the program and of
// the file.
type Matching struct {
	Missing    []string // the program's names
	Unexpected []string // the file's names
	mismatches []error
}

// Match compares the tensors of a file with a program's. files has them by the program's names, which
// order lists as the file has them. fits reports whether a tensor of the file can be a place's.
func Match(files map[string]safetensors.Info, order []string, places []Place, fits func(file, own ir.Shape) bool) *Matching {
	m := new(Matching)
	known := make(map[string]bool, len(places))
	for _, p := range places {
		known[p.Name] = true
		info, ok := files[p.Name]
		if !ok {
			m.Missing = append(m.Missing, p.Name)
			continue
		}
		if s, err := Shape(info); err != nil || !fits(s, p.Shape) {
			m.mismatches = append(m.mismatches, fmt.Errorf("%q: %w: the file has %s%v, the program %v%v",
				p.Name, ErrMismatch, strings.ToLower(string(info.DType)), info.Shape, p.Shape.DType(), p.Shape.Dims()))
		}
	}
	for _, name := range order {
		if !known[name] {
			m.Unexpected = append(m.Unexpected, files[name].Name)
		}
	}
	return m
}

// Err returns an error that names all tensors whose shape or dtype does not fit, and if the file must have
// exactly the program's tensors all that are missing or unexpected; nil for none.
func (m *Matching) Err(exactly bool) error {
	errs := slices.Clip(m.mismatches)
	if exactly {
		for _, name := range m.Missing {
			errs = append(errs, fmt.Errorf("%q: %w", name, ErrMissing))
		}
		for _, name := range m.Unexpected {
			errs = append(errs, fmt.Errorf("%q: %w", name, ErrUnexpected))
		}
	}
	return errors.Join(errs...)
}
