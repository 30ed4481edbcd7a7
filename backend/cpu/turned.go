package cpu

import (
	"unsafe"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// turnedArg is an operand of a kernel whose rows adjoin in memory and whose columns lie apart, such as a
// transposed matrix. Read as it lies it takes a cache line for each element. So the step transposes the
// part that a call reads into memory of its own, and the kernel finds it there with adjoining columns.
type turnedArg struct {
	arg   int
	size  int // of an element
	step  int // from one column to the next in the operand, in elements
	off   int // in the private memory
	width int // from one row to the next there, in elements
}

const (
	// turnedPiece is how many elements a call computes that has such operands, about: the transposed
	// parts are to stay in the first cache.
	turnedPiece = 1 << 13
	// turnedLine is the most elements of a line that is reduced: a call has them all.
	turnedLine = 1 << 12
	// turnedLeast is how many rows and columns there are at least.
	turnedLeast = 8
)

// turn finds the operands of a kernel that are turned, and tells its loop.
func turn(k *fuse.Kernel) (list []turnedArg) {
	rows, cols := &k.Grid.Rows, &k.Grid.Cols
	if rows.N < turnedLeast || cols.N < turnedLeast || k.Parts > 1 {
		return nil
	}
	switch k.Loop.Axis {
	case loop.Columns:
		if cols.N > turnedLine {
			return nil
		}
	case loop.Rows:
		if rows.N > turnedLine {
			return nil
		}
	case loop.Both:
		return nil
	}
	for i := range k.Args {
		if k.Args[i].Role == fuse.Input && rows.Steps[i] == 1 && cols.Steps[i] >= turnedLeast {
			k.Loop.Args[i].Cols = loop.Unit
			list = append(list, turnedArg{arg: i, size: k.Args[i].DType.Size(), step: cols.Steps[i]})
		}
	}
	return list
}

// place gives the turned operands room in a nest, which has its units.
func place(list []turnedArg, n *loop.Nest) {
	width := n.Units.ColSize
	for i := range list {
		t := &list[i]
		n.Args[t.arg].Col = t.step * t.size
		t.off, t.width = n.Scratch, width
		n.Scratch += (n.Units.RowSize*width*t.size + lineBytes - 1) &^ (lineBytes - 1)
	}
}

// fill transposes what the call of a frame reads to the private memory, and points the frame there.
func (t *turnedArg) fill(f *loop.Frame, private unsafe.Pointer) {
	src, dst := f.Ptr[t.arg], unsafe.Add(private, t.off)
	switch t.size {
	case 1:
		fillNarrow(t, (*uint8)(dst), (*uint8)(src), f)
	case 2:
		fillNarrow(t, (*uint16)(dst), (*uint16)(src), f)
	case 4:
		fillWords(t, (*float32)(dst), (*float32)(src), f)
	default:
		fillWords(t, (*float64)(dst), (*float64)(src), f)
	}
	f.Ptr[t.arg], f.Row[t.arg] = dst, t.width*t.size
}

func fillNarrow[T uint8 | uint16](t *turnedArg, dst, src *T, f *loop.Frame) {
	to, from := unsafe.Slice(dst, f.Rows*t.width), unsafe.Slice(src, (f.Cols-1)*t.step+f.Rows)
	strided.TransposeNarrow(to, t.width, from, t.step, f.Rows, f.Cols)
}

// fillWords moves elements of any kind: floats are not computed with.
func fillWords[T gemm.Float](t *turnedArg, dst, src *T, f *loop.Frame) {
	to, from := unsafe.Slice(dst, f.Rows*t.width), unsafe.Slice(src, (f.Cols-1)*t.step+f.Rows)
	gemm.Transpose(to, t.width, from, t.step, f.Cols, f.Rows)
}
