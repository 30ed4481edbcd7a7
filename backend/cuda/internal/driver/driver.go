//go:build cuda && linux && cgo

package driver

/*
#cgo CFLAGS: -std=gnu11
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

// Where the libraries are, if not where the loader looks: a file, or a folder
// with one of the usual names.
const (
	EnvDriver   = "LORIS_LIBCUDA"
	EnvNVRTC    = "LORIS_LIBNVRTC"
	EnvCUBLASLt = "LORIS_LIBCUBLASLT"
)

// Driver is the driver of this machine, initialised.
type Driver struct {
	c       *C.lori_driver
	handle  unsafe.Pointer // of dlopen
	path    string
	version Version
}

// Open opens the driver at path; "" looks where EnvDriver says, and else for
// libcuda.so.1 where the loader does. What it opens stays loaded.
//
// Errors: ErrNoDriver, ErrOldDriver (too low a version, or a function is
// missing), ErrNoDevice (the driver is there, and no GPU), other *Error.
func Open(path string) (*Driver, error) {
	names := []string{"libcuda.so.1"}
	handle, path, err := open("libcuda.so.1", path, EnvDriver, names, ErrNoDriver, "")
	if err != nil {
		return nil, err
	}
	d := &Driver{path: path, handle: handle, c: (*C.lori_driver)(C.calloc(1, C.sizeof_lori_driver))}
	missing := C.lori_cu_resolve_driver(handle, d.c)
	var v C.int
	if d.c.cuDriverGetVersion != nil && C.lori_cu_driver_version(d.c, &v) == 0 {
		d.version = Version(v)
	}
	if d.version != 0 && d.version < MinVersion {
		return nil, &VersionError{Library: path, Version: d.version, Want: MinVersion}
	}
	if missing != nil {
		return nil, &SymbolError{Library: path, Symbol: C.GoString(missing), Version: d.version}
	}
	if err := d.check("cuInit", C.lori_cu_init(d.c)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Version returns the CUDA that the driver is for.
func (d *Driver) Version() Version { return d.version }

// Symbol returns the address of a function of the driver, for other libraries that
// call it; 0 for one that it does not have.
func (d *Driver) Symbol(name string) uintptr {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return uintptr(C.lori_cu_symbol(d.handle, cname))
}

// Path returns the file that was opened.
func (d *Driver) Path() string { return d.path }

// toolkit is where CUDA's toolkit has its libraries. Its installer does not tell
// the loader.
const toolkit = "/usr/local/cuda/lib64"

// open opens the first library that there is of: path, what env says, names where
// the loader looks and in the toolkit.
func open(what, path, env string, names []string, none error, hint string) (unsafe.Pointer, string, error) {
	if path == "" {
		path = os.Getenv(env)
	}
	if path != "" {
		names = within(path, names)
	} else if info, err := os.Stat(toolkit); err == nil && info.IsDir() && none == ErrNoLibrary {
		names = append(names, within(toolkit, names)...)
	}
	e := &LoadError{Library: what, Hint: hint, is: none}
	for _, name := range names {
		cname := C.CString(name)
		var why *C.char
		handle := C.lori_cu_open(cname, &why)
		C.free(unsafe.Pointer(cname))
		if handle != nil {
			return handle, name, nil
		}
		reason := C.GoString(why)
		C.free(unsafe.Pointer(why))
		if name == what { // it is named already
			reason = strings.TrimPrefix(reason, name+": ")
		}
		e.Reasons = append(e.Reasons, reason)
	}
	return nil, "", e
}

// versioned returns the names that a library of CUDA's is installed under, those
// first that go with a driver of the given version, where 0 stands for the newest.
func versioned(library string, driver Version) []string {
	var names []string
	for _, major := range []int{13, 12} {
		if driver == 0 || major <= driver.Major() {
			names = append(names, fmt.Sprintf("%s.so.%d", library, major))
		}
	}
	return append(names, library+".so")
}

// within returns path itself, or the names in it if it is a folder.
func within(path string, names []string) []string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}
	}
	var out []string
	for _, name := range names {
		out = append(out, filepath.Join(path, name))
	}
	return out
}

// check returns the error of a result, nil for success. It costs nothing then.
func (d *Driver) check(call string, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return d.failure(call, r)
}

func (d *Driver) failure(call string, r C.CUresult) error {
	var name, text *C.char
	C.lori_cu_text(d.c, r, &name, &text)
	return &Error{Call: call, Code: int(r), Name: C.GoString(name), Text: C.GoString(text), is: sentinels(r)}
}

// sentinels returns what a result is.
func sentinels(r C.CUresult) []error {
	switch r {
	case C.LORI_ERROR_INVALID_VALUE, C.LORI_ERROR_INVALID_HANDLE, C.LORI_ERROR_NOT_FOUND, C.LORI_ERROR_LAUNCH_RESOURCES:
		return []error{ErrInvalid}
	case C.LORI_ERROR_OUT_OF_MEMORY:
		return []error{ErrOutOfMemory}
	case C.LORI_ERROR_PTX_VERSION, C.LORI_ERROR_DRIVER_MISMATCH, C.LORI_ERROR_COMPAT:
		return []error{ErrOldDriver}
	case C.LORI_ERROR_NO_DEVICE, C.LORI_ERROR_INVALID_DEVICE:
		return []error{ErrNoDevice}
	case C.LORI_ERROR_INVALID_IMAGE, C.LORI_ERROR_NO_BINARY:
		return []error{ErrImage}
	case C.LORI_ERROR_NOT_SUPPORTED, C.LORI_ERROR_CAPTURE_UNSUPPORTED:
		return []error{ErrNotSupported}
	case C.LORI_ERROR_GRAPH_UPDATE:
		return []error{ErrGraphChanged}
	case C.LORI_ERROR_ILLEGAL_ADDRESS:
		return []error{ErrIllegalAddress, ErrLost}
	case C.LORI_ERROR_ECC, C.LORI_ERROR_NVLINK, C.LORI_ERROR_DEINITIALIZED, C.LORI_ERROR_CONTEXT_DESTROYED,
		C.LORI_ERROR_LAUNCH_TIMEOUT, C.LORI_ERROR_ASSERT, C.LORI_ERROR_HARDWARE_STACK,
		C.LORI_ERROR_ILLEGAL_INSTRUCTION, C.LORI_ERROR_MISALIGNED_ADDRESS, C.LORI_ERROR_ADDRESS_SPACE,
		C.LORI_ERROR_INVALID_PC, C.LORI_ERROR_LAUNCH_FAILED:
		return []error{ErrLost}
	}
	return nil
}
