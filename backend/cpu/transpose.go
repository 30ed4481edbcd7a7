package cpu

import (
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

// transposeNarrow moves elements of one or two bytes.
func transposeNarrow[T uint8 | uint16](dst, src []byte, q square) {
	strided.TransposeNarrow(as[T](dst)[q.at:], q.width, as[T](src)[q.pos:], q.step, q.rows, q.cols)
}
