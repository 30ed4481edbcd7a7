package guarded

import (
	"syscall"
	"unsafe"
)

const page = 4096

// Slice returns n elements, zeros, that end at a page that can't be touched. T must have no pointers. They stay
// until the process ends, as few tests make few of them. It panics where the system has no memory.
func Slice[T any](n int) []T {
	size := n * int(unsafe.Sizeof(*new(T)))
	whole := (size + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	if err := syscall.Mprotect(mem[whole:], syscall.PROT_NONE); err != nil {
		panic(err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[whole-size])), n)
}
