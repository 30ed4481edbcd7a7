package strided

import "unsafe"

// Elements that are repeated and runs of few elements are written as words that are longer than they are:
// what a word writes behind its own elements is written again by the next one. So the last ones, whose
// words would end behind the memory that is read or written, are left to the caller.

// repeatWords sets runs of n elements to one each of src, from step elements apart. It returns how many
// of the runs it has set.
func repeatWords[T Bits](dst, src []T, pos, n, step, runs int) int {
	var one T
	size := int(unsafe.Sizeof(one))
	if size > 4 || runs <= 0 {
		return 0
	}
	bytes := n * size
	runs = min(runs, wordsWithin(len(dst)*size, bytes, (bytes+7)/8*8))
	if runs <= 0 {
		return 0
	}
	_, _ = src[pos], src[pos+(runs-1)*step]
	ones := ^uint64(0) / (1<<(8*size) - 1)
	from, to := unsafe.Pointer(&src[pos]), unsafe.Pointer(&dst[0])
	for i := range runs {
		word := ones
		switch size {
		case 1:
			word *= uint64(*(*uint8)(unsafe.Add(from, i*step)))
		case 2:
			word *= uint64(*(*uint16)(unsafe.Add(from, i*step*2)))
		default:
			word *= uint64(*(*uint32)(unsafe.Add(from, i*step*4)))
		}
		at := unsafe.Add(to, i*bytes)
		*(*uint64)(at) = word
		for b := 8; b < bytes; b += 8 {
			*(*uint64)(unsafe.Add(at, b)) = word
		}
	}
	return runs
}

// readWhole copies runs of n adjacent elements, of at most 16 bytes together, from down elements apart. It
// returns how many of the runs it has copied.
func readWhole[T Bits](dst, src []T, pos, n, down, runs int) int {
	var one T
	size := int(unsafe.Sizeof(one))
	bytes := n * size
	if bytes > 16 {
		return 0
	}
	word := 16
	if bytes <= 8 {
		word = 8
	}
	runs = min(runs, wordsWithin(len(dst)*size, bytes, word))
	if end := (word + size - 1) / size; down > 0 {
		runs = min(runs, wordsWithin(len(src)-pos, down, end))
	} else if pos+end > len(src) {
		return 0
	}
	if runs <= 0 {
		return 0
	}
	_, _ = src[pos], src[pos+(runs-1)*down]
	from, to := unsafe.Pointer(&src[pos]), unsafe.Pointer(&dst[0])
	if word == 8 {
		for i := range runs {
			*(*[8]byte)(unsafe.Add(to, i*bytes)) = *(*[8]byte)(unsafe.Add(from, i*down*size))
		}
		return runs
	}
	for i := range runs {
		*(*[16]byte)(unsafe.Add(to, i*bytes)) = *(*[16]byte)(unsafe.Add(from, i*down*size))
	}
	return runs
}

// wordsWithin returns how many words, each apart from the one before, lie within a length.
func wordsWithin(length, apart, word int) int {
	if length < word {
		return 0
	}
	return (length-word)/apart + 1
}
