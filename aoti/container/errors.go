package container

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed says that a container was used after Close.
	ErrClosed = errors.New("the container is closed")
	// ErrInstances says that a container was to have no instances, or fewer at
	// most than at first.
	ErrInstances = errors.New("a container needs at least one instance")
	// ErrConcurrent says that RunSingleThreaded met another run, or a container
	// that may have several instances.
	ErrConcurrent = errors.New("a single-threaded run is not alone")
	// ErrNoConstants says that the model's constants cannot be replaced.
	ErrNoConstants = errors.New("the model has no constants that can be replaced")
	// ErrNoInactive says that there is no inactive set of constants.
	ErrNoInactive = errors.New("there is no inactive set of constants")
	// ErrBlob says that a blob of constants does not have the right size.
	ErrBlob = errors.New("the blob does not fit the constants")
)

// What can be wrong with one constant of an update, besides its shape
// (ir.ErrShape) and dtype (ir.ErrDType). A *ConstantError wraps one of them.
var (
	ErrUnknown   = errors.New("the model has no such constant (PyTorch writes those of up to eight elements into the code as numbers, and leaves out those that are not used)")
	ErrAmbiguous = errors.New("several constants have this name")
	ErrTwice     = errors.New("the constant is given by both of its names")
	ErrMissing   = errors.New("no value is given")
	ErrFolded    = errors.New("the constant is computed by folding others")
)

// ConstantError says what is wrong with one constant.
type ConstantError struct {
	// Name is the constant's, as the caller gave it where he did.
	Name string
	// Problem is ErrUnknown, ErrMissing, an error wrapping ir.ErrShape, or whatever
	// the model returned.
	Problem error
}

// Error names the constant and the problem.
func (e *ConstantError) Error() string { return fmt.Sprintf("constant %q: %v", e.Name, e.Problem) }

// Unwrap returns the problem.
func (e *ConstantError) Unwrap() error { return e.Problem }

// What can be wrong with a version. A *VersionError wraps one of them.
var (
	ErrNoVersion     = errors.New("there is no such version")
	ErrVersionExists = errors.New("the version exists")
)

// VersionError says what is wrong with a named version of the constants.
type VersionError struct {
	Name    string
	Problem error // ErrNoVersion or ErrVersionExists
}

// Error names the version and the problem.
func (e *VersionError) Error() string { return fmt.Sprintf("version %q: %v", e.Name, e.Problem) }

// Unwrap returns the problem.
func (e *VersionError) Unwrap() error { return e.Problem }

// PanicError is a panic in a model, as an error.
type PanicError struct {
	Value any
	Stack []byte
}

// Error says what was panicked with, and where.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in a model: %v\n%s", e.Value, e.Stack)
}

// Unwrap returns the panicked value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
