// Package code keeps machine code in memory that the processor may execute, and
// calls it.
//
// Code lies in chunks of anonymous memory, many small kernels in one mapping. Each
// begins on a page of its own, which is filled while it is writable and is then
// made executable: no memory is ever writable and executable at once, and no
// page in which code may be running changes.
//
// On arm64 instructions are fetched past what stores have reached. Hence publish writes new code back
// to where fetches look and makes all cores forget what they had fetched of it, before any other
// goroutine can know of the Func; and a core that calls it first drops what it fetched ahead, which
// nobody can make it do from outside.
package code

import "errors"

// ErrUnsupported says that this platform can't run generated code: it is not
// Linux on amd64 or arm64, the build has the tag noasm, or the system refuses executable
// memory.
var ErrUnsupported = errors.New("generated machine code is not supported here")
