package host

import (
	"encoding/json"
	"errors"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/ir"
)

// ErrNoLibraries says that this build cannot open libraries: that needs Linux,
// glibc and cgo.
var ErrNoLibraries = errors.New("this program cannot load compiled models: that needs Linux and a build with cgo (CGO_ENABLED=1)")

// ErrLibraryClosed says that a library was used after Close.
var ErrLibraryClosed = errors.New("the library is closed")

// ErrNoConstants says that an instance has no complete set of constants to run
// with.
var ErrNoConstants = errors.New("the model has no constants: its library came without weights, so give them with Update first")

// LibraryOptions say how to open a library.
type LibraryOptions struct {
	// Libtorch is the path of a libtorch_cpu.so that provides the tensors and the
	// math instead of this host; the library is an unchanged one then. It stays
	// loaded for the life of the process.
	Libtorch string
	// CheckInputs switches on the checks of inputs that were compiled into the
	// library. With Libtorch the environment tells unchanged libraries, and so all
	// of the process that have not run yet.
	CheckInputs bool
	// Weights are the contents of the weights file of a library that keeps them
	// apart. They must not change before Close.
	Weights []byte
	// Strides returns the strides in elements that input i of a run must have, built
	// in dst; nothing for row-major ones. Nil says that all are row-major.
	Strides func(i int, inputs []backend.Buffer, dst []int64) []int64
	// RowsVary says that the first dimension of inputs has no fixed size, so that it may be a batch of
	// rows: what is computed of a row does not depend on how many there are.
	RowsVary bool
	// Constants is what a package tells about constants by their names in the
	// library.
	Constants map[string]ConstantInfo
	// KeepNothing keeps nothing beside the constants that could be computed from
	// them again: weights are packed for the dense kernels by each call.
	KeepNothing bool
	// Device is where the library runs, nil for the CPU; it must be of the type that
	// the library was compiled for.
	Device accelerator.Device
	// Files returns a file of the package by its name: kernels that the library
	// keeps apart. Nil says that there are none.
	Files func(name string) ([]byte, error)
	// Externs are the ops that the library calls by name, as the package lists
	// them, in order.
	Externs []json.RawMessage
	// Groups are the groups of processes by PyTorch's names, and Model is what errors about
	// their collectives have in the place of a line.
	Groups map[string]collective.Group
	Model  string
}

// ConstantInfo is what a package tells about a constant that its library does not.
type ConstantInfo struct {
	// Shape is used where the library does not hold the constant.
	Shape ir.Shape
	// Strides are in elements; nil says row-major.
	Strides []int64
	// ReadOnly says that the library never writes the constant, so that its
	// instances may share one copy.
	ReadOnly bool
}

// LibraryInfo is what a library says of itself.
type LibraryInfo struct {
	// Generation is the PyTorch version whose container interface it has: "2.6",
	// "2.11" or "2.15", or the nearest of them.
	Generation string
	// Symbols is how many functions of the interface it exports.
	Symbols int
	// Inputs and Outputs are the names in order.
	Inputs, Outputs []string
	// InSpec and OutSpec describe the structure of arguments and results as
	// PyTorch's pytrees, in JSON; they may be empty.
	InSpec, OutSpec string
}

// generation tells the version from the number of functions, which grew with
// each.
func generation(symbols int) string {
	switch {
	case symbols < 28:
		return "2.6"
	case symbols < 40:
		return "2.11"
	}
	return "2.15"
}
