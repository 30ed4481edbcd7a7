package ir

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// The kinds of mistakes in building a graph. An *OpError wraps one of them.
var (
	ErrShape  = errors.New("shape error")
	ErrDType  = errors.New("dtype error")
	ErrDevice = errors.New("device error")
	ErrIndex  = errors.New("index error")
	ErrArg    = errors.New("argument error")
)

// ErrLinAlg is what linear algebra fails with at run time: a singular matrix, one that is not
// positive-definite, an iteration that does not converge.
var ErrLinAlg = errors.New("linear algebra error")

// OpError says what was wrong with one use of an op. It is panicked at the
// user's line (loris.Try returns it instead).
type OpError struct {
	Op     string  // ATen's name of the op
	Shapes []Shape // of the operands
	Line   string  // file:line of the user's call
	Msg    string  // what was wrong
	Err    error   // ErrShape, ErrDType, ErrDevice, ErrIndex or ErrArg
}

// Error names the op, the operands' shapes, the reason and the user's line.
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	b.WriteByte('(')
	for i, s := range e.Shapes {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.String())
	}
	fmt.Fprintf(&b, "): %v: %s", e.Err, e.Msg)
	if e.Line != "" {
		b.WriteString(" (at " + e.Line + ")")
	}
	return b.String()
}

// Unwrap returns the kind of the mistake.
func (e *OpError) Unwrap() error { return e.Err }

// NewOpError returns an OpError at the user's line. One about dtypes says what to
// do about 8-bit floats.
func NewOpError(op string, kind error, in []Value, format string, args ...any) *OpError {
	e := &OpError{Op: op, Msg: fmt.Sprintf(format, args...), Err: kind, Line: FormatLine(UserPC())}
	narrow := false
	for _, v := range in {
		if v.Node != nil {
			e.Shapes = append(e.Shapes, v.Shape())
			narrow = narrow || v.DType().IsF8()
		}
	}
	if narrow && kind == ErrDType {
		e.Msg += "; 8-bit floats are only moved, cast and multiplied by _scaled_mm, so cast first"
	}
	return e
}

const modulePath = "github.com/loris-ml/loris"

// libraryFrame remembers which code addresses belong to the engine itself, so
// that finding the user's line costs no symbol lookups the second time.
var libraryFrame sync.Map // uintptr -> bool

// UserPC returns the code address of the innermost caller outside the engine,
// or 0. Test files count as users.
func UserPC() uintptr {
	var pcs [32]uintptr
	for skip, most := 2, 10; ; skip, most = skip+most, len(pcs) { // most callers are near
		n := runtime.Callers(skip, pcs[:most])
		for _, pc := range pcs[:n] {
			lib, ok := libraryFrame.Load(pc)
			if !ok {
				lib = isLibrary(pc)
				libraryFrame.Store(pc, lib)
			}
			if !lib.(bool) {
				return pc
			}
		}
		if n < most {
			return 0
		}
	}
}

func isLibrary(pc uintptr) bool {
	frames := runtime.CallersFrames([]uintptr{pc})
	for {
		f, more := frames.Next()
		if !strings.HasSuffix(f.File, "_test.go") && !libraryFunc(f.Function) {
			return false
		}
		if strings.HasSuffix(f.File, "_test.go") {
			return false
		}
		if !more {
			return true
		}
	}
}

func libraryFunc(name string) bool {
	if strings.HasPrefix(name, "runtime.") {
		return true
	}
	rest, ok := strings.CutPrefix(name, modulePath)
	if !ok {
		return false
	}
	if strings.HasPrefix(rest, ".") {
		return true
	}
	for _, p := range []string{"/ir", "/graph", "/executor", "/nn", "/optim", "/data", "/internal"} {
		if strings.HasPrefix(rest, p) {
			return true
		}
	}
	return false
}

// FormatLine returns "file:line" of a code address that UserPC gave; the file
// keeps its last two path elements. It returns "" for 0.
func FormatLine(pc uintptr) string {
	if pc == 0 {
		return ""
	}
	frames := runtime.CallersFrames([]uintptr{pc})
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.File, "_test.go") || !libraryFunc(f.Function) || !more {
			file := f.File
			if i := strings.LastIndexByte(file, '/'); i >= 0 {
				if j := strings.LastIndexByte(file[:i], '/'); j >= 0 {
					file = file[j+1:]
				}
			}
			return fmt.Sprintf("%s:%d", file, f.Line)
		}
	}
}
