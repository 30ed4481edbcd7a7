//go:build linux && cgo

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ctest"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is no library of a compiled model is refused, and stays neither loaded
// nor open.
func TestOpenLibraryRefuses(t *testing.T) {
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(t.TempDir(), "none.so"), "none.so"},
		{"garbage", write(t, "garbage.so", strings.Repeat("x", 5000)), "invalid ELF header"},
		{"other", ctest.Build(t, write(t, "other.c", "int other(void) { return 0; }")), "does not export AOTInductorModelContainerCreateWithDevice"},
		{"undefined", ctest.Build(t, write(t, "undefined.c", "int lacks(void); int other(void) { return lacks(); }")), "undefined symbol: lacks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			l, err := OpenLibrary(c.path, LibraryOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if l != nil {
				t.Error("a library was returned with the error")
			}
			if maps, err := os.ReadFile("/proc/self/maps"); err != nil || strings.Contains(string(maps), c.path) {
				t.Errorf("still mapped, or %v", err)
			}
		})
	}
}

func TestOpenLibraryWithoutLibtorch(t *testing.T) {
	_, err := OpenLibrary("x.so", LibraryOptions{Libtorch: filepath.Join(t.TempDir(), "libtorch_cpu.so")})
	if err == nil || !strings.Contains(err.Error(), "libtorch_cpu.so") {
		t.Errorf("%v", err)
	}
}
