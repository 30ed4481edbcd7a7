package strided

import (
	"encoding/binary"
	"unsafe"
)

// fewestRows is how many rows there are at least that transposeFew moves, most of whose vectors go unused.
const fewestRows = 2

// TransposeNarrow sets element (k, c) of dst, whose rows lie width apart, to element k + c·step of src, for
// k below rows and c below cols.
func TransposeNarrow[T uint8 | uint16](dst []T, width int, src []T, step, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	doneRows, doneCols := transposeVectors(dst, width, src, step, rows, cols)
	restCols := 0
	if rest := rows - doneRows; rest >= fewestRows {
		restCols = transposeFew(dst[doneRows*width:], width, src[doneRows:], step, rest, cols)
	}
	if doneRows == 0 && restCols == 0 {
		doneRows, doneCols = rows&^3, cols&^3
		if unsafe.Sizeof(dst[0]) == 1 {
			transposeBytes(bytesOf(dst), width, bytesOf(src), step, doneRows, doneCols)
		} else {
			transposeHalves(bytesOf(dst), width, bytesOf(src), step, doneRows, doneCols)
		}
	}
	for k := range rows {
		first := doneCols
		if k >= doneRows {
			first = restCols
		}
		row, p := dst[k*width:][:cols], k+first*step
		for c := first; c < cols; c++ {
			row[c] = src[p]
			p += step
		}
	}
}

// bytesOf is the memory of elements.
func bytesOf[T Bits](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// transposeHalves moves 4×4 elements of 16 bits in four registers at a time; rows and cols are multiples
// of 4.
func transposeHalves(dst []byte, width int, src []byte, step, rows, cols int) {
	const low = 0x0000ffff0000ffff
	for c := 0; c < cols; c += 4 {
		from := src[2*c*step:]
		to := dst[2*c:]
		for k := 0; k < rows; k += 4 {
			a := binary.LittleEndian.Uint64(from[2*k:])
			b := binary.LittleEndian.Uint64(from[2*(k+step):])
			c := binary.LittleEndian.Uint64(from[2*(k+2*step):])
			d := binary.LittleEndian.Uint64(from[2*(k+3*step):])
			// Elements 0 and 2 of each pair of columns, and 1 and 3.
			ab0, ab1 := a&low|b&low<<16, a>>16&low|b&^low
			cd0, cd1 := c&low|d&low<<16, c>>16&low|d&^low
			binary.LittleEndian.PutUint64(to[2*k*width:], ab0&(1<<32-1)|cd0<<32)
			binary.LittleEndian.PutUint64(to[2*(k+1)*width:], ab1&(1<<32-1)|cd1<<32)
			binary.LittleEndian.PutUint64(to[2*(k+2)*width:], ab0>>32|cd0&^(1<<32-1))
			binary.LittleEndian.PutUint64(to[2*(k+3)*width:], ab1>>32|cd1&^(1<<32-1))
		}
	}
}

// transposeBytes is transposeHalves of elements of 8 bits.
func transposeBytes(dst []byte, width int, src []byte, step, rows, cols int) {
	const low = 0x00ff00ff
	for c := 0; c < cols; c += 4 {
		from := src[c*step:]
		to := dst[c:]
		for k := 0; k < rows; k += 4 {
			a := binary.LittleEndian.Uint32(from[k:])
			b := binary.LittleEndian.Uint32(from[k+step:])
			c := binary.LittleEndian.Uint32(from[k+2*step:])
			d := binary.LittleEndian.Uint32(from[k+3*step:])
			ab0, ab1 := a&low|b&low<<8, a>>8&low|b&^low
			cd0, cd1 := c&low|d&low<<8, c>>8&low|d&^low
			binary.LittleEndian.PutUint32(to[k*width:], ab0&(1<<16-1)|cd0<<16)
			binary.LittleEndian.PutUint32(to[(k+1)*width:], ab1&(1<<16-1)|cd1<<16)
			binary.LittleEndian.PutUint32(to[(k+2)*width:], ab0>>16|cd0&^(1<<16-1))
			binary.LittleEndian.PutUint32(to[(k+3)*width:], ab1>>16|cd1&^(1<<16-1))
		}
	}
}
