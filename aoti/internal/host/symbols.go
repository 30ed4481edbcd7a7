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

	"github.com/loris-ml/loris/aoti/pt2"
)

// implemented reports whether the process has the function in a line of
// symbolText: math by its handler, the others by what the executable exports.
func implemented(line int) bool {
	if handlers[line] != nil || twins()[line] != nil || ways()[line] != nil {
		return true
	}
	s := &signatures[line]
	return !s.math && exported(pt2.HostName(s.name))
}

// where says how a model for an accelerator has a function computed.
func where(line int) Where {
	s := &signatures[line]
	switch {
	case !s.math || !forDevices(s.name):
		return ""
	case ways()[line] != nil || native[s.name] != nil:
		return OnDevice
	case twins()[line] != nil || handlers[line] != nil:
		return ThroughHost
	}
	return Refused
}

func exported(name string) bool {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.lori_exported(c) != 0
}
