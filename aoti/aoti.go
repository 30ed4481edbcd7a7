// Package aoti runs compiled models: those that PyTorch's AOTInductor made and
// those that Loris compiles itself, in the same containers.
package aoti

import (
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// Model is one instance of a compiled model: an alias of backend.Model.
type Model = backend.Model

// Container is a pool of instances of one model and the sets of its constants:
// an alias of container.Container.
type Container = container.Container

// ErrClosed says that a container was used after Close.
var ErrClosed = container.ErrClosed
