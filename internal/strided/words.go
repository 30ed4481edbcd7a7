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

// moveRuns copies runs of n adjacent elements, from element to of dst on and up apart, and from element
// from of src on and down apart. It writes nothing between them: the last two blocks of a run overlap.
func moveRuns[T Bits](dst, src []T, to, from, up, down, n, runs int) {
	if runs <= 0 {
		return
	}
	size := int(unsafe.Sizeof(src[0]))
	_, _ = src[from:][:n], dst[to:][:n]
	_, _ = src[from+(runs-1)*down:][:n], dst[to+(runs-1)*up:][:n]
	here, there := unsafe.Pointer(&src[from]), unsafe.Pointer(&dst[to])
	bytes := n * size
	up, down = up*size, down*size
	switch {
	case runVectors(there, here, up, down, bytes, runs):
	case bytes < 8:
		for i := range runs {
			f, t := unsafe.Add(here, i*down), unsafe.Add(there, i*up)
			for b := 0; b < bytes; b += size {
				*(*T)(unsafe.Add(t, b)) = *(*T)(unsafe.Add(f, b))
			}
		}
	case bytes == 8:
		moveWords[uint64](there, here, up, down, runs)
	case bytes == 16:
		moveWords[Bits128](there, here, up, down, runs)
	case bytes < 16:
		for i := range runs {
			f, t := unsafe.Add(here, i*down), unsafe.Add(there, i*up)
			first, last := *(*[8]byte)(f), *(*[8]byte)(unsafe.Add(f, bytes-8))
			*(*[8]byte)(t), *(*[8]byte)(unsafe.Add(t, bytes-8)) = first, last
		}
	case bytes <= 32:
		for i := range runs {
			f, t := unsafe.Add(here, i*down), unsafe.Add(there, i*up)
			first, last := *(*[16]byte)(f), *(*[16]byte)(unsafe.Add(f, bytes-16))
			*(*[16]byte)(t), *(*[16]byte)(unsafe.Add(t, bytes-16)) = first, last
		}
	case bytes <= 64:
		for i := range runs {
			f, t := unsafe.Add(here, i*down), unsafe.Add(there, i*up)
			first, second := *(*[16]byte)(f), *(*[16]byte)(unsafe.Add(f, 16))
			third, last := *(*[16]byte)(unsafe.Add(f, bytes-32)), *(*[16]byte)(unsafe.Add(f, bytes-16))
			*(*[16]byte)(t), *(*[16]byte)(unsafe.Add(t, 16)) = first, second
			*(*[16]byte)(unsafe.Add(t, bytes-32)), *(*[16]byte)(unsafe.Add(t, bytes-16)) = third, last
		}
	default:
		for i := range runs {
			copy(unsafe.Slice((*byte)(unsafe.Add(there, i*up)), bytes), unsafe.Slice((*byte)(unsafe.Add(here, i*down)), bytes))
		}
	}
}

// wordsWithin returns how many words, each apart from the one before, lie within a length.
func wordsWithin(length, apart, word int) int {
	if length < word {
		return 0
	}
	return (length-word)/apart + 1
}
