// Package loop describes fused loops: what a kernel computes, but not how. Backends make kernels
// from Programs, internal/native compiles them to machine code, and Eval defines what they mean.
//
// A kernel computes on a grid of rows × columns. It reads and writes operands (Args), each with a
// stride for rows and one for columns, and consists of passes over lines. A line is the elements
// that are reduced together (Axis). A pass computes its Body for each element of the line, and then
// its Final once, from the results of its reductions. Later passes may use the results of
// reductions and Finals, but see those of an earlier Body only in memory.
//
// A softmax over rows of x is
//
//	pass 0  body   %0 = load x        %1 = reduce amax %0
//	pass 1  body   %2 = load x        %3 = sub %2, %1     %4 = exp %3
//	               store scratch, %4  %5 = reduce sum %4
//	        final  %6 = reciprocal %5
//	pass 2  body   %7 = load scratch  %8 = mul %7, %6     store y, %8
//
// with Axis Columns. A Kernel has no sizes; they are in the Frame of a call, so that one piece of
// machine code serves every batch size.
package loop

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
)

// Axis says which elements are reduced together, which are the lines of a kernel.
type Axis uint8

const (
	// None is for kernels without reductions, which may have no Final.
	None Axis = iota
	// Columns reduces along columns: a line is a row, a Final has one result for
	// each row.
	Columns
	// Rows reduces along rows: a line is a column, a Final has one result for
	// each column.
	Rows
	// Both reduces everything: there is one line.
	Both
)

// Stride says how an operand's address changes along a dimension of the grid.
type Stride uint8

const (
	// Fixed: the address stays, so the operand is broadcast along the dimension.
	Fixed Stride = iota
	// Unit: the address grows by one element.
	Unit
	// Free: the address changes by the number of bytes in the Frame, which may be negative or
	// 0 and is below MaxStride.
	Free
)

// Arg is an operand in memory. Its stride along rows is always in the Frame.
type Arg struct {
	// DType is how elements are stored: any real dtype. Loads convert f16, bf16
	// and the f8s to f32, stores round them back (to nearest even).
	DType ir.DType
	// Cols is its stride along columns.
	Cols Stride
	// Write marks operands that are stored to. One that is also loaded is either
	// the same memory in the same place element for element, or scratch of one
	// line that the kernel wrote in an earlier pass.
	Write bool
	// Stream is a hint to store past the cache, for large results that are not read again soon. It
	// needs Unit.
	Stream bool
	// Ahead is a hint to prefetch the next row while this one is computed, for operands that are
	// not in the cache and whose rows are much smaller than it. It is for kernels of several
	// passes whose lines are rows, and needs Unit.
	Ahead bool
	// Scratch marks scratch of one line where several lines are finished together, each of which has its own then.
	Scratch bool
	// RowStep and ColStep are the strides in elements that the Frames of a kernel have of which rows are taken
	// together, or that has a Height. Far is one that its code does not know.
	RowStep, ColStep int32
	// By, if not 0, is 1 more than the number of the operand that has an index for each row: each step of it is
	// Frame.Step bytes further on. That operand is an I64 that is Fixed along columns and that no instruction
	// uses. An operand with an index is read in Bodies only. One that is written is in kernels without reductions,
	// which compute rows in their order, each after the one before is stored.
	By int32
	// Moves says that an operand with an index has a stride along rows besides; else that is 0.
	Moves bool
}

// Far is a RowStep or ColStep that only the Frame has.
const Far = math.MinInt32

// Code says what an instruction does.
type Code uint8

