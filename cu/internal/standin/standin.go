//go:build linux && cgo

// Package standin holds back the work of the stand-in for libcuda that the tests of package cu are
// linked with; see test.sh.
package standin

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>

static bool hold(bool yes)
{
	void (*f)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "fake_hold");
	if (f)
		f(yes);
	return f;
}
*/
import "C"

import "testing"

// Hold stops the work of all streams until the returned function is called, at the latest at the end
// of the test. It skips a test that runs on another libcuda, which cannot be held back.
func Hold(t *testing.T) (resume func()) {
	t.Helper()
	if !C.hold(true) {
		t.Skip("this libcuda cannot be held back")
	}
	resume = func() { C.hold(false) }
	t.Cleanup(resume)
	return resume
}
