// Package code keeps machine code in memory that the processor may execute, and
// calls it.
//
// Code lies in chunks of anonymous memory, many small kernels in one mapping. Each
// begins on a page of its own, which is filled while it is writable and is then
// made executable: no memory is ever writable and executable at once, and no
// page in which code may be running changes.
package code

import "errors"

// ErrUnsupported says that this platform can't run generated code: it is not
// Linux on amd64, the build has the tag noasm, or the system refuses executable
// memory.
var ErrUnsupported = errors.New("generated machine code is not supported here")
