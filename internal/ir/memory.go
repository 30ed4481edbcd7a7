package ir

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// OutOfMemory says that tensors would hold more memory than they may. On the host it is found
// before anything is allocated.
type OutOfMemory struct {
	Op     string // ATen's name of the op whose result wants the memory; empty if it is no op's
	Shape  Shape  // of the largest tensor that is wanted; zero if it is not known
	Line   string // file:line of the user's call
	Wanted int64  // bytes
	Held   int64  // bytes that tensors of the process hold
	Limit  int64  // bytes that they may hold
	// Began says that the run had computed something when it failed, so that inputs that it may
	// overwrite may be overwritten.
	Began bool
}

// Error names what wants the memory, how much it wants and how much is held.
func (e *OutOfMemory) Error() string {
	var b strings.Builder
	b.WriteString("out of memory: ")
	if e.Op != "" {
		b.WriteString(e.Op + " of ")
	}
	if e.Shape.DType().Valid() {
		b.WriteString(e.Shape.String() + " ")
	}
	if e.Line != "" {
		b.WriteString("(at " + e.Line + ") ")
	}
	fmt.Fprintf(&b, "wants %s; tensors hold %s of the %s that they may", byteSize(e.Wanted), byteSize(e.Held), byteSize(e.Limit))
	return b.String()
}

func byteSize(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
