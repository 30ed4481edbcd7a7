// Package aoti runs compiled models: those that PyTorch's AOTInductor made and
// those that Loris compiles itself, in the same containers.
package aoti

import (
	"context"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// Model is one instance of a compiled model: an alias of backend.Model.
type Model = backend.Model

// Container is a pool of instances of one model and the sets of its constants:
// an alias of container.Container.
type Container = container.Container

// ContainerConfig sets the size of a container.
type ContainerConfig = container.Config

// NewContainer returns a container of the instances that open returns, as
// container.New.
func NewContainer(ctx context.Context, open func(context.Context) (Model, error), cfg ContainerConfig) (*Container, error) {
	return container.New(ctx, open, cfg)
}

// Program is one or two graph.Programs, some of whose parameters are constants;
// NewContainer takes its Compile.
type Program = container.Program

// ProgramConstant is one constant of a Program.
type ProgramConstant = container.ProgramConstant

// Pending is a run that has been started and may not be done.
type Pending = container.Pending

// Which says which set of constants is meant.
type Which = container.Which

// The sets: runs compute with the active one, Swap exchanges them.
const (
	Active   = container.Active
	Inactive = container.Inactive
)

// Version is a set of constants that was saved under a name.
type Version = container.Version

// UpdateOption changes how an update of constants works.
type UpdateOption = container.UpdateOption

// Partial lets an update leave constants out, as container.Partial.
func Partial() UpdateOption { return container.Partial() }

// UserManaged makes a set use the given buffers without a copy, as
// container.UserManaged.
func UserManaged() UpdateOption { return container.UserManaged() }

// KeepInactive makes an update of the active set leave the inactive one alone,
// as container.KeepInactive.
func KeepInactive() UpdateOption { return container.KeepInactive() }

// ConstantError says what is wrong with one constant, VersionError what is wrong
// with a saved version, and PanicError is a panic in a model.
type (
	ConstantError = container.ConstantError
	VersionError  = container.VersionError
	PanicError    = container.PanicError
)

// The errors of containers; the comments are at those of package container.
var (
	ErrClosed        = container.ErrClosed
	ErrInstances     = container.ErrInstances
	ErrConcurrent    = container.ErrConcurrent
	ErrNoConstants   = container.ErrNoConstants
	ErrNoInactive    = container.ErrNoInactive
	ErrBlob          = container.ErrBlob
	ErrUnknown       = container.ErrUnknown
	ErrAmbiguous     = container.ErrAmbiguous
	ErrTwice         = container.ErrTwice
	ErrMissing       = container.ErrMissing
	ErrFolded        = container.ErrFolded
	ErrNoVersion     = container.ErrNoVersion
	ErrVersionExists = container.ErrVersionExists
)