const (
	// Load reads the element of Args[Arg].
	Load Code = iota
	// Const is the number in Bits: the bits of a value of DType, zero-extended.
	Const
	// Index is the position along the reduced axis as an i64; for None along
	// columns. The Frame's First is added to it.
	Index
	// Apply is the pointwise op Op on In, with the meaning of its row in ir
	// (Spec.Scalar) on compute dtypes: f32 for the narrow floats. DType is the
	// result's; comparisons give bool. aten.Cast converts from the operand's
	// dtype to DType as Programs do.
	Apply
	// Round rounds an f32 to what DType (f16, bf16 or an f8) can hold, and stays
	// an f32.
	Round
	// Reduce reduces In[0] over the line with Op: sum, prod, amax, amin, any, all,
	// argmax or argmin. Its result has DType and is known after the pass. Floats
	// are summed in any order; the first of equal elements is the extremum, but
	// that amax and amin may give 0 with either sign; NaN wins over numbers in
	// amax, amin, argmax and argmin.
	Reduce
	// Store writes In[0] to Args[Arg], for each element in a Body, once for the
	// line in a Final. It has no result.
	Store
)

// NarrowSum as the Bits of a Reduce says that what is summed up as f32s are narrower floats, of lines
// that are short enough for the sum of them to be kept in f32.
const NarrowSum = 1

// Value numbers the result of an instruction in its Kernel.
type Value int32

// Instr is one instruction.
type Instr struct {
	Code Code
	// Op is for Apply and Reduce.
	Op ir.Op
	// DType is the result's: a compute dtype (bool, u8, i8, i16, i32, i64, f32,
	// f64), but for Round, whose result is an f32.
	DType ir.DType
	// In are the operands; N says how many.
	In [3]Value
	N  uint8
	// Arg is for Load and Store.
	Arg int
	// Bits is for Const, and NarrowSum or 0 for Reduce.
	Bits uint64
}

// Pass is one walk over the lines.
type Pass struct {
	// Body and Final list Instrs by number, in order.
	Body, Final []Value
}

// Kernel is the structure of a fused loop.
type Kernel struct {
	Axis Axis
	// Width, if not 0, says that all calls have so many columns, so that rows may be taken together, for which
	// Args have their steps, or without a loop over columns, or be finished together. What is computed is the same.
	Width int
	// Height, if not 0, says that all calls have so many rows, of kernels whose Axis is Rows or None, so that there is no
	// loop over them, for which Args have their steps. What is computed is the same.
	Height int
	// Planes says that a call may have several grids, each at strides of its own from the one before.
	Planes bool
	Args   []Arg
	Instrs []Instr
	Passes []Pass
}

// ZeroDivision is the value with which a run panics after an integer division by 0: the instruction
// that divided.
type ZeroDivision Value

// Error says what happened.
func (ZeroDivision) Error() string { return ir.ErrZeroDivision.Error() }

// Unwrap returns ir.ErrZeroDivision.
func (ZeroDivision) Unwrap() error { return ir.ErrZeroDivision }

// IndexFault is the value with which a run panics after an index was negative, or not below its Frame.Size.
type IndexFault struct {
	Arg   int // the operand with an index
	Index int64
}

// Error says which index that was.
func (f IndexFault) Error() string {
	return fmt.Sprintf("index %d of operand %d is out of range", f.Index, f.Arg)
}

// MaxArgs bounds the operands of a kernel.
const MaxArgs = 32

// MaxStride bounds the size of a Free stride along columns: the elements of a
// vector are less than 2³¹ bytes apart.
const MaxStride = 1 << 27

// Frame is the sizes and operands of one call of a kernel. Machine code depends on its layout.
type Frame struct {
	// Rows and Cols are the size of the grid of this call.
	Rows, Cols int
	// First is added to Index.
	First int
	// Spill is memory for the kernel's own use, 64-byte aligned, of the size that
	// the compiled kernel asks for.
	Spill unsafe.Pointer
	// Ptr are the addresses of the operands' elements at row 0, column 0.
	Ptr [MaxArgs]unsafe.Pointer
	// Row and Col are the strides in bytes; Col counts for Free ones only.
	Row, Col [MaxArgs]int
	// Flush lets ops on floats treat subnormal operands and results as zero. Machine code does so,
	// Eval does not.
	Flush bool
	// Planes is how many grids the call of a kernel with Planes has, 0 for one, and Plane their strides in
	// bytes.
	Planes int
	Plane  [MaxArgs]int
	// Size is how many steps operands with an index have, at least 1, and Step how many bytes one is.
	Size, Step [MaxArgs]int
}
