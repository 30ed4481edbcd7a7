//go:build cuda && linux && cgo

package driver

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Compiler is NVRTC, which compiles CUDA C++ to machine code. It needs no GPU
// and no driver. It is safe for concurrent use.
type Compiler struct {
	c       *C.lori_nvrtc
	path    string
	version Version
	archs   []int
}

// OpenCompiler opens NVRTC at path, a file or a folder; "" looks where EnvNVRTC
// says, and else for the names that it is installed under, those first that go
// with the given driver's version: machine code of a newer major version does
// not load. The version 0 takes the newest.
//
// Errors: ErrNoLibrary, ErrOldDriver if a function is missing.
func OpenCompiler(path string, driver Version) (*Compiler, error) {
	handle, path, err := open("NVRTC", path, EnvNVRTC, versioned("libnvrtc", driver), ErrNoLibrary,
		"scripts/cuda-env.sh brings it; or set "+EnvNVRTC+" to the folder that has it")
	if err != nil {
		return nil, err
	}
	v := &Compiler{path: path, c: (*C.lori_nvrtc)(C.calloc(1, C.sizeof_lori_nvrtc))}
	if missing := C.lori_cu_resolve_nvrtc(handle, v.c); missing != nil {
		return nil, &SymbolError{Library: path, Symbol: C.GoString(missing)}
	}
	var major, minor, n C.int
	if r := C.lori_cu_nvrtc_version(v.c, &major, &minor, &n); r != 0 {
		return nil, fmt.Errorf("%s: %w", path, compilerError("nvrtcVersion", r))
	}
	v.version = Version(1000*int(major) + 10*int(minor))
	archs := make([]C.int, max(n, 1))
	if r := C.lori_cu_nvrtc_archs(v.c, &archs[0]); r != 0 {
		return nil, fmt.Errorf("%s: %w", path, compilerError("nvrtcGetSupportedArchs", r))
	}
	for _, a := range archs[:n] {
		v.archs = append(v.archs, int(a))
	}
	return v, nil
}

// Version returns the version of the compiler.
func (v *Compiler) Version() Version { return v.version }

// Path returns the file that was opened.
func (v *Compiler) Path() string { return v.path }

// Archs returns what it compiles for, as numbers such as 90, ascending.
func (v *Compiler) Archs() []int { return v.archs }

// Compile compiles the CUDA C++ source to a cubin for an architecture such as
// "sm_90". name is the name of the source in messages and in the cubin; options
// are NVRTC's, such as "--use_fast_math". log has the warnings.
//
// A source that does not compile is a *CompileError, wrong options are errors
// that are ErrInvalid.
func (v *Compiler) Compile(src, name, arch string, options []string) (cubin []byte, log string, err error) {
	return v.compile(src, name, arch, options, false)
}

// PTX compiles to PTX for an architecture such as "compute_80", from which drivers make machine code for
// that and all later generations. It ends with a zero, which they want.
func (v *Compiler) PTX(src, name, arch string, options []string) (ptx []byte, err error) {
	ptx, _, err = v.compile(src, name, arch, options, true)
	return ptx, err
}

func (v *Compiler) compile(src, name, arch string, options []string, ptx bool) (image []byte, log string, err error) {
	args := make([]*C.char, 0, len(options)+1)
	for _, o := range append([]string{"--gpu-architecture=" + arch}, options...) {
		args = append(args, C.CString(o))
	}
	csrc, cname := C.CString(src), C.CString(name)
	list := (**C.char)(C.calloc(C.size_t(len(args)), C.size_t(unsafe.Sizeof(args[0]))))
	copy(unsafe.Slice(list, len(args)), args)
	var cimage, clog, call *C.char
	asked := C.int(0)
	if ptx {
		asked = 1
	}
	var size C.size_t
	r := C.lori_cu_compile(v.c, csrc, cname, list, C.int(len(args)), asked, &cimage, &size, &clog, &call)
	log = C.GoString(clog)
	if r == 0 {
		image = C.GoBytes(unsafe.Pointer(cimage), C.int(size))
	}
	for _, p := range append(args, csrc, cname, cimage, clog) {
		C.free(unsafe.Pointer(p))
	}
	C.free(unsafe.Pointer(list))
	switch {
	case r == C.LORI_NVRTC_COMPILATION:
		return nil, log, newCompileError(name, arch, src, log)
	case r != 0:
		err = fmt.Errorf("compile %s for %s: %w", name, arch, compilerError(C.GoString(call), r))
		if text := strings.TrimSpace(log); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return nil, log, err
	case size == 0:
		return nil, log, fmt.Errorf("compile %s: %w: %q is not the name of machine code", name, ErrInvalid, arch)
	}
	return image, log, nil
}

// compilerError is a result of NVRTC.
func compilerError(call string, r C.nvrtcResult) error {
	e := &Error{Call: call, Code: int(r), Name: fmt.Sprintf("NVRTC error %d", int(r))}
	switch r {
	case C.LORI_NVRTC_OUT_OF_MEMORY:
		e.Text, e.is = "the host is out of memory", []error{ErrOutOfMemory}
	case C.LORI_NVRTC_INVALID_OPTION:
		e.Text, e.is = "invalid option", []error{ErrInvalid}
	}
	return e
}
