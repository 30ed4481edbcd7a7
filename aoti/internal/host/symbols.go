//go:build linux && cgo

package host

/*
#include <dlfcn.h>
#include <stdlib.h>

static int lori_exported(const char *name) { return dlsym(RTLD_DEFAULT, name) != 0; }
*/
import "C"

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/pt2"
)

// implemented reports whether the process has the function in a line of
// symbolText: math by its handler, the others by what the executable exports.
func implemented(line int) bool {
	s, f := &signatures[line], &functions[line]
	if f.host != nil || f.device != nil || f.program != nil {
		return true
	}
	return !s.math && exported(pt2.HostName(s.name))
}

// where says how a model for an accelerator has a function computed.
func where(line int) Where {
	s, f := &signatures[line], &functions[line]
	switch {
	case !s.math || !forDevices(s.name):
		return ""
	case f.device != nil || f.program != nil:
		return OnDevice
	case f.host != nil:
		return ThroughHost
	}
	return Refused
}

func exported(name string) bool {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.lori_exported(c) != 0
}
