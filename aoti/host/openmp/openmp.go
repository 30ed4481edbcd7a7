//go:build linux && cgo

package openmp

/*
#cgo CFLAGS: -std=gnu17 -O2
#cgo LDFLAGS: -rdynamic -lpthread
#include "omp.h"
*/
import "C"

// Available says that this build has the runtime.
const Available = true

// SetLimit bounds how many threads run in parallel regions at once, those that
// began them included; 0 lifts the bound to the processors of the process. It
// never changes how many logical threads a region has.
func SetLimit(n int) { C.lomp_set_limit(C.int(n)) }

// Limit returns how many threads may run in parallel regions at once.
func Limit() int { return int(C.lomp_limit()) }
