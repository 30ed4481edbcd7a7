package kernels

import (
	"syscall"
)

const page = 4096

// guardedBytes returns n bytes that end at a page that can't be touched. They stay until the process ends.
func guardedBytes(n int) []byte {
	whole := (n + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	if err := syscall.Mprotect(mem[whole:], syscall.PROT_NONE); err != nil {
		panic(err)
	}
	return mem[whole-n : whole]
}
