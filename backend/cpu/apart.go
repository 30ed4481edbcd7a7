package cpu

import (
	"unsafe"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// apart is an operand of a kernel whose columns lie apart in memory: its rows adjoin, as those of a
// transposed matrix, or every second element is its own, as the parts of complex numbers, or they lie in the
// other order. Read or written
// as it lies it takes an access, and often a cache line, for each element. So the step moves the part of a
// call by vectors between the operand and memory of its own, where the kernel finds columns side by side.
type apart struct {
	arg    int
	size   int  // of an element
	step   int  // from one column to the next in the operand, in elements
	across bool // its rows adjoin
	back   bool // each column lies before the last one
	result bool
	// picked says that an index, the operand by, picks each column, and size that of its rows.
	picked      bool
	by, indexed int
	off         int // in the private memory
	width       int // from one row to the next there, in elements
}

const (
	// apartPiece is how many elements a call computes that has such operands, about: what is moved is
	// to stay in the first cache.
	apartPiece = 1 << 13
	// apartLine is the most elements of a line that is reduced: a call has them all.
	apartLine = 1 << 12
	// apartLeast is how many columns there are at least, and rows that adjoin.
	apartLeast = 8
	// apartShort is how many rows there are at least of lines that are computed beside each other.
	apartShort = 3
)

// setApart finds such operands of a kernel, and tells its loop.
func setApart(k *fuse.Kernel) (list []apart) {
	rows, cols := k.Grid.Rows, k.Grid.Cols
	defer func() { list = append(list, setPicked(k)...) }()
	line := &cols
	switch k.Loop.Axis {
	case loop.Rows:
		line = &rows
	case loop.Both:
		return nil
	}
	if k.Parts > 1 { // a call has one of them
		line.N = ceilDiv(line.N, k.Parts)
	}
	if cols.N < apartLeast || k.Loop.Axis != loop.None && line.N > apartLine {
		return nil
	}
	for i := range k.Args {
		a := apart{arg: i, size: k.Args[i].DType.Size(), step: cols.Steps[i], result: k.Args[i].Role == fuse.Output}
		least := apartLeast
		if k.Loop.Axis == loop.Rows && (a.size >= 4 || !a.result) {
			least = apartShort
		}
		a.across = rows.N >= least && rows.Steps[i] == 1 && a.step >= least && (!a.result || k.Loop.Axis == loop.Rows)
		a.back = a.step == -1 && !a.result
		if k.Parts > 1 && a.result {
			continue // only what parts read is moved
		}
		if !a.result && (k.Args[i].Role != fuse.Input || k.Args[i].By > 0) || !a.across && !a.back && (a.step != 2 || a.size < 4) {
			continue
		}
		k.Loop.Args[i].Cols = loop.Unit
		list = append(list, a)
	}
	return list
}

// setPicked finds the operands whose columns an index picks, and tells the loop of a kernel.
func setPicked(k *fuse.Kernel) (list []apart) {
	for i := range k.Args {
		if a := &k.Args[i]; a.Across {
			list = append(list, apart{arg: i, size: a.DType.Size(), picked: true, by: a.By - 1, indexed: a.Size})
			k.Loop.Args[i].Cols = loop.Unit
		}
	}
	return list
}

// placeApart gives the operands room in a nest, which has its units. Parts of rows, whose calls have all columns, are
// cut along these.
func placeApart(list []apart, n *loop.Nest) {
	if n.Units.RowParts && len(list) > 0 {
		nest.CutColumns(n, n.Rows*n.Cols/n.Units.Rows/apartPiece)
	}
	rows, cols := n.Largest()
	for i := range list {
		a := &list[i]
		n.Args[a.arg].Col = a.step * a.size // of one that is picked none
		a.off, a.width = n.Scratch, cols
		n.Scratch += (rows*a.width*a.size + lineBytes - 1) &^ (lineBytes - 1)
	}
}

// runApart is a call of the kernel, whose frame has its place. The frame's rows of these operands are
// changed meanwhile.
func (r *nestRun) runApart(f *loop.Frame, private unsafe.Pointer) {
	var from [loop.MaxArgs]unsafe.Pointer
	for i := range r.apart {
		a := &r.apart[i]
		from[a.arg] = f.Ptr[a.arg]
		f.Ptr[a.arg], f.Row[a.arg] = unsafe.Add(private, a.off), a.width*a.size
		if !a.result {
			a.move(f, from[a.arg], r.Args[a.arg].Row)
		}
	}
	r.code.code.Run(f)
	for i := range r.apart {
		if a := &r.apart[i]; a.result {
			a.move(f, from[a.arg], r.Args[a.arg].Row)
		}
	}
}

// move fills the private memory from an operand, or a result from it. Rows of those are so many bytes
// apart.
func (a *apart) move(f *loop.Frame, operand unsafe.Pointer, row int) {
	private := f.Ptr[a.arg]
	switch {
	case a.picked:
		pickers[a.size](a, f, operand)
	case a.back:
		a.turn(f, private, operand, row)
	case a.across && a.size == 1:
		across(a, f, (*uint8)(private), (*uint8)(operand), strided.TransposeNarrow)
	case a.across && a.size == 2:
		across(a, f, (*uint16)(private), (*uint16)(operand), strided.TransposeNarrow)
	case a.across && a.size == 4:
		across(a, f, (*float32)(private), (*float32)(operand), transposeRows)
	case a.across:
		across(a, f, (*float64)(private), (*float64)(operand), transposeRows)
	case a.size == 4:
		seconds[uint32](a, f, private, operand, row)
	default:
		seconds[uint64](a, f, private, operand, row)
	}
}

func across[T any](a *apart, f *loop.Frame, private, operand *T, transpose func(dst []T, width int, src []T, step, rows, cols int)) {
	own, other := unsafe.Slice(private, f.Rows*a.width), unsafe.Slice(operand, (f.Cols-1)*a.step+f.Rows)
	if a.result {
		transpose(other, a.step, own, a.width, f.Cols, f.Rows)
	} else {
		transpose(own, a.width, other, a.step, f.Rows, f.Cols)
	}
}

// transposeRows moves elements of any kind: floats are not computed with.
func transposeRows[T gemm.Float](dst []T, width int, src []T, step, rows, cols int) {
	gemm.Transpose(dst, width, src, step, cols, rows)
}

// turn fills rows of the private memory from those of an operand, which end where its first column is.
func (a *apart) turn(f *loop.Frame, private, operand unsafe.Pointer, row int) {
	bytes, first := f.Cols*a.size, unsafe.Add(operand, (1-f.Cols)*a.size)
	for i := range f.Rows {
		reversers[a.size](unsafe.Slice((*byte)(unsafe.Add(private, i*a.width*a.size)), bytes), unsafe.Slice((*byte)(unsafe.Add(first, i*row)), bytes))
	}
}

func seconds[T uint32 | uint64](a *apart, f *loop.Frame, private, operand unsafe.Pointer, row int) {
	for i := range f.Rows {
		narrow := unsafe.Slice((*T)(unsafe.Add(private, i*a.width*a.size)), f.Cols)
		wide := unsafe.Slice((*T)(unsafe.Add(operand, i*row)), 2*f.Cols-1)
		if a.result {
			strided.Spread(wide, narrow)
		} else {
			strided.Every(narrow, wide)
		}
	}
}
