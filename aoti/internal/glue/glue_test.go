package glue

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The objects that are checked in are what their source says: with the compiler that made them, the same
// bytes come out again.
func TestObjectIsWhatItsSourceSays(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the object is made by a compiler for Linux on x86-64")
	}
	for _, tool := range []string{"bash", "gcc", "ld", "objcopy"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s, which makes the object, is not here: %v", tool, err)
		}
	}
	for name, object := range map[string][]byte{"amd64.o": AMD64, "cuda.o": CUDA} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), name)
			device, _, _ := strings.Cut(name, ".")
			if text, err := exec.Command("bash", "build.sh", out, device).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			made, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if ours, theirs := compilers(t, object), compilers(t, made); !bytes.Equal(ours, theirs) {
				t.Skipf("the compiler here is another than the one that made the object: %q, not %q", theirs, ours)
			}
			if !bytes.Equal(made, object) {
				t.Errorf("%s is not what build.sh makes of the folder c: run build.sh %s %s", name, name, device)
			}
		})
	}
}

// compilers returns what the object says of the compiler that made it.
func compilers(t *testing.T, object []byte) []byte {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.Section(".comment").Data()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
