package rest

import "unsafe"

// padding returns how many bytes of room to leave in front, so that the byte offset
// places behind is aligned.
func padding(room []byte, offset int) int {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(room))) + uintptr(offset)
	return int(-at & (align - 1))
}
