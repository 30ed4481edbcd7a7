// Package ahead describes a Program that was planned ahead of time, as data: what backend/internal/ahead
// makes of it, and aoti/export writes into a library. Nothing in it has an address, so a Plan made on
// one machine runs on another, in a process without Go.
package ahead

import (
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/scalartype"
	"github.com/loris-ml/loris/internal/strided"
)

// Space says whose memory a buffer lies in.
type Space uint8

// The spaces.
const (
	Workspace Space = iota
	Param           // a parameter of the Program
	Output
	Literal  // numbers that the plan knows
	Folded   // values of constants alone, which last as long as those
	Returned // a tensor that a call made
)

// Place is where a buffer lies: at a byte offset in the memory of the Index'th of a Space.
type Place struct {
	Space  Space
	Index  int
	Offset int
}

// Plan is a sequence of steps over buffers.
type Plan struct {
	Places    []Place // by buffer
	Literals  []byte
	Sizes     []int // bytes of the buffers for these sizes of the Program
	Workspace int   // bytes
	Returned  int   // tensors
	Kernels   []Kernel
	Folds     []Step // compute what is Folded, before the first run
	Steps     []Step

	FoldedBytes int

	// Of a plan for a GPU: kernels of Launches, and what these may find wrong while they run, in FaultBytes
	// each from byte FaultsAt of the workspace on.
	GPU      []GPUKernel
	Faults   []Fault
	FaultsAt int
}

// GPUKernel is an entry that Launches run, and the images that have it, the best first: machine code of
// a generation of GPUs, or PTX.
type GPUKernel struct {
	Entry  string
	Images [][]byte
}

// Fault is what a Launch may find wrong, and for which op: an index out of a dimension of Size, or, where
// that is 0, a division by 0.
type Fault struct {
	Op, Line string
	Size     int
}

// FaultBytes is what a Fault takes: a u32 that is not 0 if there is one, and at byte 8 the index.
const FaultBytes = 16

// Kernel is a fused loop and its machine code, position independent, by level of instructions.
type Kernel struct {
	Loop         *loop.Kernel
	AVX2, AVX512 Code
}

// Code is machine code and the spill memory that it needs, see native.Assemble.
type Code struct {
	Text  []byte
	Spill int
}

// Step runs a kernel over a Nest, or calls a function; on a GPU it is a Launch, a Copy or a call.
type Step struct {
	Op, Line string // which op of the user's it is, and where; Line may be empty
	Kernel   int
	Nest     *loop.Nest // nil for a call
	Grain    int        // units of the Nest that are worth a thread
	Call     *Call
	Launch   *Launch
	Copy     *Copy
}

// Launch runs a kernel on a GPU. Params is its parameter, 64-bit slots, some of which are addresses.
type Launch struct {
	Kernel      int
	Grid, Block [3]int
	Params      []uint64
	Addresses   []Address
}

// Address says that a slot is the address of a byte of a buffer.
type Address struct{ Slot, Buf, Offset int }

// Copy copies bytes on a GPU.
type Copy struct {
	To, From Memory
	Bytes    int
}

// Call is a call of a C function of the host: ints and handles are passed in the order of Args, and so
// are floats. It returns 0 if it succeeded.
type Call struct {
	Function string
	Args     []Arg
}

// TypeCode returns the number of a dtype in c10::ScalarType; false for one that packages cannot hold.
func TypeCode(d ir.DType) (code int64, ok bool) {
	if d.IsF8() {
		return 0, false
	}
	return int64(scalartype.Code(d)), d.Valid()
}

// Arg is an argument of a Call: one of the types below.
type Arg interface{ arg() }

// Int is an integer, a bool or a null pointer.
type Int int64

// Text is the address of a text that ends with a zero.
type Text string

// Float is a double.
type Float float64

// List is the address of integers.
type List []int64

// Tensor is a handle of a view of a buffer.
type Tensor struct {
	Buf   int
	DType ir.DType
	View  strided.View
	// Weights says that a host may want to keep what it makes of the elements, where they are constant.
	Weights bool
}

// Optional is the address of a Tensor's handle. Where there is none, the argument is the Int 0.
type Optional struct{ Tensor }

// Result is where the function puts the handle of a new tensor, which becomes Returned number Index of
// a buffer. Where it does not lie as View has it, it is copied.
type Result struct {
	Tensor
	Index int
}

// Ignored is where the function puts the handle of a new tensor that nobody needs.
type Ignored struct{}

// Memory is the address of a byte of a buffer.
type Memory struct{ Buf, Offset int }

func (Int) arg()     {}
func (Float) arg()   {}
func (Text) arg()    {}
func (List) arg()    {}
func (Tensor) arg()  {}
func (Ignored) arg() {}
func (Memory) arg()  {}
