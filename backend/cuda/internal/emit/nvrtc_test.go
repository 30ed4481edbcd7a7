//go:build cuda && linux && cgo

package emit

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/longtest"
)

// In builds with the tag cuda every source that a test runs is compiled by NVRTC,
// too.
func init() { compileAll = compileForDevices }

// options are those that the package comment asks for.
var options = []string{"-fmad=false", "-std=c++17"}

// compilerOf returns NVRTC; a test that is of nothing else is skipped without it.
func compilerOf(t *testing.T) *driver.Compiler {
	t.Helper()
	c, err := driver.OpenCompiler("", 0)
	if errors.Is(err, driver.ErrNoLibrary) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compileForDevices compiles sources for two generations of devices: the first
// ones of a test for both, the others for one each, by turns. Short tests compile
// some sources for one of them each.
func compileForDevices(t *testing.T, sources map[string]string) {
	t.Helper()
	c, err := driver.OpenCompiler("", 0)
	if errors.Is(err, driver.ErrNoLibrary) {
		t.Logf("not compiled for devices: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	archs := []string{"sm_80", "sm_90"}
	compiled := 0
	for i, name := range slices.Sorted(maps.Keys(sources)) {
		for k, arch := range archs {
			if (!longtest.Enabled() || i >= 8) && k != i%len(archs) || !longtest.Enabled() && i >= 2 {
				continue
			}
			if _, _, err := c.Compile(sources[name], name+".cu", arch, options); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			compiled++
		}
	}
	t.Logf("NVRTC %v: %d sources, %d compilations for %v", c.Version(), len(sources), compiled, archs)
}
