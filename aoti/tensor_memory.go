package aoti

import "unsafe"

// bytesOf returns the memory of a slice.
func bytesOf[T Elem](data []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(z)))
}

// elements is the inverse. Buffers are aligned for every element type; memory of
// the caller that is not is copied.
func elements[T Elem](data []byte) []T {
	var z T
	p := unsafe.Pointer(unsafe.SliceData(data))
	n := len(data) / int(unsafe.Sizeof(z))
	if uintptr(p)%unsafe.Alignof(z) != 0 {
		out := make([]T, n)
		copy(bytesOf(out), data)
		return out
	}
	return unsafe.Slice((*T)(p), n)
}
