package pt2

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// compile runs the C compiler in dir; tests that need one are skipped without.
func compile(t *testing.T, dir string, args ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("makes ELF libraries with the system's compiler, which is another kind here")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc to make libraries")
	}
	cmd := exec.Command(gcc, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const modelSource = `
#include <stdlib.h>
#include <unistd.h>
extern int aoti_torch_answer(int);
extern int aoti_torch_local(int);
extern float Sleef_expf8_u10(float);
extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
extern int omp_get_num_threads(void);
extern int __cxa_thread_atexit(void (*)(void *), void *, void *);
extern int other_function(void) __attribute__((weak));
int aoti_torch_local(int x) { return x + 1; } /* defined here: must keep its name */
unsigned char _binary_constants_bin_start[64] = {1, 2, 3};
extern unsigned char _binary_constants_bin_end[];
__asm__(".globl _binary_constants_bin_end\n.set _binary_constants_bin_end, _binary_constants_bin_start + 64\n"
        ".data\n.globl the_unique\n.type the_unique, @gnu_unique_object\n.size the_unique, 4\nthe_unique: .long 7\n.text\n");
static void body(void *p) { *(int *)p += omp_get_num_threads(); }
int run(void) {
	int n = aoti_torch_answer(1) + aoti_torch_local(1) + (int)Sleef_expf8_u10(3);
	GOMP_parallel(body, &n, 0, 0);
	__cxa_thread_atexit(0, 0, 0);
	if (getppid() == -7) n++;
	return n;
}
`

const gompSource = `
void GOMP_parallel(void (*f)(void *), void *p, unsigned n, unsigned m) { f(p); }
int omp_get_num_threads(void) { return 1; }
`

const gompVersions = `GOMP_1.0 { global: GOMP_parallel; }; OMP_1.0 { global: omp_get_num_threads; local: *; };`

// makeModel compiles a small library that needs what artefacts need. first says
// whether libgomp comes first among the needed libraries; without libc, its
// versions are the only ones.
func makeModel(t *testing.T, first, libc bool) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, "gomp.c", gompSource)
	write(t, dir, "gomp.map", gompVersions)
	write(t, dir, "torch.c", "int aoti_torch_answer(int x) { return x; }\nfloat Sleef_expf8_u10(float x) { return x; }\n")
	src := modelSource
	if !libc {
		src = strings.ReplaceAll(src, `if (getppid() == -7) n++;`, "")
	}
	write(t, dir, "model.c", src)
	compile(t, dir, "-shared", "-fPIC", "-o", "libgomp.so.1", "-Wl,-soname,libgomp.so.1", "-Wl,--version-script=gomp.map", "gomp.c", "-nostdlib")
	compile(t, dir, "-shared", "-fPIC", "-o", "libtorch_cpu.so", "-Wl,-soname,libtorch_cpu.so", "torch.c", "-nostdlib")
	libs := []string{"libtorch_cpu.so", "libgomp.so.1"}
	switch {
	case !libc:
	case first:
		libs = append(libs, "-lc")
	default:
		libs = append([]string{"-lc"}, libs...)
	}
	args := append([]string{"-shared", "-fPIC", "-O1", "-Wl,--no-as-needed", "-nostdlib", "-z", "execstack", "-o", "model.so", "model.c"}, libs...)
	compile(t, dir, args...)
	return dir, filepath.Join(dir, "model.so")
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func library(t *testing.T, b []byte) *Library {
	t.Helper()
	l, err := ReadLibrary(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func patched(t *testing.T, b []byte) []byte {
	t.Helper()
	edits, err := library(t, b).HostEdits()
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.Clone(b)
	for _, e := range edits {
		copy(out[e.Offset:], e.Data)
	}
	return out
}

func imported(t *testing.T, b []byte) (libs []string, syms map[string]string) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if libs, err = f.ImportedLibraries(); err != nil {
		t.Fatal(err)
	}
	all, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	syms = map[string]string{}
	for _, s := range all {
		syms[s.Name] = s.Library
	}
	return libs, syms
}

// The patched copy is read back by an independent reader.
func TestHostEdits(t *testing.T) {
	for _, tc := range []struct {
		name        string
		first, libc bool
	}{{"libgomp before libc", true, true}, {"libgomp after libc", false, true}, {"libgomp alone", false, false}} {
		t.Run(tc.name, func(t *testing.T) {
			_, path := makeModel(t, tc.first, tc.libc)
			before := readFile(t, path)
			after := patched(t, before)
			libs, syms := imported(t, after)
			for _, lib := range libs {
				if lib != "libc.so.6" {
					t.Errorf("the copy needs %s", lib)
				}
			}
			for _, name := range []string{
				"lori_torch_answer", "Loris_expf8_u10", "LOMP_parallel", "lmp_get_num_threads", "__lor_thread_atexit", "other_function",
			} {
				lib, ok := syms[name]
				if name == "other_function" {
					if ok {
						t.Errorf("an unused symbol is asked for")
					}
					continue
				}
				if !ok || lib != "" {
					t.Errorf("symbol %s: asked for %v, of library %q", name, ok, lib)
				}
			}
			if tc.libc && syms["getppid"] != "libc.so.6" {
				t.Errorf("getppid is asked of %q", syms["getppid"])
			}
			for name := range syms {
				if strings.HasPrefix(name, "aoti_") || strings.HasPrefix(name, "GOMP_") {
					t.Errorf("symbol %s keeps its name", name)
				}
			}
			checkDefined(t, after)
			checkStack(t, before, after)
			checkOnlyTables(t, before, after)
			if edits, err := library(t, after).HostEdits(); err != nil || len(edits) != 0 {
				t.Errorf("a patched copy is patched again: %d edits, %v", len(edits), err)
			}
		})
	}
}

func checkDefined(t *testing.T, b []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	bind := map[string]elf.SymBind{}
	for _, s := range syms {
		if s.Section != elf.SHN_UNDEF {
			bind[s.Name] = elf.ST_BIND(s.Info)
		}
	}
	if bind["the_unique"] != elf.STB_WEAK {
		t.Errorf("the unique symbol is bound as %v", bind["the_unique"])
	}
	if bind["aoti_torch_local"] != elf.STB_GLOBAL || bind["run"] != elf.STB_GLOBAL {
		t.Errorf("defined symbols changed: %v", bind)
	}
}

// checkStack tells if the copy asks for an executable stack, as the library does.
func checkStack(t *testing.T, before, after []byte) {
	t.Helper()
	for i, b := range [][]byte{before, after} {
		f, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_GNU_STACK && (p.Flags&elf.PF_X != 0) != (i == 0) {
				t.Errorf("patched: %v; the flags of the stack are %v", i == 1, p.Flags)
			}
		}
	}
}

