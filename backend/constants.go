package backend

import (
	"context"

	"github.com/loris-ml/loris/internal/ir"
)

// ConstantType says what a constant of a model is; the numbers are
// AOTInductor's (aoti_runtime/model.h).
type ConstantType uint8

const (
	// ConstantUnknown is said by libraries that do not tell.
	ConstantUnknown ConstantType = iota
	// ConstantParameter is a trained weight.
	ConstantParameter
	// ConstantBuffer is a module's buffer, such as a running mean. The model may
	// write it during a run.
	ConstantBuffer
	// ConstantTensor is a tensor that the traced code held without a name of its
	// own ("_tensor_constant0"). Full updates may leave it out.
	ConstantTensor
	// ConstantFolded is computed from others by constant folding.
	ConstantFolded
)

var constantTypes = [...]string{"unknown", "parameter", "buffer", "tensor constant", "folded"}

// String returns the type as a word.
func (t ConstantType) String() string {
	if int(t) < len(constantTypes) {
		return constantTypes[t]
	}
	return "unknown"
}

// Constant describes one constant of a model.
type Constant struct {
	// Name is the name inside the compiled model, by which updates find it.
	Name string
	// OriginalName is the name in the program that was compiled ("fc1.weight");
	// updates accept it too. It is empty for folded constants.
	OriginalName string
	// Shape is the dtype and the dimensions.
	Shape ir.Shape
	// Bytes is the size of its storage in the model.
	Bytes int64
	// FromFolded says that constant folding computes it.
	FromFolded bool
	// Type says what it is.
	Type ConstantType
}

// ConstantModel is a Model whose constants can be replaced between runs. Its
// methods are not called while the instance runs, nor two of them at once, but
// for PackConstant and UnpackConstant, which are safe for concurrent use, also
// during a run. The order of the constants never changes.
type ConstantModel interface {
	Model
	// Constants describes the constants.
	Constants() []Constant
	// InitialConstants returns the values that the model came with, in packed
	// form, each a new reference; nil for one that it does not hold (folded, or
	// kept outside the model).
	InitialConstants(ctx context.Context) ([]Buffer, error)
	// PackConstant brings a dense value of constant i to the form that
	// BindConstants takes, which depends on the model only, never on the
	// instance: another layout, or another device. It returns a new reference,
	// which is to value itself where nothing has to change and copy is false.
	PackConstant(ctx context.Context, i int, value Buffer, copy bool) (Buffer, error)
	// UnpackConstant is the inverse: the dense value, as a new reference. With
	// copy false it may share memory with packed.
	UnpackConstant(ctx context.Context, i int, packed Buffer, copy bool) (Buffer, error)
	// BindConstants makes further runs and folds compute with these values, in
	// packed form; nil for folded ones that are yet to be computed. The values
	// stay the caller's, who keeps them until the next BindConstants or Close.
	// An instance that writes a constant (a buffer that mutates) works on a copy
	// of its own; it starts again from the given value when that is another than
	// the one it was given before.
	BindConstants(values []Buffer) error
	// FoldConstants computes the folded constants from the bound values, in
	// packed form and as new references, nil for the others.
	FoldConstants(ctx context.Context) ([]Buffer, error)
}

// AsyncModel is a Model whose Run may return before the work is done.
type AsyncModel interface {
	Model
	// Finished reports, without waiting, whether the last run has finished. An
	// error is that run's.
	Finished() (bool, error)
	// Wait waits for the last run to finish and returns its error.
	Wait(ctx context.Context) error
}

// QueueModel is an AsyncModel whose runs may be started before those ahead of
// them have finished, because its device keeps them in order: outputs may be
// inputs of further runs on that device at once, constants may be bound and
// released.
type QueueModel interface {
	AsyncModel
	// Start is Run, and returns the run. The caller asks it until it has finished.
	Start(ctx context.Context, inputs []Buffer, donated []bool) ([]Buffer, Run, error)
}

// Run is work that was started. It is safe for concurrent use.
type Run interface {
	// Finished reports, without waiting, whether the work has finished. An error
	// is the work's.
	Finished() (bool, error)
	// Wait waits for the work to finish and returns its error, or ctx's if that
	// ends first.
	Wait(ctx context.Context) error
}

// BlobModel is a ConstantModel whose constants do not all lie dense in a blob.
type BlobModel interface {
	ConstantModel
	// PackBlob is PackConstant for the bytes of constant i as they lie in a blob:
	// Constant.Bytes of them, fewer at the end of one without padding. With copy
	// false the result may share memory with raw, which the caller then keeps
	// until the result is released. It is as safe for concurrent use.
	PackBlob(ctx context.Context, i int, raw []byte, copy bool) (Buffer, error)
}

// IntoModel is a Model that can write outputs into buffers that it is given.
type IntoModel interface {
	Model
	// RunInto is Run, but sets outputs, one element for each of the model's. A
	// buffer that is there is written to, and stays the caller's; nil is replaced
	// by a new reference.
	RunInto(ctx context.Context, inputs []Buffer, donated []bool, outputs []Buffer) error
}

// CallSpecModel is a Model that knows how its flat inputs and outputs were
// nested in the program that was compiled.
type CallSpecModel interface {
	Model
	// CallSpec returns the nesting of the inputs and of the outputs, as PyTorch's
	// pytree specs in JSON.
	CallSpec() (in, out string)
}
