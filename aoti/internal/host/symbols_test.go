//go:build linux && cgo

package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestShimIsThere(t *testing.T) {
	for _, s := range Symbols() {
		if (s.Header == "shim.h" || s.Header == "shim.h:cuda") && !s.Implemented {
			t.Errorf("%s is missing", s.Name)
		}
	}
}

func TestStubsAreCurrent(t *testing.T) {
	if len(signatures) < 300 {
		t.Fatalf("%d lines of symbols", len(signatures))
	}
	for _, name := range []string{"shim_gen.h", "op_gen.c"} {
		if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
			t.Error(err)
		}
	}
}
