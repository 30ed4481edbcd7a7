package loop

import "unsafe"

// Nest is how a kernel goes over a grid of any number of dimensions, as data: it has no pointers and
// no code, so that what runs it may be this process or another one. The grid is cut into units,
// which are independent; each is one call.
type Nest struct {
	Args       []NestArg
	Rows, Cols int   // of the grid of the two dimensions that the kernel knows
	Outer      []int // sizes of the others, which are gone through outside of the kernel
	Units      Units
	// Scratch is the memory for lines that a call needs, in bytes.
	Scratch int
}

// NestArg is an operand of a Nest. Offsets and strides are in bytes.
type NestArg struct {
	Buf      int // a buffer, or Private
	Off      int // of the first element, in the buffer or the private memory
	Row, Col int
	Part     int // from one part of the results to the next
	// Size and Step are those of the Frame, of operands with an index.
	Size, Step int
	Outer      []int // strides along Nest.Outer
}

// Private is the Buf of an operand in memory that only the present call uses.
const Private = -1

// Units is how a grid is cut: counts along rows and columns, and sizes, where a size of 0 cuts into
// equal parts.
type Units struct {
	Rows, Cols         int // counts
	RowSize, ColSize   int
	RowParts, ColParts bool // the unit's number along rows or columns is that of its part
}

// Count returns the number of units; none if there are no elements.
func (n *Nest) Count() int {
	if n.Rows*n.Cols == 0 {
		return 0
	}
	count := n.Units.Rows * n.Units.Cols
	for _, o := range n.Outer {
		count *= o
	}
	return count
}

// SetStrides sets the strides of a frame, which are those of all units.
func (n *Nest) SetStrides(f *Frame) {
	for i := range n.Args {
		f.Row[i], f.Col[i] = n.Args[i].Row, n.Args[i].Col
		f.Size[i], f.Step[i] = n.Args[i].Size, n.Args[i].Step
	}
}

// Place points a frame at a unit. bufs are the buffers by number; private is memory of Scratch bytes.
func (n *Nest) Place(f *Frame, unit int, bufs [][]byte, private unsafe.Pointer) {
	u := &n.Units
	c, rest := unit%u.Cols, unit/u.Cols
	row, at := rest%u.Rows, rest/u.Rows
	r0, r1 := piece(row, n.Rows, u.Rows, u.RowSize)
	c0, c1 := piece(c, n.Cols, u.Cols, u.ColSize)
	part := 0
	switch {
	case u.RowParts:
		part = row
	case u.ColParts:
		part = c
	}
	f.Rows, f.Cols = r1-r0, c1-c0
	for i := range n.Args {
		a := &n.Args[i]
		if a.Buf < 0 {
			f.Ptr[i] = unsafe.Add(private, a.Off)
			continue
		}
		off := a.Off + r0*a.Row + c0*a.Col + part*a.Part
		for d, rest := len(n.Outer)-1, at; d >= 0; d-- {
			off += rest % n.Outer[d] * a.Outer[d]
			rest /= n.Outer[d]
		}
		f.Ptr[i] = unsafe.Pointer(&bufs[a.Buf][off])
	}
}

// Planes returns how many units from one on, before hi and most, are alike but for their place in the last of
// the outer dimensions, and has the frame of the first be the call of all of them.
func (n *Nest) Planes(f *Frame, unit, hi, most int) int {
	last := len(n.Outer) - 1
	f.Planes = 1
	if last < 0 || n.Units.Rows*n.Units.Cols != 1 {
		return 1
	}
	f.Planes = max(1, min(hi-unit, n.Outer[last]-unit%n.Outer[last], most))
	for i := range n.Args {
		f.Plane[i] = 0
		if a := &n.Args[i]; a.Buf >= 0 {
			f.Plane[i] = a.Outer[last]
		}
	}
	return f.Planes
}

// Largest returns how many rows and columns the largest unit has.
func (n *Nest) Largest() (rows, cols int) {
	u := &n.Units
	return largest(n.Rows, u.Rows, u.RowSize), largest(n.Cols, u.Cols, u.ColSize)
}

func largest(n, count, size int) int {
	if size == 0 {
		return (n + count - 1) / count
	}
	return size
}

// piece returns the bounds of a unit along an axis of n.
func piece(i, n, count, size int) (lo, hi int) {
	if size == 0 {
		return i * n / count, (i + 1) * n / count
	}
	return i * size, min((i+1)*size, n)
}
