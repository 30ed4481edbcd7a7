package hostmem

import (
	"syscall"
	"unsafe"
)

// hugePage is the size of the pages that adviseHuge asks for. Where it is another,
// the advice has no effect.
const hugePage = 2 << 20

// adviseHuge asks for big pages under the part of fresh memory that they fit in: big
// tensors are read and written from end to end, and have more small pages than a core
// can remember the places of. It is only advice. It stays with the addresses when the
// collector gives them to something else, which can take up no more memory for it than
// the block did.
func adviseHuge(mem []byte) {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	lo := int(-begin & (hugePage - 1))
	hi := len(mem) - int((begin+uintptr(len(mem)))&(hugePage-1))
	if lo < hi {
		_ = syscall.Madvise(mem[lo:hi], syscall.MADV_HUGEPAGE) // a kernel without them refuses
	}
}
