//go:build cuda && linux && cgo

package driver

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CompileError is a source that does not compile. Line and Message are of the
// first error; Log has all.
type CompileError struct {
	Name    string // of the source
	Arch    string // it was compiled for
	Line    int    // 1 is the first; 0 where the compiler does not say
	Source  string // that line, without indentation
	Message string
	Log     string // all that the compiler said
}

// Error writes the place, the message and the line of the source.
func (e *CompileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: for %s: %s", e.Name, e.Arch, e.Message)
	}
	return fmt.Sprintf("%s:%d: for %s: %s: %s", e.Name, e.Line, e.Arch, e.Message, e.Source)
}

// Unwrap returns ErrCompile.
func (e *CompileError) Unwrap() error { return ErrCompile }

// The lines of a log that tell of an error: "name.cu(12): error: text".
var placed = regexp.MustCompile(`(?m)^(.*)\((\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (.*)$`)

// newCompileError finds the first error of a log.
func newCompileError(name, arch, src, log string) *CompileError {
	e := &CompileError{Name: name, Arch: arch, Log: log, Message: ErrCompile.Error()}
	m := placed.FindStringSubmatch(log)
	if m == nil {
		if text := strings.TrimSpace(log); text != "" {
			e.Message, _, _ = strings.Cut(text, "\n")
		}
		return e
	}
	e.Message = m[3]
	if m[1] != name { // it is in a header
		e.Message = m[1] + "(" + m[2] + "): " + m[3]
		return e
	}
	e.Line, _ = strconv.Atoi(m[2]) // digits; too many leave a number beyond the source
	if lines := strings.Split(src, "\n"); e.Line >= 1 && e.Line <= len(lines) {
		e.Source = strings.TrimSpace(lines[e.Line-1])
	}
	return e
}
