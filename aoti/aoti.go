// Package aoti runs models that PyTorch's AOTInductor compiled. Load returns a
// Runner, which is a [container.Container]: its errors and what its methods take
// are those of package container, which also runs models that Loris compiled.
package aoti

import (
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// Model is one instance of a compiled model: an alias of backend.Model.
type Model = backend.Model

// Which says which set of constants is meant.
type Which = container.Which

// The sets: runs compute with the active one, Swap exchanges them.
const (
	Active   = container.Active
	Inactive = container.Inactive
)

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
