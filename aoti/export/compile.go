package export

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/loris-ml/loris/aoti/internal/glue"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// emitCXX is the Emitter that has a compiler make the library.
const emitCXX = "c++"

// CompileError says that a compiler failed.
type CompileError struct {
	Command string // with its arguments
	Output  string // what it printed
	Err     error  // how it ended
}

// Error says which command failed, and how.
func (e *CompileError) Error() string {
	return fmt.Sprintf("%v: %s\n%s", e.Err, e.Command, strings.TrimSpace(e.Output))
}

// Unwrap returns how the command ended.
func (e *CompileError) Unwrap() error { return e.Err }

// compiler returns the command that makes the library, nil if none is needed.
func (o *Options) compiler() ([]string, error) {
	switch {
	case o.Emitter == "" && o.Compiler == "":
		return nil, nil
	case o.Emitter == "":
		return nil, fmt.Errorf(`%w: a Compiler is given without the Emitter "c++"`, ir.ErrArg)
	case o.Emitter != emitCXX:
		return nil, fmt.Errorf(`%w: there is no Emitter %q: "c++" or none`, ir.ErrArg, o.Emitter)
	}
	given := strings.Fields(o.Compiler)
	if len(given) == 0 {
		given = strings.Fields(os.Getenv("CXX"))
	}
	names := []string{"g++", "c++", "clang++"}
	if len(given) > 0 {
		names = given[:1]
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return append([]string{path}, given[min(1, len(given)):]...), nil
		}
	}
	return nil, fmt.Errorf(`%w: the Emitter "c++" needs a compiler, and %s is not here: install one, or name it by Compiler or CXX`, exec.ErrNotFound, strings.Join(names, ", "))
}

// kernelSource writes all kernels as functions, and numbers them.
func (e *encoder) kernelSource() {
	var b, table strings.Builder
	b.WriteString(cxx.Prelude)
	for i, k := range e.m.plan.Kernels {
		name := fmt.Sprint("kernel", i)
		b.WriteString(cxx.Loop(name, k.Loop))
		table.WriteString(name + ", ")
		e.kernels = append(e.kernels, [2]int64{int64(i), int64(i)})
	}
	fmt.Fprintf(&b, "extern \"C\" { extern void (*const loris_kernels[])(const Frame*); void (*const loris_kernels[])(const Frame*) = {%s0}; }\n", table.String())
	e.code = []byte(b.String())
}

// defined notes the error of a kernel that C++ does not have.
func (e *encoder) defined(kernel int, step string) {
	if !e.compiled || kernel >= len(e.m.plan.Kernels) {
		return
	}
	if err := cxx.Defined(e.m.plan.Kernels[kernel].Loop); err != nil {
		e.err = errors.Join(e.err, fmt.Errorf("%w: %s: %w", backend.ErrUnsupported, step, err))
	}
}

