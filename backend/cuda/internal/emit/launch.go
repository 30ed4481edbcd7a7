package emit

import (
	"slices"
	"strings"
)

// Limits is what launches must keep to.
type Limits struct {
	// Processors is the number of multiprocessors. It bounds how many blocks are
	// launched, and decides into how many parts the depth of a product is cut, which
	// has an influence on how sums are rounded; on other results it has none.
	Processors int
	// Threads is the most that a block may have, a power of two from 32 on.
	Threads int
	// Tensor says that there are tensor cores with what mma.cuh uses: from sm_80 on.
	// Sums of their products are rounded otherwise than those without them.
	Tensor bool
}

// Plan is how a kernel is computed: launches that follow each other.
type Plan struct {
	Launches []Launch
	// Workspace is the number of bytes of memory that the launches share, aligned to
	// 16 bytes. It need not be cleared.
	Workspace int
}

// Launch is one launch of an entry.
type Launch struct {
	// Entry is the entry's name. Entries of equal names are equal.
	Entry string
	// Source returns the CUDA C++ that has the entry.
	Source func() string
	// Grid and Block are numbers of blocks and of threads along x, y, z.
	Grid, Block [3]int
	// Params is the entry's parameter, a struct of 64-bit slots, without addresses.
	Params []uint64
	// Addresses says which slots are addresses on the device.
	Addresses []Address

	part *part // what it is as a part of another, or nil
}

// Address is a slot that has the address of an operand, plus Offset bytes.
type Address struct{ Slot, Operand, Offset int }

// The Operands of an Address that are none of the kernel's.
const (
	// Work is the workspace.
	Work = -1
	// Fault is 16 bytes of memory, cleared before, that tell what went wrong: a u32
	// that is not 0 then, and at byte 8 an i64. For loops the u32 is the number of
	// an instruction, counted from 1, that divided an integer by 0 (of several the
	// greatest); for indexing the i64 is an index out of range (of several any).
	Fault = -2
)

// Bind returns the parameter with the addresses of operands, workspace and fault.
func (l *Launch) Bind(operands []uint64, work, fault uint64) []uint64 {
	slots := slices.Clone(l.Params)
	for _, a := range l.Addresses {
		at := uint64(a.Offset)
		switch a.Operand {
		case Work:
			at += work
		case Fault:
			at += fault
		default:
			at += operands[a.Operand]
		}
		slots[a.Slot] = at
	}
	return slots
}

// place sets what a slot is the address of.
func (l *Launch) place(a Address) {
	for i := range l.Addresses {
		if l.Addresses[i].Slot == a.Slot {
			l.Addresses[i] = a
		}
	}
}

// maxGridYZ bounds the blocks of a grid along y and z.
const maxGridYZ = 65535

// blocks bounds a number of blocks along x: those that loop on take no time to
// start.
func (dev Limits) blocks(n int) int { return max(1, min(n, dev.Processors*32)) }

// block is how many threads a block has where it does not matter.
func (dev Limits) block() int { return min(256, dev.Threads) }

// routine is a kernel of the library that is being planned.
type routine struct {
	Plan
	dev Limits
}

// alloc returns the offset of memory in the workspace.
func (r *routine) alloc(bytes int) int {
	at := r.Workspace
	r.Workspace += (bytes + 15) &^ 15
	return at
}

// slots are the parameter of a launch in the making.
type slots struct {
	words     []uint64
	addresses []Address
}

func (s *slots) at(operand, offset int) *slots {
	s.addresses = append(s.addresses, Address{len(s.words), operand, offset})
	s.words = append(s.words, 0)
	return s
}

func (s *slots) num(values ...int) *slots {
	for _, v := range values {
		s.words = append(s.words, uint64(v))
	}
	return s
}

// array adds an array of eight, filled up with 0.
func (s *slots) array(values []int) *slots {
	var all [8]int
	copy(all[:], values)
	return s.num(all[:]...)
}

// launch adds a launch of an instance of a function of the library, which takes a
// frame.
func (r *routine) launch(function, frame string, s *slots, grid, block [3]int) {
	entry := "loris_" + strings.NewReplacer("<", "_", ">", "", ", ", "_").Replace(function)
	r.Launches = append(r.Launches, Launch{
		Entry:  entry,
		Source: func() string { return librarySource(entry, frame, function) },
		Grid:   grid, Block: block, Params: s.words, Addresses: s.addresses,
	})
}

// each adds a launch whose threads along x walk through n elements.
func (r *routine) each(function, frame string, s *slots, n int) {
	b := r.dev.block()
	r.launch(function, frame, s, [3]int{r.dev.blocks(ceil(n, b)), 1, 1}, [3]int{b, 1, 1})
}

// small adds a launch that others may share, of a function that also takes a Grid.
func (r *routine) small(function, frame string, s *slots, grid, block [3]int) {
	r.launch(function, frame, s, grid, block)
	l := &r.Launches[len(r.Launches)-1]
	entry := l.Entry
	l.Source = func() string { return librarySource(entry, frame, function, "own_grid()") }
	l.part = &part{frame: frame, call: function}
}

// smallEach is each of a function that others may share a launch with.
func (r *routine) smallEach(function, frame string, s *slots, n int) {
	b := r.dev.block()
	r.small(function, frame, s, [3]int{r.dev.blocks(ceil(n, b)), 1, 1}, [3]int{b, 1, 1})
}

// librarySource returns the source of an entry that calls a function of the
// library with its frame and more arguments.
func librarySource(entry, frame, function string, more ...string) string {
	return prelude + library + libraryEntry(entry, frame, function, more...)
}

func libraryEntry(entry, frame, function string, more ...string) string {
	args := strings.Join(append([]string{"f"}, more...), ", ")
	return "\nextern \"C\" __global__ void " + entry + "(const " + frame + " f) {\n  " + function + "(" + args + ");\n}\n"
}
