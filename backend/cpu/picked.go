package cpu

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// pickers move the columns of an operand that an index picks to the private memory, by the size of elements. What a column
// has lies side by side in the operand.
var pickers = map[int]func(a *apart, f *loop.Frame, operand unsafe.Pointer){
	1: pick[uint8], 2: pick[uint16], 4: pick[uint32], 8: pick[uint64],
}

func pick[T strided.Bits](a *apart, f *loop.Frame, operand unsafe.Pointer) {
	if f.Col[a.by] != 8 {
		pickSingly[T](a, f, operand)
		return
	}
	at, size, step := unsafe.Slice((*int64)(f.Ptr[a.by]), f.Cols), uint64(a.indexed), f.Step[a.arg]
	row := func(r int) unsafe.Pointer { return unsafe.Add(f.Ptr[a.arg], r*a.width*a.size) }
	for r := 0; r < f.Rows; {
		from, done := unsafe.Add(operand, r*a.size), 0
		switch left := f.Rows - r; { // several at a time, so that an index is looked at for all of them
		case left == 3 || left > 4:
			done = pickThree[T](at, row(r), row(r+1), row(r+2), from, size, step)
			r += 3
		case left > 1:
			done = pickTwo[T](at, row(r), row(r+1), from, size, step)
			r += 2
		default:
			done = pickOne[T](at, row(r), from, size, step)
			r++
		}
		if done < len(at) {
			panic(loop.IndexFault{Arg: a.arg, Index: at[done]})
		}
	}
}

// pickThree is pick of three rows, until an index is out of range; it returns how many columns it did.
func pickThree[T strided.Bits](at []int64, x, y, z, from unsafe.Pointer, size uint64, step int) int {
	for c, i := range at {
		if uint64(i) >= size {
			return c
		}
		p, to := (*[3]T)(unsafe.Add(from, int(i)*step)), c*int(unsafe.Sizeof(*new(T)))
		*(*T)(unsafe.Add(x, to)), *(*T)(unsafe.Add(y, to)), *(*T)(unsafe.Add(z, to)) = p[0], p[1], p[2]
	}
	return len(at)
}

// pickTwo is pickThree of two rows.
func pickTwo[T strided.Bits](at []int64, x, y, from unsafe.Pointer, size uint64, step int) int {
	for c, i := range at {
		if uint64(i) >= size {
			return c
		}
		p, to := (*[2]T)(unsafe.Add(from, int(i)*step)), c*int(unsafe.Sizeof(*new(T)))
		*(*T)(unsafe.Add(x, to)), *(*T)(unsafe.Add(y, to)) = p[0], p[1]
	}
	return len(at)
}

// pickOne is pickThree of one row.
func pickOne[T strided.Bits](at []int64, x, from unsafe.Pointer, size uint64, step int) int {
	for c, i := range at {
		if uint64(i) >= size {
			return c
		}
		*(*T)(unsafe.Add(x, c*int(unsafe.Sizeof(*new(T))))) = *(*T)(unsafe.Add(from, int(i)*step))
	}
	return len(at)
}

// pickSingly is pick by an index whose elements lie apart.
func pickSingly[T strided.Bits](a *apart, f *loop.Frame, operand unsafe.Pointer) {
	for c := range f.Cols {
		i := *(*int64)(unsafe.Add(f.Ptr[a.by], c*f.Col[a.by]))
		if uint64(i) >= uint64(a.indexed) {
			panic(loop.IndexFault{Arg: a.arg, Index: i})
		}
		from := unsafe.Add(operand, int(i)*f.Step[a.arg])
		for r := range f.Rows {
			*(*T)(unsafe.Add(f.Ptr[a.arg], (r*a.width+c)*a.size)) = *(*T)(unsafe.Add(from, r*a.size))
		}
	}
}
