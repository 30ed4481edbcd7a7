package inference

import "unsafe"

// Alignment is that of the bytes behind the JSON of a message, where tensors begin.
const Alignment = 64

// Padding returns how many bytes of room to leave in front, so that the byte offset
// places behind is aligned.
func Padding(room []byte, offset int) int {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(room))) + uintptr(offset)
	return int(-at & (Alignment - 1))
}
