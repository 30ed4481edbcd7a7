package fuse

import (
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/ir"
)

// Arg is an operand of a kernel that is being made.
type Arg struct {
	DType ir.DType
	Buf   int
	// View has the dimensions of the kernel's grid before they are merged.
	View kernels.View
	Role Role
	ID   graph.ID // of a result
	Last int      // the last pass that loads it, or the one that stores it
}

// Role says what an operand is to its kernel.
type Role uint8

const (
	Input   Role = iota // a value from outside
	Line                // one read once for each line
	Output              // a result over the group's dimensions
	Result              // a result with one element for each line
	Part                // the results of parts, one set after another
	Scratch             // one line of memory of the worker
)

// Writes reports whether the kernel stores to operands of a Role.
func (r Role) Writes() bool { return r >= Output }