// compile makes the library with a compiler: of the object's source, of the kernels' and of the plan.
func (e *encoder) compile(ctx context.Context, compiler []string) (lib *library, err error) {
	dir, err := os.MkdirTemp("", "loris-export-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	if err := e.writeSources(dir); err != nil {
		return nil, err
	}
	for _, args := range e.commands(dir) {
		c := exec.CommandContext(ctx, compiler[0], append(append([]string(nil), compiler[1:]...), args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &CompileError{Command: strings.Join(c.Args, " "), Output: string(out), Err: err}
		}
	}
	return openLibrary(dir)
}

// commands returns the arguments of the runs of the compiler, in a folder of sources.
func (e *encoder) commands(dir string) [][]string {
	common := []string{"-c", "-fPIC", "-fvisibility=hidden", "-ffile-prefix-map=" + dir + "=."}
	objects := []string{"-shared", "-o", "model.so", "kernels.o", "data.o"}
	c := append(append([]string{}, common...), "-x", "c", "-std=gnu11", "-O2", "-DLORIS_COMPILED")
	for _, f := range glueSources() {
		c = append(c, f+sourceSuffix)
		objects = append(objects, f+".o")
	}
	return [][]string{
		append(append(append([]string{}, common...), cxx.Flags()...), "kernels.cpp"),
		c,
		{"-c", "-x", "assembler", "-o", "data.o", "data.s"},
		// The library of that name, which stands for libtorch's until then.
		{"-x", "c", "-shared", "-fPIC", "-Wl,-soname," + neededLibrary, "-o", neededLibrary, "none.c"},
		append(objects, "-Wl,--strip-debug", "-Wl,-z,noexecstack", "-Wl,--no-as-needed", "-L.", "-l:"+neededLibrary, "-Wl,--as-needed", "-lm"),
	}
}

// sourceSuffix is that of C files here: g++ takes all but the first .c for C++, whatever it is told.
const sourceSuffix = ".source"

// glueSources lists the C files of the object for the CPU, without their suffix.
func glueSources() (names []string) {
	files, _ := fs.Glob(glue.Source, "c/*.c") // it fails only for malformed patterns
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".c"); name != "cuda" {
			names = append(names, name)
		}
	}
	return names
}

// writeSources writes what is compiled to a folder.
func (e *encoder) writeSources(dir string) error {
	files, err := fs.ReadDir(glue.Source, "c")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := fs.ReadFile(glue.Source, "c/"+f.Name())
		if err == nil {
			name := f.Name()
			if c, ok := strings.CutSuffix(name, ".c"); ok {
				name = c + sourceSuffix
			}
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	for name, text := range map[string][]byte{"kernels.cpp": e.code, "none.c": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return e.writeData(dir)
}

// writeData writes the words, texts, literals and weights, and a source for an assembler, data.s, that
// gives them the names by which the object knows them.
func (e *encoder) writeData(dir string) error {
	weights, err := os.OpenFile(filepath.Join(dir, glue.Weights), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(e.m.writeWeights(weights), weights.Close()); err != nil {
		return err
	}
	var s strings.Builder
	include := func(symbol string, align int) {
		fmt.Fprintf(&s, ".section .rodata\n.balign %d\n.globl %s\n.hidden %s\n%s: .incbin %q\n", align, symbol, symbol, symbol, filepath.Join(dir, symbol))
	}
	for _, b := range e.blobs() {
		if err := os.WriteFile(filepath.Join(dir, b.Symbol), b.Data, 0o600); err != nil {
			return err
		}
		include(b.Symbol, weightAlign)
	}
	include(glue.Weights, pageBytes)
	for _, end := range []string{"end", "start"} {
		fmt.Fprintf(&s, ".globl %s%s\n", weightBounds, end)
	}
	fmt.Fprintf(&s, "%send:\n.set %sstart, %s\n", weightBounds, weightBounds, glue.Weights)
	fmt.Fprintf(&s, ".section .data.rel.ro,\"aw\"\n.balign 8\n.globl %s\n.hidden %s\n%s:\n", glue.Functions, glue.Functions, glue.Functions)
	for _, f := range e.functions {
		fmt.Fprintf(&s, ".quad %s\n", f)
	}
	s.WriteString(".section .note.GNU-stack,\"\",%progbits\n")
	return os.WriteFile(filepath.Join(dir, "data.s"), []byte(s.String()), 0o600)
}

// pageBytes is what the weights begin at a multiple of: they are mapped.
const pageBytes = 4096

// openLibrary returns the library that a compiler left in a folder.
func openLibrary(dir string) (*library, error) {
	path := filepath.Join(dir, "model.so")
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("what the compiler made: %w", err)
	}
	machine := f.Machine
	f.Close()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	write := func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
	return &library{isa: strings.TrimPrefix(machine.String(), "EM_"), size: info.Size(), write: write, remove: func() { os.RemoveAll(dir) }}, nil
}
