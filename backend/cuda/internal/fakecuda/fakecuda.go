//go:build cuda && linux && cgo

// Package fakecuda is a stand-in for CUDA's libraries, for tests on machines
// without a GPU. It is written in C (testdata) and compiled when a test asks
// for it: one shared library that is the driver, NVRTC and cuBLASLt at once.
//
// Device memory is on the host's heap, so that copies copy. The work of all
// streams is done by one thread in the order in which it was enqueued. NVRTC
// compiles kernels with g++, as C++ in which a block's threads are fibers
// (testdata/device.h, fiber.h), so that launches compute what they should;
// matrix products are computed, too. What was compiled is kept for other tests
// and processes, in the user's cache folder.
package fakecuda

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

static bool call_set(void *f, const char *key, long v) { return ((bool (*)(const char *, long))f)(key, v); }
static bool call_fail(void *f, const char *call, unsigned int code, long skip, bool once)
{
	return ((bool (*)(const char *, unsigned int, long, bool))f)(call, code, skip, once);
}
static void call_heal(void *f) { ((void (*)(void))f)(); }
static void call_hold(void *f, bool hold) { ((void (*)(bool))f)(hold); }
static void call_paths(void *f, const char *headers, const char *cache)
{
	((void (*)(const char *, const char *))f)(headers, cache);
}
static void call_drain(void *f) { ((void (*)(void))f)(); }
static char *call_calls(void *f) { return ((char *(*)(void))f)(); }
static const char *call_count(void *f, int i, long *n) { return ((const char *(*)(int, long *))f)(i, n); }
*/
import "C"

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// Fake is one stand-in, with a state of its own.
type Fake struct {
	// Path is the library, to be opened in place of the driver, NVRTC and cuBLASLt.
	Path string

	t      testing.TB
	handle unsafe.Pointer
}

// library is the compiled stand-in, made at most once in a process.
var library = sync.OnceValues(compile)

// New makes a stand-in for one test, without the functions named. It skips the
// test where there is no compiler. At the end of the test everything that was
// made with it must be gone.
func New(t testing.TB, without ...string) *Fake {
	t.Helper()
	for _, compiler := range []string{"gcc", "g++"} {
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skipf("the fake driver is compiled when tests run: %v", err)
		}
	}
	so, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range without {
		missing := append([]byte("xx"), name[2:]...)
		if so = bytes.ReplaceAll(so, []byte("\x00"+name+"\x00"), []byte("\x00"+string(missing)+"\x00")); !bytes.Contains(so, missing) {
			t.Fatalf("the fake has no %s", name)
		}
	}
	f := &Fake{t: t, Path: filepath.Join(t.TempDir(), "libcuda.so.1")}
	if err := os.WriteFile(f.Path, so, 0o755); err != nil {
		t.Fatal(err)
	}
	path := C.CString(f.Path)
	defer C.free(unsafe.Pointer(path))
	if f.handle = C.dlopen(path, C.RTLD_NOW|C.RTLD_LOCAL); f.handle == nil {
		t.Fatalf("open the fake: %s", C.GoString(C.dlerror()))
	}
	kept, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	headers, cache := C.CString(kept.headers), C.CString(kept.cache)
	defer C.free(unsafe.Pointer(headers))
	defer C.free(unsafe.Pointer(cache))
	C.call_paths(f.symbol("fake_paths"), headers, cache)
	t.Cleanup(f.check)
	return f
}

// compile compiles testdata with the declarations of package driver.
func compile() ([]byte, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	internal := filepath.Join(root, "backend", "cuda", "internal")
	sources, err := filepath.Glob(filepath.Join(internal, "fakecuda", "testdata", "*.c"))
	if err != nil || len(sources) == 0 {
		return nil, fmt.Errorf("the fake's sources are not in %s", internal)
	}
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	so := filepath.Join(dir, "fake.so")
	args := append([]string{"-shared", "-fPIC", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Wno-sign-compare", "-Werror",
		"-pthread", "-Wl,-Bsymbolic", "-I", filepath.Join(internal, "driver"), "-o", so}, sources...)
	args = append(args, "-lm", "-ldl")
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the fake: %w\n%s", err, out)
	}
	return os.ReadFile(so)
}

// moduleRoot returns the folder with go.mod that the test runs in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", fmt.Errorf("no go.mod above the working directory: %v", err)
}

func (f *Fake) symbol(name string) unsafe.Pointer {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	p := C.dlsym(f.handle, cname)
	if p == nil {
		panic("the fake has no " + name)
	}
	return p
}

// Set changes the machine: shuffle (if not 0, work is done in any order that
// streams and events allow, by this seed; 0), sms (multiprocessors of each device,
// 132), trap (if not 0, the so many-th kernel from now on traps; 0), version (of the driver, 12090), devices (1), init
// (cuInit's result, 0), memory (of each device, 1 GiB), peers (whether devices
// can access each other, 1), algo1 and algo2 (nanoseconds that a product by that
// choice of cuBLASLt takes longer than it does, 0), idle (if not 0, kernels do nothing; 0).
func (f *Fake) Set(key string, v int) {
	f.t.Helper()
	ckey := C.CString(key)
	defer C.free(unsafe.Pointer(ckey))
	if !C.call_set(f.symbol("fake_set"), ckey, C.long(v)) {
		f.t.Fatalf("the fake has no %q", key)
	}
}

// Fail makes calls of a function fail with CUDA's number, after skip ones that
// succeed: one call, or all further ones until Heal. By 700 and 719 for all calls
// the context is lost, too.
func (f *Fake) Fail(call string, code, skip int, once bool) {
	f.t.Helper()
	ccall := C.CString(call)
	defer C.free(unsafe.Pointer(ccall))
	if !C.call_fail(f.symbol("fake_fail"), ccall, C.uint(code), C.long(skip), C.bool(once)) {
		f.t.Fatal("too many faults")
	}
}

// Heal ends all faults.
func (f *Fake) Heal() { C.call_heal(f.symbol("fake_heal")) }

// Hold stops the work of all streams; Resume lets it go on.
func (f *Fake) Hold() { C.call_hold(f.symbol("fake_hold"), true) }

// Resume lets work go on.
func (f *Fake) Resume() { C.call_hold(f.symbol("fake_hold"), false) }

// Calls returns the calls since the last time, "function arguments" each;
// queries and making a context current are left out.
func (f *Fake) Calls() []string {
	text := C.call_calls(f.symbol("fake_calls"))
	defer C.free(unsafe.Pointer(text))
	out := strings.Split(C.GoString(text), "\n")
	return out[:len(out)-1] // each call ends its line
}

// Live returns how many things of each kind are not freed.
func (f *Fake) Live() map[string]int {
	out := map[string]int{}
	count := f.symbol("fake_count")
	for i := C.int(0); ; i++ {
		var n C.long
		name := C.call_count(count, i, &n)
		if name == nil {
			return out
		}
		if n != 0 {
			out[C.GoString(name)] = int(n)
		}
	}
}

func (f *Fake) check() {
	C.call_drain(f.symbol("fake_drain"))
	for kind, n := range f.Live() {
		f.t.Errorf("%d leaked: %s", n, kind)
	}
}

// Cubin returns an image that the fake loads, for an architecture such as 90,
// with lines "kernel NAME PARAMETERS" and "global NAME BYTES".
func Cubin(arch int, lines ...string) []byte {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01")
	return append(header, fmt.Sprintf("FAKE %d\n%s\n\x00", arch, strings.Join(lines, "\n"))...)
}
