// Package export writes packages that PyTorch and Loris run: a Program becomes an AOTInductor
// package (".pt2") with machine code, without a compiler, without Python, and on any platform. See
// docs/aoti-export.md.
//
// The package runs on Linux on x86-64 processors with AVX2: in aoti.Load, torch._inductor's
// aoti_load_package and PyTorch's C++ runners. Fused loops are machine code of Loris, for AVX2 and for
// AVX-512; matrix products and the like are calls of functions that libtorch has. With Options.Device
// "cuda" it runs on a GPU, and all but products are kernels of Loris.
package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/nn"
)

// Options say what a package holds besides code.
type Options struct {
	// Model is the name of the model in the package, "model" if empty. PyTorch's aoti_load_package
	// finds no other: torch._inductor.package.load_package(path, model_name=…) does.
	Model string
	// Constants are the values of those parameters of the Program that are constants, by the
	// parameters' names, under which they are found for updates. The others are inputs.
	Constants map[string]aoti.ConstantValue
	// Assign has the results that a run writes to a parameter instead of returning them, by the
	// parameter's name: the number among all that the Program, or the function, returns. A constant
	// keeps the value for the next run (a counter, a running mean); an input is the caller's tensor,
	// which is overwritten (a cache of keys). The inputs of a function are "input0", "input1", …; what
	// it assigns to variables needs no mention.
	Assign map[string]int
	// DynamicShapes says which sizes of the inputs vary, by input and dimension; at most two names. The
	// others are those of the example inputs, or of the Program's parameters. It is an error wrapping
	// backend.ErrUnsupported if what is computed depends on them in other ways than by sizes.
	DynamicShapes []map[int]Dim
	// Module names the variables that a function uses, see Function: its parameters and buffers, by
	// their names in it.
	Module nn.Module
	// Torch is the version of PyTorch whose archive is written, such as "2.11"; empty stands for the
	// newest known. PyTorch 2.6 expects another root folder than its successors. The library in the
	// archive is the same for all.
	Torch string
	// Device is what the package runs on: "cpu", which empty stands for, or "cuda", a GPU of NVIDIA's from
	// compute capability 8.0 on. The latter needs a build with the tag cuda and NVRTC, but no GPU.
	Device string
	// Architectures are those of the GPU's kernels: machine code such as "sm_90", which runs on GPUs of
	// that generation, and PTX such as "compute_80", from which a driver makes code for that and all later
	// ones. Empty stands for sm_80, sm_90 and compute_80.
	Architectures []string
	// Emitter is what makes the library: empty stands for this package, which writes machine code for
	// x86-64 itself, and "c++" for a compiler, which makes it of a source for any processor.
	Emitter string
	// Compiler is the command of the Emitter "c++", with arguments if need be:
	// "aarch64-linux-gnu-g++ -mcpu=neoverse-n1". Empty stands for the environment's CXX or, without one,
	// the first of g++, c++ and clang++ that is there.
	Compiler string
}

// Dim is a size that varies between bounds, which belong to it: a batch, the length of a sequence.
// Dimensions whose Dims have one name are of one size.
type Dim struct {
	Name     string
	Min, Max int
}

// Program writes a package of a Program to w. Sizes are those of the Program's parameters, but for
// those of Options.DynamicShapes, for which shapes are inferred again.
//
// It returns an error wrapping backend.ErrUnsupported that names each op, with its line, for which
// there is neither machine code nor a function of libtorch; one wrapping ir.ErrArg or ir.ErrShape for
// Options that do not fit the Program; one wrapping exec.ErrNotFound if there is no compiler, and a
// *CompileError if it fails; and what w returns. It blocks while it writes and looks at ctx
// before it does.
func Program(ctx context.Context, w io.Writer, p *graph.Program, o Options) error {
	if err := ir.CheckContext("export", ctx); err != nil {
		return err
	}
	var inputs []ir.Shape
	for _, q := range p.Params {
		if _, ok := o.Constants[q.Name]; !ok {
			inputs = append(inputs, q.Shape)
		}
	}
	symbols, err := symbolsOf(o.DynamicShapes, inputs)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return (&variants{
		symbols: symbols, inputs: inputs,
		at: func(shapes []ir.Shape) (variant, error) { return programAt(p, o.Constants, shapes) },
		model: func(v *variant) (*model, error) {
			m := &model{}
			if err := m.constantsOf(v.program, o.Constants); err != nil {
				return nil, err
			}
			return m, m.assignAll(o.Assign, len(p.Returns))
		},
	}).write(ctx, w, &o)
}

