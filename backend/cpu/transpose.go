package cpu

import (
	"encoding/binary"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/strided"
)

// A square is a part of a matrix that is transposed: rows rows, width elements apart in dst from element
// at on, whose cols elements are step apart in src, from element pos on.
type square struct{ at, pos, rows, cols, width, step int }

// readSquares is a read of elements of so many bytes that has a kernel for squares of transposed views.
func readSquares(size int, read readFunc, transpose func(dst, src []byte, q square)) readFunc {
	return func(dst, src []byte, v *strided.View, start int) {
		if v.Transposed() {
			width, down := v.Dims[v.Rank-1], v.Strides[v.Rank-2]
			to := transpose
			if down < 0 || v.Strides[v.Rank-1] < 0 {
				w := workers.Get().(*worker)
				defer workers.Put(w)
				to = turned(w.scratch.bytes(strided.SquareRows*strided.SquareRows*size), size, down < 0, transpose)
			}
			if v.Squares(start, len(dst)/size, func(at, pos, rows, cols, step int) {
				to(dst, src, square{at, pos, rows, cols, width, step})
			}) {
				return
			}
		}
		read(dst, src, v, start)
	}
}

// turned transposes squares whose rows lie one before the other, if up, and those whose columns do: as if
// they did not, and then moves the rows from room to their places.
func turned(room []byte, size int, up bool, transpose func(dst, src []byte, q square)) func(dst, src []byte, q square) {
	return func(dst, src []byte, q square) {
		straight := square{pos: q.pos, rows: q.rows, cols: q.cols, width: q.cols, step: q.step}
		if up {
			straight.pos -= q.rows - 1
		}
		if q.step < 0 {
			straight.pos, straight.step = straight.pos+(q.cols-1)*q.step, -q.step
		}
		transpose(room, src, straight)
		for k := range q.rows {
			from := k
			if up {
				from = q.rows - 1 - k
			}
			row, to := room[from*q.cols*size:][:q.cols*size], dst[(q.at+k*q.width)*size:][:q.cols*size]
			if q.step > 0 {
				copy(to, row)
			} else {
				reversers[size](to, row)
			}
		}
	}
}

// reversers copy elements in the other order, by their size.
var reversers = map[int]func(dst, src []byte){1: reverse[uint8], 2: reverse[uint16], 4: reverse[uint32], 8: reverse[uint64]}

func reverse[T strided.Bits](dst, src []byte) { strided.Reverse(as[T](dst), as[T](src)) }

// transposeWords moves elements that vectors of floats move, too.
func transposeWords[A gemm.Float](dst, src []byte, q square) {
	gemm.Transpose(as[A](dst)[q.at:], q.width, as[A](src)[q.pos:], q.step, q.cols, q.rows)
}

// transposeHalves moves 4×4 elements of 16 bits in four registers at a time.
func transposeHalves(dst, src []byte, q square) {
	const low = 0x0000ffff0000ffff
	rows, cols := q.rows&^3, q.cols&^3
	for c := 0; c < cols; c += 4 {
		from := src[2*(q.pos+c*q.step):]
		to := dst[2*(q.at+c):]
		for k := 0; k < rows; k += 4 {
			a := binary.LittleEndian.Uint64(from[2*k:])
			b := binary.LittleEndian.Uint64(from[2*(k+q.step):])
			c := binary.LittleEndian.Uint64(from[2*(k+2*q.step):])
			d := binary.LittleEndian.Uint64(from[2*(k+3*q.step):])
			// Elements 0 and 2 of each pair of columns, and 1 and 3.
			ab0, ab1 := a&low|b&low<<16, a>>16&low|b&^low
			cd0, cd1 := c&low|d&low<<16, c>>16&low|d&^low
			binary.LittleEndian.PutUint64(to[2*k*q.width:], ab0&(1<<32-1)|cd0<<32)
			binary.LittleEndian.PutUint64(to[2*(k+1)*q.width:], ab1&(1<<32-1)|cd1<<32)
			binary.LittleEndian.PutUint64(to[2*(k+2)*q.width:], ab0>>32|cd0&^(1<<32-1))
			binary.LittleEndian.PutUint64(to[2*(k+3)*q.width:], ab1>>32|cd1&^(1<<32-1))
		}
	}
	transposeEdges(as[uint16](dst), as[uint16](src), q, rows, cols)
}

// transposeBytes moves 4×4 elements of 8 bits in four registers at a time.
func transposeBytes(dst, src []byte, q square) {
	const low = 0x00ff00ff
	rows, cols := q.rows&^3, q.cols&^3
	for c := 0; c < cols; c += 4 {
		from := src[q.pos+c*q.step:]
		to := dst[q.at+c:]
		for k := 0; k < rows; k += 4 {
			a := binary.LittleEndian.Uint32(from[k:])
			b := binary.LittleEndian.Uint32(from[k+q.step:])
			c := binary.LittleEndian.Uint32(from[k+2*q.step:])
			d := binary.LittleEndian.Uint32(from[k+3*q.step:])
			ab0, ab1 := a&low|b&low<<8, a>>8&low|b&^low
			cd0, cd1 := c&low|d&low<<8, c>>8&low|d&^low
			binary.LittleEndian.PutUint32(to[k*q.width:], ab0&(1<<16-1)|cd0<<16)
			binary.LittleEndian.PutUint32(to[(k+1)*q.width:], ab1&(1<<16-1)|cd1<<16)
			binary.LittleEndian.PutUint32(to[(k+2)*q.width:], ab0>>16|cd0&^(1<<16-1))
			binary.LittleEndian.PutUint32(to[(k+3)*q.width:], ab1>>16|cd1&^(1<<16-1))
		}
	}
	transposeEdges(dst, src, q, rows, cols)
}

// transposeEdges moves what is left of a square of which rows·cols elements have been moved.
func transposeEdges[T uint8 | uint16](dst, src []T, q square, rows, cols int) {
	for k := range q.rows {
		first := cols
		if k >= rows {
			first = 0
		}
		for c := first; c < q.cols; c++ {
			dst[q.at+k*q.width+c] = src[q.pos+k+c*q.step]
		}
	}
}