// checkOnlyTables tells a change outside the tables of the dynamic linker.
func checkOnlyTables(t *testing.T, before, after []byte) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("the size went from %d to %d", len(before), len(after))
	}
	f, err := elf.NewFile(bytes.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	masked := bytes.Clone(after)
	copy(masked[64:64+56*len(f.Progs)], before[64:]) // the program headers
	for _, s := range f.Sections {
		switch s.Name {
		case ".dynsym", ".dynstr", ".dynamic", ".gnu.version", ".gnu.version_r":
			copy(masked[s.Offset:s.Offset+s.Size], before[s.Offset:])
		}
	}
	if !bytes.Equal(masked, before) {
		t.Error("something outside the linker's tables changed")
	}
}

func TestReadLibrary(t *testing.T) {
	_, path := makeModel(t, true, true)
	l := library(t, readFile(t, path))
	if !slices.Contains(l.Needed, "libtorch_cpu.so") || !slices.Contains(l.Needed, "libgomp.so.1") {
		t.Errorf("needed: %v", l.Needed)
	}
	classes := map[string]Class{}
	for _, s := range l.Undefined {
		classes[s.Name] = s.Class()
	}
	for name, want := range map[string]Class{
		"aoti_torch_answer": ClassHost, "Sleef_expf8_u10": ClassVectorMath, "GOMP_parallel": ClassOpenMP,
		"omp_get_num_threads": ClassOpenMP, "getppid": ClassSystem, "__cxa_thread_atexit": ClassSystem,
	} {
		if got, ok := classes[name]; !ok || got != want {
			t.Errorf("%s is %v (listed: %v), want %v", name, got, ok, want)
		}
	}
	if l.Weights.Kind != WeightsInside || l.Weights.Size != 64 {
		t.Errorf("weights: %+v", l.Weights)
	}
	at := make([]byte, 3)
	if _, err := bytes.NewReader(readFile(t, path)).ReadAt(at, l.Weights.Offset); err != nil || !bytes.Equal(at, []byte{1, 2, 3}) {
		t.Errorf("weights begin with %v, %v", at, err)
	}
}

