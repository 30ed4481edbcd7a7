package export

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/loris-ml/loris/aoti/internal/glue"
	"github.com/loris-ml/loris/internal/longtest"
)

// Libraries that a compiler makes hold the same driver as the object, on this processor and on arm64 (with
// Debian's g++-aarch64-linux-gnu and qemu-user-static).
func TestInterfaceOfCompiledLibraries(t *testing.T) {
	if !longtest.Enabled() || runtime.GOOS != "linux" {
		t.Skip("compilers run: only in the long suites of Linux, see internal/longtest")
	}
	for _, c := range []struct {
		compiler string
		run      []string
	}{
		{"g++", nil},
		{"aarch64-linux-gnu-g++", []string{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"}},
	} {
		t.Run(c.compiler, func(t *testing.T) {
			for _, tool := range append([]string{c.compiler}, c.run[:min(1, len(c.run))]...) {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skip(err)
				}
			}
			_, e := encoded(t, "driver", map[string]int{"w.n": 2}, true)
			lib, err := e.compile(t.Context(), []string{c.compiler})
			if err != nil {
				t.Fatal(err)
			}
			defer lib.remove()
			dir := t.TempDir()
			so, err := os.Create(filepath.Join(dir, "libmodel.so"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(lib.write(so), so.Close()); err != nil {
				t.Fatal(err)
			}
			driver := filepath.Join(dir, "driver")
			must := func(name string, args ...string) {
				t.Helper()
				out, err := exec.Command(name, args...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			// The driver is the host; the library that stands for libtorch's is empty.
			must(c.compiler, "-shared", "-fPIC", "-Wl,-soname,"+neededLibrary, "-o", filepath.Join(dir, neededLibrary), "-x", "c", os.DevNull)
			must(c.compiler, "-std=c++17", "-O1", "-rdynamic", "-D"+glue.Weights+"="+weightBounds+"start", "-o", driver, "testdata/driver.cpp", so.Name(), "-Wl,--disable-new-dtags", "-Wl,-rpath,"+dir, "-Wl,-rpath-link,"+dir)
			for _, args := range [][]string{{"rule", "stolen"}, {"rule", "gradients"}, {"rule", "strides"}, {"rule", "checks"}, {"rule", "views"}, {"2000"}} {
				line := append(append(append([]string{}, c.run...), driver), args...)
				must(line[0], line[1:]...)
			}
		})
	}
}
