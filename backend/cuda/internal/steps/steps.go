// Package steps turns a Program into a sequence of steps for a CUDA device: launches
// of kernels that package emit writes, matrix products, copies. Their memory is
// planned by package backend/internal/plan. The package is plain Go; the caller runs
// the steps.
//
// Pointwise ops, reductions and the ops on their results wait in the groups of package
// fuse, each of which becomes one loop. All other ops have lowerings of their own.
//
// Values are strided views of buffers, so that reshape, permute, expand, slice and
// flip move nothing where a view can say what they mean.
package steps

import (
	"encoding/binary"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// Alignment is what the addresses of all memories of a run must be multiples of.
// Everything that a Sequence places in one begins at a multiple, too.
const Alignment = 256

// The memories of a run are numbered: these two, the inputs, the outputs, and what
// called models return.
const (
	// Workspace is memory of Sequence.Workspace bytes, with anything in it.
	Workspace = iota
	// Constants is memory that holds Sequence.Constants and is not written.
	Constants
	firstInput
)

// Sequence is a compiled Program.
type Sequence struct {
	Inputs, Outputs []ir.Shape
	Steps           []Step
	// Workspace is the number of bytes that the steps share.
	Workspace int
	// Constants is the contents of the memory Constants.
	Constants []byte
	// Donors has, by output, the input whose memory it may take if that is donated,
	// or -1.
	Donors []int
	// Faults is the number of steps that may find a fault when they run.
	Faults int
	// Returned is the number of memories that called models return.
	Returned int
}

// Input returns the number of the memory of an input.
func (s *Sequence) Input(i int) int { return firstInput + i }

// Output returns the number of the memory of an output.
func (s *Sequence) Output(i int) int { return firstInput + len(s.Inputs) + i }

// Return returns the number of the k-th memory that called models return.
func (s *Sequence) Return(k int) int { return s.Output(len(s.Outputs)) + k }

// Memories returns how many memories there are.
func (s *Sequence) Memories() int { return s.Return(s.Returned) }

// Writable reports whether steps may write in a memory.
func (s *Sequence) Writable(memory int) bool {
	return memory == Workspace || memory >= s.Output(0) && memory < s.Return(0)
}

// Ref is a place in a memory.
type Ref struct {
	Memory, Offset int // the offset is in bytes
}

// Step is one of Kernels, Product, Copy, Call, Begin and Wait.
type Step struct {
	// Instr is the instruction that it is for, the first of several; nil for the copy
	// of an operand or a result.
	Instr *graph.Instr
	// Refs are the operands, the results first.
	Refs []Ref
	// Kernels are launches on the operands. Their workspace is at Work.
	Kernels *emit.Plan
	Work    Ref
	// Product is a product on result, left and right operand, the two scales, bias and
	// addend (as far as it has them), with Product.WorkspaceSize bytes at Work.
	Product *Product
	// Copy is the number of bytes to copy from operand 1 to operand 0. There is
	// nothing to do if they are at the same place.
	Copy int
	// Call is a call of a model. Its results are the memories from Returns on, its
	// operands the Refs.
	Call *Call
	// Begin begins a collective on result and operand, Wait makes what follows wait for it.
	Begin, Wait *Transfer
	// Fault is the number of the FaultBytes in which the kernels leave a fault (see
	// emit.Fault), or -1.
	Fault int

	size      int                         // of the dimension that is indexed
	divisions map[loop.Value]*graph.Instr // of a fused loop: those that may be by 0
	parts     []Step                      // that share a launch and may leave faults; Fault is the first one's
}

// FaultBytes is the size of a fault.
const FaultBytes = 16

// Failed returns the error for the fault that the kernels left, or nil if they left
// none. It names the op and the user's line. fault is the memory of faults from that
// of the step on.
func (s *Step) Failed(fault []byte) error {
	for i := range s.parts {
		p := &s.parts[i]
		if err := p.Failed(fault[FaultBytes*(p.Fault-s.Fault):]); err != nil {
			return err
		}
	}
	if s.parts != nil {
		return nil
	}
	code := binary.LittleEndian.Uint32(fault)
	if code == 0 {
		return nil
	}
	if in := s.divisions[loop.Value(code-1)]; in != nil {
		return check.Located(in, ir.ErrZeroDivision)
	}
	if s.Instr.Op.Spec().Category == ir.Pointwise {
		return check.Located(s.Instr, ir.ErrZeroDivision)
	}
	index := int64(binary.LittleEndian.Uint64(fault[8:]))
	return check.Located(s.Instr, fmt.Errorf("%w: %v", ir.ErrIndex, kernels.IndexError{Index: index, Size: s.size}))
}

// Located adds the op and the user's line to an error of running the step.
func (s *Step) Located(err error) error { return check.Located(s.Instr, err) }

// Product is a batch of products D = Act(Alpha·A·B·scales + bias + addend) of M×K and K×N
// matrices.
type Product struct {
	// DType is that of D, bias and addend, Left that of A and Right that of B: one of
	// f16, bf16, f32 and f64 for all; or f16 that give f32; or 8-bit floats that give
	// f32, f16 or bf16; or i8 that give i32. What has one byte lies along the depth: A
	// by rows, B by columns.
	DType, Left, Right ir.DType
	M, N, K            int
	Batch              int
	A, B               Matrix
	Stride             int // the distance of the results of a batch, and of their addends, in elements
	// Scales says what 8-bit floats are multiplied with. Fast lets their products be
	// summed with fewer bits.
	Scales Scales
	Fast   bool
	Alpha  float64 // 0 is 1
	// Bias says that there is a vector of N, and Addend that there is a dense batch of
	// M×N matrices, which may be where D is.
	Bias, Addend bool
	Act          fuse.Activation // Identity, ReLU or GELUTanh
	// Align is what the addresses of all matrices are multiples of: a power of two from
	// 16 to 256.
	Align         int
	WorkspaceSize int
	// Handle is what Options.Product returned.
	Handle any
}

// Scales are two f32 operands of a product of 8-bit floats.
type Scales uint8

const (
	// Unscaled products have none.
	Unscaled Scales = iota
	// ScaledWhole multiplies A and B with a number each.
	ScaledWhole
	// ScaledRows multiplies each row of A and each column of B with a number: vectors
	// of M and N.
	ScaledRows
)

// Call is a use of a model, see package modelcall. Its operands are dense.
type Call struct {
	Model   int
	In, Out []ir.Shape
	Returns int // the number of the first result: see Sequence.Return
}

// Transfer is a use of a collective, of those that collective.OnDevice leaves. Its result and operand are
// dense; that of a barrier is a byte for each rank, and that of a send nothing.
type Transfer struct{ Use collective.Use }

// Matrix is how an operand of a product lies. The result is dense.
type Matrix struct {
	Trans  bool // it lies by columns
	LD     int  // the distance of its rows, or columns, in elements
	Stride int  // the distance of the matrices of a batch in elements; 0 for one that all share
}

// Options says what Lower may not find out itself.
type Options struct {
	// Limits are those of the device.
	Limits emit.Limits
	// Aliases are the donated inputs and the outputs that replace them.
	Aliases []backend.Alias
	// Inputs and Outputs say how each lies in its memory, with the dimensions that it
	// has. Without them all are dense. What lies between the elements of an output
	// keeps what it was.
	Inputs, Outputs []strided.View
	// Product makes ready for a product by the device's library. It returns how many
	// bytes of workspace it needs and anything by which the caller knows it again,
	// or false for one that the library cannot compute, which a kernel does then.
	// Nil leaves all products to kernels.
	Product func(p *Product) (workspace int, handle any, ok bool)
	// F8 says that the device multiplies 8-bit floats.
	F8 bool
	// Collectives runs those of the Program; nil if it has none.
	Collectives collective.DeviceCommunicator
	// Ahead plans for another process: see Ahead.
	Ahead bool
	// TF32 lets kernels round f32s that are multiplied to TF32, attention among them.
	TF32 bool
}
