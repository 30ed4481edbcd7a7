package loris

import (
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// DType is the element type of a tensor.
type DType = ir.DType

// The dtypes. C64 and C128 compute as pairs of F32 and F64. The 8-bit floats F8E4M3FN and
// F8E5M2 can be held, moved, saved and cast to and from the real others (F8E4M3FN has no
// infinity and ends at ±448), and ScaledMM multiplies matrices of them; no other arithmetic
// is defined on them.
const (
	Bool     = ir.Bool
	U8       = ir.U8
	I8       = ir.I8
	I16      = ir.I16
	I32      = ir.I32
	I64      = ir.I64
	F16      = ir.F16
	BF16     = ir.BF16
	F32      = ir.F32
	F64      = ir.F64
	C64      = ir.C64
	C128     = ir.C128
	F8E4M3FN = ir.F8E4M3FN
	F8E5M2   = ir.F8E5M2
)

// ParseDType returns the dtype with the given short name, such as "f32".
func ParseDType(name string) (DType, error) { return ir.ParseDType(name) }

// Shape is a dtype and up to eight dimensions. It is comparable with ==.
type Shape = ir.Shape

// MakeShape returns the shape with the given dtype and dimensions; none make a
// scalar. It panics with an error wrapping ErrShape for dimensions that no
// tensor can have.
func MakeShape(dtype DType, dims ...int) Shape { return ir.MakeShape(dtype, dims...) }

// OpError says what was wrong with one use of an op: its name, the operands'
// shapes, the user's line and the reason. It wraps ErrShape, ErrDType,
// ErrDevice, ErrIndex or ErrArg. Recording panics with it; Try returns it.
type OpError = ir.OpError

// The kinds of mistakes in building a graph, for errors.Is.
var (
	ErrShape  = ir.ErrShape
	ErrDType  = ir.ErrDType
	ErrDevice = ir.ErrDevice
	ErrIndex  = ir.ErrIndex
	ErrArg    = ir.ErrArg
)

// OutOfMemory is what a step, a read or an upload fails with that would take tensors beyond the
// limit of the host's memory (WithMemoryLimit): it names the op, the shape and the user's line,
// what was wanted and what is held. Use errors.As.
type OutOfMemory = ir.OutOfMemory

// AsyncError is an error of work that a session scheduled before and whose result the session has
// not read: its next MarkStep, Step, Sync or read that runs something returns it once. Work of
// other sessions, forks included, gets it only by taking one of the results. WaitDeviceOps
// returns those of all sessions that nobody was told. It wraps the error of that work.
type AsyncError = devicelock.AsyncError

// ErrLinAlg is what linear algebra fails with when it runs: a singular matrix, one that is
// not positive-definite, or an iteration that does not converge.
var ErrLinAlg = ir.ErrLinAlg

// What using or reading a tensor may fail with, for errors.Is.
var (
	// ErrClosed says that the session was closed.
	ErrClosed = executor.ErrClosed
	// ErrDead says that a tensor died at the end of its Session.Step.
	ErrDead = executor.ErrDead
	// ErrUncommitted says that a variable has no value yet that other sessions could see.
	ErrUncommitted = executor.ErrUncommitted
	// ErrReleased says that a Snapshot, or a tensor, was released.
	ErrReleased = executor.ErrReleased
	// ErrSession says that tensors of unrelated sessions met.
	ErrSession = executor.ErrSession
	// ErrNoExecution says that the session executes nothing (WithNoOp).
	ErrNoExecution = executor.ErrNoExecution
)
