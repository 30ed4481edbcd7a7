//go:build linux && cgo

// Package ctest runs tests that are written in C: it compiles them to shared
// libraries, as artefacts are, and calls their functions.
package ctest

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static const char *ctest_call(void *fn, void *arg) { return ((const char *(*)(void *))fn)(arg); }
*/
import "C"

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// Lib is a loaded library.
type Lib struct {
	t      testing.TB
	handle unsafe.Pointer
}

// Build compiles a C or C++ file, with further flags of the compiler, and
// returns the path of the library. It skips the test where there is no compiler.
func Build(t testing.TB, src string, flags ...string) string {
	t.Helper()
	cc := "gcc"
	if strings.HasSuffix(src, ".cpp") {
		cc = "g++"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skipf("the test is compiled when it runs: %v", err)
	}
	so := filepath.Join(t.TempDir(), filepath.Base(src)+".so")
	args := append([]string{"-shared", "-fPIC", "-O2", "-Wall", "-o", so, src}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	return so
}

// NoWarnings holds the C files of the package under test to the strictest
// warnings. They are not in the build's flags, where a newer compiler's would
// break it.
func NoWarnings(t testing.TB) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip(err)
	}
	files, err := filepath.Glob("*.c")
	if err != nil || len(files) == 0 {
		t.Fatal("no C files", err)
	}
	args := append([]string{"-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"}, files...)
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Open loads a library until the test ends.
func Open(t testing.TB, so string) *Lib {
	t.Helper()
	name := C.CString(so)
	defer C.free(unsafe.Pointer(name))
	h := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if h == nil {
		t.Fatalf("dlopen: %s", C.GoString(C.dlerror()))
	}
	l := &Lib{t: t, handle: h}
	t.Cleanup(l.Close)
	return l
}

// Close unloads the library. Calling it again does nothing.
func (l *Lib) Close() {
	if l.handle != nil {
		C.dlclose(l.handle)
		l.handle = nil
	}
}

// Symbol returns the address of a symbol.
func (l *Lib) Symbol(name string) unsafe.Pointer {
	l.t.Helper()
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	p := C.dlsym(l.handle, cname)
	if p == nil {
		l.t.Fatalf("no symbol %s", name)
	}
	return p
}

// Call calls a function of type const char *(void *) and returns its text, ""
// for NULL, which is success.
func (l *Lib) Call(name string, arg unsafe.Pointer) string {
	l.t.Helper()
	text := C.ctest_call(l.Symbol(name), arg)
	if text == nil {
		return ""
	}
	return C.GoString(text)
}
