package memlimit

import (
	"math"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                                                                 uint32
	totalPhys, availPhys, totalPage, availPage, totalVirtual, availVirtual, availExtendedVirtual uint64
}

var globalMemoryStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// available returns the machine's memory.
func available() int64 {
	s := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s)))
	if ok == 0 || s.totalPhys > math.MaxInt64 {
		return unknown
	}
	return int64(s.totalPhys)
}

// unknown stands for the memory of a machine that does not tell.
const unknown = 16 << 30
