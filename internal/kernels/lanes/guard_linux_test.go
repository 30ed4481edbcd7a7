package lanes

import (
	"syscall"
	"unsafe"
)

const page = 4096

// guarded returns n numbers that end at a page that can't be touched. They stay until the process
// ends, as few tests make few of them.
func guarded(n int) []float64 {
	whole := (8*n + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	if err := syscall.Mprotect(mem[whole:], syscall.PROT_NONE); err != nil {
		panic(err)
	}
	return unsafe.Slice((*float64)(unsafe.Pointer(&mem[whole-8*n])), n)
}

// guardedOf is guarded of other numbers.
func guardedOf[T Number](n int) []T {
	size := int(unsafe.Sizeof(T(0)))
	whole := guarded((n*size + 7) / 8)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(whole))), 8*len(whole))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes[len(bytes)-n*size:]))), n)
}