// Every prefix of a library is refused or read, and none makes the reader fail
// in another way.
func TestReadLibraryCutShort(t *testing.T) {
	_, path := makeModel(t, true, true)
	b := readFile(t, path)
	for n := 0; n < len(b); n += 13 {
		l, err := ReadLibrary(bytes.NewReader(b[:n]), int64(n))
		if fe := (*FormatError)(nil); err != nil && !errors.As(err, &fe) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err == nil {
			if _, err := l.HostEdits(); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
	}
}

func TestReadLibraryForeign(t *testing.T) {
	for name, b := range map[string]string{
		"macOS":        "\xcf\xfa\xed\xfe" + strings.Repeat("x", 100),
		"Windows":      "MZ" + strings.Repeat("x", 100),
		"unknown kind": strings.Repeat("x", 100),
		"only 3 bytes": "abc",
	} {
		_, err := ReadLibrary(strings.NewReader(b), int64(len(b)))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Names that share bytes with one that must stay are not changed behind its back.
func TestRenameShared(t *testing.T) {
	dir := t.TempDir()
	// The linker keeps "Xaoti_torch_answer" once and lets the other name point into it.
	write(t, dir, "m.c", "int aoti_torch_answer(void); int Xaoti_torch_answer(void) { return aoti_torch_answer(); }")
	compile(t, dir, "-shared", "-fPIC", "-O1", "-nostdlib", "-o", "m.so", "m.c")
	l := library(t, readFile(t, filepath.Join(dir, "m.so")))
	_, err := l.HostEdits()
	if fe := (*FormatError)(nil); !errors.As(err, &fe) || !strings.Contains(err.Error(), "shares its bytes") {
		t.Errorf("got %v", err)
	}
}

func TestPrivateLoads(t *testing.T) {
	dir, path := makeModel(t, true, true)
	b := readFile(t, path)
	write(t, dir, "main.c", `
#include <dlfcn.h>
#include <stdio.h>
int lori_torch_answer(int x) { return 40 + x; }
float Loris_expf8_u10(float x) { return x; }
void LOMP_parallel(void (*f)(void *), void *p, unsigned n, unsigned m) { f(p); }
int lmp_get_num_threads(void) { return 1000; }
int __lor_thread_atexit(void *f, void *o, void *d) { return 0; }
int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		void *h = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!h) { puts(dlerror()); return 1; }
		printf("%d ", ((int (*)(void))dlsym(h, "run"))());
		dlclose(h);
		printf("%s\n", dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD) ? "pinned" : "gone");
	}
	return 0;
}`)
	compile(t, dir, "-rdynamic", "-o", "main", "main.c", "-ldl")
	p, err := NewPrivate(context.Background(), Source{R: bytes.NewReader(b), Size: int64(len(b)), Name: "m.so"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cmd := exec.Command(filepath.Join(dir, "main"), "/proc/self/fd/3", "/proc/self/./fd/3")
	cmd.ExtraFiles = []*os.File{p.File()}
	out, err := cmd.CombinedOutput()
	if want := "1046 gone\n1046 gone\n"; err != nil || string(out) != want {
		t.Errorf("the copy gave %q, %v; want %q", out, err, want)
	}
}

func TestPrivate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("private copies are made on Linux")
	}
	dir, path := makeModel(t, true, true)
	b := readFile(t, path)
	src := Source{R: bytes.NewReader(b), Size: int64(len(b)), CRC: crc32.ChecksumIEEE(b), Checked: true, Name: "../a b/model.so"}
	p, err := NewPrivate(context.Background(), src, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, err := os.ReadFile(p.Path())
	if err != nil || !bytes.Equal(got, patched(t, b)) {
		t.Errorf("the copy at %s differs, %v", p.Path(), err)
	}
	if _, err := p.File().WriteAt([]byte("x"), 0); err == nil {
		t.Error("the copy can be written")
	}
	if err := p.File().Truncate(0); err == nil {
		t.Error("the copy can be cut")
	}
	seen := map[string]bool{p.Path(): true}
	for range 50 {
		q, err := NewPrivate(context.Background(), Source{R: bytes.NewReader(b), Size: int64(len(b)), Unchanged: true}, dir)
		if err != nil {
			t.Fatal(err)
		}
		if seen[q.Path()] {
			t.Fatalf("path %s was used before", q.Path())
		}
		seen[q.Path()] = true
		if got, err := os.ReadFile(q.Path()); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("the unchanged copy differs, %v", err)
		}
		q.Close()
	}
	ents, _ := filepath.Glob(filepath.Join(dir, "loris-*"))
	if len(ents) > 0 {
		t.Errorf("left behind: %v", ents)
	}
}

func TestPrivateRefuses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("private copies are made on Linux")
	}
	_, path := makeModel(t, true, true)
	b := readFile(t, path)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		src  Source
		want string
	}{
		"cut short":      {context.Background(), Source{R: bytes.NewReader(b[:500]), Size: int64(len(b))}, "ends after fewer"},
		"wrong checksum": {context.Background(), Source{R: bytes.NewReader(b), Size: int64(len(b)), Checked: true, CRC: 1}, "checksum"},
		"canceled":       {canceled, Source{R: bytes.NewReader(b), Size: int64(len(b))}, "canceled"},
		"not a library":  {context.Background(), Source{R: strings.NewReader(strings.Repeat("x", 99)), Size: 99}, "unknown kind"},
	} {
		_, err := NewPrivate(tc.ctx, tc.src, "")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := NewPrivate(context.Background(), Source{R: io.LimitReader(bytes.NewReader(b), 10), Size: int64(len(b))}, "")
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut short: %v", err)
	}
}

func TestHostName(t *testing.T) {
	for from, to := range map[string]string{
		"aoti_torch_clone": "lori_torch_clone", "Sleef_expf16_u10": "Loris_expf16_u10", "GOMP_barrier": "LOMP_barrier",
		"omp_get_thread_num": "lmp_get_thread_num", "__cxa_thread_atexit": "__lor_thread_atexit",
		"__cxa_thread_atexit_impl": "__lor_thread_atexit_impl", "__cxa_atexit": "__cxa_atexit", "malloc": "malloc",
	} {
		if got := HostName(from); got != to || len(got) != len(from) {
			t.Errorf("%s becomes %s, want %s", from, got, to)
		}
	}
}
