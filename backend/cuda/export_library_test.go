//go:build cuda && linux && cgo

package cuda_test

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

// What cannot be computed on a GPU is named at once, with the lines, and so is what fits no package
// for CUDA.
func TestExportRefusals(t *testing.T) {
	f := fakecuda.New(t)
	t.Setenv("LORIS_LIBNVRTC", f.Path)
	p, err := graph.Parse(`program @p {
  %x = parameter "x" : f32[4,4]
  return linalg_cholesky(%x), inverse(%x)
}`)
	check(t, err)
	for _, c := range []struct {
		o    export.Options
		kind error
		want []string
	}{
		{export.Options{}, backend.ErrUnsupported, []string{"linalg_cholesky", "inverse"}},
		{export.Options{Architectures: []string{"sm_70"}}, ir.ErrArg, []string{"sm_70"}},
		{export.Options{Architectures: []string{"volta"}}, ir.ErrArg, []string{"volta"}},
		{export.Options{Emitter: "c++"}, ir.ErrArg, []string{"c++"}},
		{export.Options{DynamicShapes: []map[int]export.Dim{{0: {Name: "n", Min: 1, Max: 4}}}}, backend.ErrUnsupported, []string{"vary"}},
	} {
		c.o.Device = "cuda"
		err := export.Program(t.Context(), io.Discard, p, c.o)
		for _, want := range c.want {
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", c.o, err)
			}
		}
	}
	if err := export.Program(t.Context(), io.Discard, p, export.Options{Device: "tpu"}); !errors.Is(err, ir.ErrArg) {
		t.Errorf("another device: %v", err)
	}
	if err := export.Program(t.Context(), io.Discard, p, export.Options{Architectures: []string{"sm_90"}}); !errors.Is(err, ir.ErrArg) {
		t.Errorf("architectures of the CPU: %v", err)
	}
}

// libraryOf writes the library of a package and a host for it, testdata/host.c, to a folder, and returns
// the library, the metadata and what runs the host.
func (e *exported) libraryOf(t *testing.T, flags ...string) (so []byte, meta string, run func(args ...string) string) {
	t.Helper()
	dir := t.TempDir()
	z, err := zip.NewReader(bytes.NewReader(e.pkg), int64(len(e.pkg)))
	check(t, err)
	for _, m := range z.File {
		r, err := m.Open()
		check(t, err)
		data, err := io.ReadAll(r)
		check(t, err)
		switch filepath.Ext(m.Name) {
		case ".so":
			so = data
		case ".json":
			meta = string(data)
		}
	}
	library, host := filepath.Join(dir, "model.so"), filepath.Join(dir, "host")
	check(t, os.WriteFile(library, so, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "none.c"), nil, 0o600))
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", filepath.Join(dir, "libtorch_cpu.so"), filepath.Join(dir, "none.c")}, // the host has its functions
		append(append([]string{}, flags...), "-std=gnu11", "-Wall", "-rdynamic", "-o", host, "testdata/host.c", "-ldl"),
	} {
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return so, meta, func(args ...string) string {
		t.Helper()
		c := exec.Command(host, append([]string{library}, args...)...)
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return string(out)
	}
}

// A library for CUDA needs nothing of CUDA to be loaded. Where there is no driver, or PyTorch is without
// CUDA, a container says so.
func TestExportedLibraryWithoutCUDA(t *testing.T) {
	e := exportProgram(t, scaled, []string{"sm_90"}, nil)
	so, meta, run := e.libraryOf(t)
	if !strings.Contains(meta, `"AOTI_DEVICE_KEY":"cuda"`) || !strings.Contains(meta, `"LORIS_ISA":"sm_90"`) {
		t.Errorf("the metadata is %s", meta)
	}
	l, err := pt2.ReadLibrary(bytes.NewReader(so), int64(len(so)))
	check(t, err)
	if want := []string{"libtorch_cpu.so", "libdl.so.2", "libc.so.6"}; !slices.Equal(l.Needed, want) {
		t.Errorf("the library needs %v, want %v", l.Needed, want)
	}
	if got := l.Generation().Functions; len(got) != 47 {
		t.Errorf("%d functions are exported: %v", len(got), got)
	}
	for _, s := range l.Undefined {
		if !s.Weak && (strings.HasPrefix(s.Name, "cu") || strings.Contains(s.Name, "cuda")) {
			t.Errorf("%s must be there to load the library", s.Name)
		}
	}
	out := run()
	// Where there is a driver, PyTorch's part for CUDA is what is missing.
	for _, want := range []string{`(?m)^cuda: 1: \w+ is missing: (there is no driver of CUDA|PyTorch is here without CUDA)$`, `(?m)^cpu: 1: the model was exported for CUDA, not for cpu$`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("it says %q, want %q", out, want)
		}
	}
}

// The container of a library for CUDA keeps constants as the interface says, in a host made for the test
// whose functions, and those of the driver, fail one after another.
func TestExportedContainer(t *testing.T) {
	e := exportProgram(t, `program @p {
  %x = parameter "x" : f32[3,4]
  %w = parameter "w" : f32[4]
  %n = parameter "wn" : i64[]
  return mul(%x, %w), %n, add(%n, full([], 1, dtype=i64))
}`, []string{"compute_80", "sm_90"}, map[string]int{"wn": 2})
	_, _, run := e.libraryOf(t, "-DWITH_DRIVER")
	if out := run(e.f.Path, t.TempDir()); !regexp.MustCompile(`^ok: [0-9]{2,} failures\n$`).MatchString(out) {
		t.Errorf("it says %q", out)
	}
}

// The real compiler makes machine code and PTX for all architectures of a package.
func TestExportWithTheRealCompiler(t *testing.T) {
	if os.Getenv("LORIS_LIBNVRTC") == "" {
		t.Skip("LORIS_LIBNVRTC is not set: scripts/cuda-env.sh brings NVRTC")
	}
	p, err := graph.Parse(scaled)
	check(t, err)
	plan, _, err := cuda.PlanAhead(t.Context(), p, []string{"compute_80", "sm_80", "sm_90"})
	check(t, err)
	if len(plan.GPU) != 1 || len(plan.GPU[0].Images) != 3 {
		t.Fatalf("there are %d kernels", len(plan.GPU))
	}
	images := plan.GPU[0].Images
	for i, image := range images[:2] {
		if ofCUDA := byte(190); !bytes.HasPrefix(image, []byte(elf.ELFMAG)) || image[18] != ofCUDA || !bytes.Contains(image, []byte(".text."+plan.GPU[0].Entry)) {
			t.Errorf("image %d of %d bytes is no machine code of %s", i, len(image), plan.GPU[0].Entry)
		}
	}
	if bytes.Equal(images[0], images[1]) {
		t.Error("the code is the same for both architectures")
	}
	if text := string(images[2]); !strings.Contains(text, ".target sm_80") || !strings.Contains(text, ".entry "+plan.GPU[0].Entry) || text[len(text)-1] != 0 {
		t.Errorf("the last image is no PTX: %.200s", text)
	}
}
