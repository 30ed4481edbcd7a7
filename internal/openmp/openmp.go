//go:build linux && cgo

package openmp

/*
#cgo CFLAGS: -std=gnu17 -O2
#cgo LDFLAGS: -rdynamic -lpthread
#include "omp.h"
*/
import "C"

import (
	"sync"
	"unsafe"
)

// Available says that this build has the runtime.
const Available = true

// SetLimit bounds how many threads run in parallel regions at once, those that
// began them included; 0 lifts the bound to the processors of the process. It
// never changes how many logical threads a region has.
func SetLimit(n int) { C.lomp_set_limit(C.int(n)) }

// Limit returns how many threads may run in parallel regions at once.
func Limit() int { return int(C.lomp_limit()) }

// region holds the work of one call of Run on Go's heap: C knows it by a number
// while the call lasts, so it must not move with a stack.
type region struct{ work func() }

var regions = sync.Pool{New: func() any { return new(region) }}

// Run calls work on up to so many threads at once, the calling one among them,
// and returns when all calls have. Calls that would begin after another one has
// returned are left out, so work must be what takes the next part of something
// until there is none. It must not panic.
func Run(threads int, work func()) {
	r := regions.Get().(*region)
	r.work = work
	C.lomp_run_go(C.int(threads), C.uintptr_t(uintptr(unsafe.Pointer(r))))
	r.work = nil
	regions.Put(r)
}

//export lompGoWork
func lompGoWork(r C.uintptr_t) { (*(**region)(unsafe.Pointer(&r))).work() }
