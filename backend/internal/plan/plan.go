// Package plan turns a Program into a sequence of steps whose memory is planned.
//
// A Builder goes through the instructions. It makes views where strides can say what an op means,
// has package fuse collect what becomes one kernel, and asks the Emitter, a backend, for the steps
// of all else. A step is data: the buffers that it reads and writes, the pairs of them that may
// share memory, and a payload that only the backend understands.
//
// Make then orders the steps, finds out from when until when each buffer is used, lets results
// take the memory of operands and of donated inputs, and places the rest in one workspace.
package plan

import (
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
)

// Kind says who owns the memory of a Buffer.
type Kind uint8

// The kinds of Buffers. Steps write Work only.
const (
	Work     Kind = iota // in the workspace, or an output
	Input                // an argument of the run
	Constant             // known when the Program is compiled
	Returned             // allocated by a model that a step calls
)

// Buffer is a piece of memory that steps read and write.
type Buffer struct {
	Kind  Kind
	Bytes int
	Data  []byte // of a Constant
	// Output is the number of the output that the Buffer becomes, or -1.
	Output int
	// Donor is the input that the Output replaces and whose memory it may take, or -1.
	Donor int
	// Strided says that there is memory between the elements, which steps must leave as it is.
	Strided bool
	// First and Last are the steps of the first write and of the last use. Outputs are used past
	// the last step.
	First, Last int
	// Storage is the memory of a Work buffer, see Plan.
	Storage int

	taken bool // another buffer has taken the storage over
}

// Pair says that a step may write one buffer into the memory of another, which it reads.
type Pair struct{ Write, Read int }

// Step is one thing that a device does.
type Step[P any] struct {
	// Instr is the instruction that messages name, nil for the copy of a result.
	Instr *graph.Instr
	// Ops are all instructions that the step computes, if that is more than Instr.
	Ops           []*graph.Instr
	Reads, Writes []int
	InPlace       []Pair
	// Late is for a step that waits for what an earlier one has begun: it runs right before the first
	// step that uses what it writes.
	Late bool
	// Payload is what the backend executes.
	Payload P
}

// ops returns the instructions that a step computes.
func (s *Step[P]) ops() []*graph.Instr {
	if len(s.Ops) == 0 && s.Instr != nil {
		return []*graph.Instr{s.Instr}
	}
	return s.Ops
}

// Storage is memory that buffers use one after another: a part of the workspace, or an output.
type Storage struct {
	Bytes       int
	First, Last int // steps
	Offset      int // in the workspace
	Output      int // or -1
	Donor       int // the input whose memory the output takes if that is donated, or -1
	Root        int // the buffer that was first
}

// Plan is a sequence of steps whose buffers have places.
type Plan[P any] struct {
	Steps    []Step[P]
	Buffers  []Buffer // those of the inputs come first
	Storages []Storage
	// Workspace is the number of bytes that storages which are no outputs share.
	Workspace int
}

// Options says what differs between backends.
type Options[P any] struct {
	// Alignment is what offsets in the workspace are multiples of.
	Alignment int
	// Inputs is the number of inputs, and Aliases are those that outputs may replace.
	Inputs  int
	Aliases []backend.Alias
	// Eager brings steps forward that free more memory than they take.
	Eager bool
	// Fusion merges independent steps; nil merges none.
	Fusion *Fusion[P]
}

// Make orders steps and places their buffers. It changes both slices.
func Make[P any](steps []Step[P], buffers []Buffer, o Options[P]) *Plan[P] {
	p := &Plan[P]{Steps: steps, Buffers: buffers}
	p.findDonors(&o)
	if o.Fusion != nil {
		p.fuse(o.Fusion)
	}
	if o.Eager {
		p.reorder()
	}
	p.delay()
	p.lifetimes()
	p.assign()
	for _, a := range o.Aliases {
		p.donate(&o, a)
	}
	p.place(o.Alignment)
	p.Steps, p.Buffers = clipped(p.Steps), clipped(p.Buffers)
	return p
}

// clipped returns a slice without room for much more: a builder makes room for what a Program may need,
// and plans are kept.
func clipped[T any](s []T) []T {
	if cap(s)-len(s) <= len(s)/8 {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// HeldBytes returns the memory that the plan takes, but for what payloads refer to.
func (p *Plan[P]) HeldBytes() int64 {
	const word = int(unsafe.Sizeof(0))
	n := cap(p.Steps)*int(unsafe.Sizeof(Step[P]{})) + cap(p.Buffers)*int(unsafe.Sizeof(Buffer{})) + cap(p.Storages)*int(unsafe.Sizeof(Storage{}))
	for i := range p.Steps {
		s := &p.Steps[i]
		n += word*(len(s.Ops)+len(s.Reads)+len(s.Writes)) + len(s.InPlace)*int(unsafe.Sizeof(Pair{}))
	}
	return int64(n)
}