// plan plans a Program whose parameters are known, for one choice of sizes or several.
func plan(ctx context.Context, models []*model, programs []*graph.Program, o *Options) (*encoder, error) {
	m := models[0]
	m.name = cmp.Or(o.Model, "model")
	if m.name != identifier(m.name, map[string]bool{}) {
		return nil, fmt.Errorf("%w: %q cannot be the name of a model: it becomes that of files", ir.ErrArg, m.name)
	}
	var err error
	if m.root, err = rootOf(o.Torch, m.name); err != nil {
		return nil, err
	}
	m.hash = programs[0].Hash()
	if m.device == deviceCUDA {
		optimised, err := m.planCUDA(ctx, programs[0], o)
		if err == nil {
			err = m.describe(optimised)
		}
		if err != nil {
			return nil, err
		}
		return encode(models, false)
	}
	plans, optimised, err := cpu.PlanAhead(programs, m.seed(), m.stays)
	if err != nil {
		return nil, err
	}
	for i, m := range models {
		m.plan = plans[i]
		if err := m.describe(optimised[i]); err != nil {
			return nil, err
		}
	}
	return encode(models, o.Emitter == emitCXX)
}

// write writes the package.
func (vs *variants) write(ctx context.Context, w io.Writer, o *Options) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("export: %w", err)
		}
	}()
	compiler, err := o.compiler()
	if err == nil {
		vs.device, err = o.checkDevice()
	}
	if err != nil {
		return err
	}
	e, err := vs.plan(ctx, o)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	link := e.link
	if compiler != nil {
		link = func() (*library, error) { return e.compile(ctx, compiler) }
	}
	lib, err := link()
	if err != nil {
		return err
	}
	defer lib.remove()
	defer runtime.KeepAlive(e.m.values)
	return e.m.archive(w, lib)
}

// constantsOf finds which parameters are constants.
func (m *model) constantsOf(p *graph.Program, values map[string]aoti.ConstantValue) error {
	used := map[string]bool{}
	for _, q := range p.Params {
		v, ok := values[q.Name]
		if !ok {
			m.addInput(q.Name, q.Shape)
			continue
		}
		if used[q.Name] {
			return fmt.Errorf("%w: two parameters are called %q", ir.ErrArg, q.Name)
		}
		used[q.Name] = true
		if v.Shape != q.Shape || len(v.Data) != q.Shape.Bytes() {
			return fmt.Errorf("%w: constant %q is %v with %d bytes, the parameter %v", ir.ErrShape, q.Name, v.Shape, len(v.Data), q.Shape)
		}
		m.addConstant(q.Name, q.Shape, v.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !used[name] {
			return fmt.Errorf("%w: the program has no parameter %q", ir.ErrArg, name)
		}
	}
	return nil
}

// assignAll notes what a caller wants assigned, of a number of results.
func (m *model) assignAll(all map[string]int, results int) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		to := source{fromInput, slices.IndexFunc(m.inputs, func(q param) bool { return q.fqn == name })}
		if to.index < 0 {
			to = source{fromConstant, slices.IndexFunc(m.constants, func(q param) bool { return q.fqn == name })}
		}
		if n := all[name]; to.index < 0 {
			return fmt.Errorf("%w: there is no parameter %q to assign", ir.ErrArg, name)
		} else if n < 0 || n >= results {
			return fmt.Errorf("%w: result %d is to be assigned to %q, and there are %d", ir.ErrArg, n, name, results)
		} else if err := m.assign(to, n); err != nil {
			return err
		}
	}
	return nil
}

// identifier returns a name of C for another, and notes it: names of constants and inputs are words
// in the source that goes with a package.
func identifier(s string, taken map[string]bool) string {
	b := []byte(s)
	for i, c := range b {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || b[0] >= '0' && b[0] <= '9' {
		b = append([]byte{'p'}, b...)
	}
	name := string(b)
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", b, n)
	}
	taken[name] = true
	return name
}
