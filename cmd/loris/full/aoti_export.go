package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/atomicfile"
	"github.com/loris-ml/loris/model"
)

// exportFlags are what loris aoti export is told.
type exportFlags struct {
	weights, out, model, torch string
	emitter, compiler          string
	device                     string
	architectures              []string
	assign                     map[string]int
	dynamic                    []string
	sizes                      map[string]int64
}

func newExport() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export PROGRAM --out PACKAGE.pt2",
		Short: "Write a package that PyTorch runs from a program",
		Long: `Write a package, as PyTorch's AOTInductor writes them, from a program in text form
(PROGRAM.lir, or - for standard input) or from a model that loris run takes: ONNX, or what
torch.export.save wrote. Nothing is compiled by others. The package runs on Linux on x86-64
processors with AVX2: in loris aoti run, in torch._inductor.aoti_load_package and in
PyTorch's C++ runners.

Parameters of a program that the safetensors file of --weights has are the package's
constants, the others its inputs. A tensor of the file that is no parameter is an error. A
model has its weights itself. Ops for which there is neither machine code nor a function of
libtorch are an error; all of them are listed.

A size of --dynamic-shapes INPUT:DIMENSION=NAME[MIN:MAX] varies between bounds, which belong
to it; sizes of one NAME are the same, and there may be two NAMEs:

    loris aoti export model.onnx -o model.pt2 --dynamic-shapes 'x:0=batch[1:64]'

All other sizes are those of the program's parameters, or of the model's inputs, where --size
gives those that the model leaves open.

A result of --assign NAME=N is no output: each run writes result number N to the parameter
NAME, which keeps it for the next run if it is a constant, and is overwritten in the
caller's memory if it is an input.

With --emitter c++ a compiler makes the library, of a source for any processor: the
one that --compiler or the environment's CXX names, or g++ or clang++. A cross compiler
makes packages for its processor:

    loris aoti export program.lir -o arm.pt2 --emitter c++ --compiler aarch64-linux-gnu-g++

With --device cuda the package runs on a GPU of NVIDIA's from compute capability 8.0 on. Its kernels
are compiled by NVRTC, so this needs a build with -tags cuda and that library, but no GPU; --arch
names what they are compiled for: machine code such as sm_90, and PTX such as compute_80, from which
drivers make code for all later GPUs.

The file of --out appears whole or not at all. A symbolic link is followed, and a
device or a FIFO is written to; other hard links of the file keep what they have.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: command.ProgramArgs,
		RunE: func(c *cobra.Command, args []string) error {
			export := f.program
			if isModel(args[0]) {
				export = f.imported
			}
			inputs, constants, err := export(c, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s with %d inputs and %d constants\n", f.out, inputs, constants)
			return err
		},
	}
	c.Flags().StringVar(&f.weights, "weights", "", "safetensors `file` of the constants")
	c.Flags().StringVarP(&f.out, "out", "o", "", "`file` for the package")
	c.Flags().StringVar(&f.model, "model", "", "`name` of the model in the package (model if not given, the only one that PyTorch's aoti_load_package finds)")
	c.Flags().StringVar(&f.torch, "torch", "", "`version` of PyTorch whose archive to write, such as 2.6 (the newest if not given)")
	c.Flags().StringToIntVar(&f.assign, "assign", nil, "`NAME=N`: write result number N to a parameter instead of returning it")
	c.Flags().StringArrayVar(&f.dynamic, "dynamic-shapes", nil, "`INPUT:DIMENSION=NAME[MIN:MAX]`: a size that varies")
	c.Flags().StringToInt64Var(&f.sizes, "size", nil, "sizes that a model leaves open, such as batch=16")
	c.Flags().StringVar(&f.device, "device", "", "what the package runs on: cpu (if not given) or cuda")
	c.Flags().StringSliceVar(&f.architectures, "arch", nil, "`architectures` of the kernels of --device cuda (sm_80,sm_90,compute_80 if not given)")
	c.Flags().StringVar(&f.emitter, "emitter", "", "what makes the library: c++ for a compiler (machine code is written directly if not given)")
	c.Flags().StringVar(&f.compiler, "compiler", "", "`command` of --emitter c++ (CXX, or g++, c++ or clang++ if not given)")
	_ = c.MarkFlagRequired("out") // fails only for a flag that doesn't exist
	return c
}

// options returns what is the same for programs and models.
func (f *exportFlags) options() export.Options {
	return export.Options{Model: f.model, Torch: f.torch, Emitter: f.emitter, Compiler: f.compiler, Device: f.device, Architectures: f.architectures}
}

// program exports a program in text form. It returns the numbers of inputs and constants.
func (f *exportFlags) program(c *cobra.Command, path string) (inputs, constants int, err error) {
	if len(f.sizes) > 0 {
		return 0, 0, command.Usagef("--size: a program in text form leaves no size open")
	}
	p, err := command.ReadProgram(c, path)
	if err != nil {
		return 0, 0, err
	}
	o := f.options()
	o.Assign, o.Constants = f.assign, map[string]aoti.ConstantValue{}
	if f.weights != "" {
		all, _, err := tensors.ReadFile(f.weights)
		if err != nil {
			return 0, 0, err
		}
		for name, t := range all {
			o.Constants[name] = aoti.ConstantValue{Shape: t.Shape, Data: t.Data}
		}
	}
	var names []string
	for _, q := range p.Params {
		if _, ok := o.Constants[q.Name]; !ok {
			names = append(names, q.Name)
		}
	}
	if o.DynamicShapes, err = dynamicShapes(f.dynamic, names); err != nil {
		return 0, 0, err
	}
	err = atomicfile.Write(f.out, func(w io.Writer) error { return export.Program(c.Context(), w, p, o) })
	return len(names), len(o.Constants), err
}

// imported exports an imported model. It returns the numbers of inputs and constants.
func (f *exportFlags) imported(c *cobra.Command, path string) (inputs, constants int, err error) {
	if f.weights != "" {
		return 0, 0, command.Usagef("--weights: a model has its weights itself")
	}
	ctx := c.Context()
	s, err := loris.New()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	m, err := loadModel(ctx, path, s.With())
	if err != nil {
		return 0, 0, err
	}
	o := f.options()
	o.Module = m
	names, in, err := exampleInputs(s, m.Signature(), f.sizes)
	if err != nil {
		return 0, 0, err
	}
	if o.DynamicShapes, err = dynamicShapes(f.dynamic, names); err != nil {
		return 0, 0, err
	}
	if o.Assign, err = assignedInputs(f.assign, names); err != nil {
		return 0, 0, err
	}
	for _, list := range []iter.Seq2[string, *loris.Variable]{m.Params(), m.Buffers()} {
		for range list {
			constants++
		}
	}
	err = atomicfile.Write(f.out, func(w io.Writer) error { return export.Function(ctx, w, m.Forward, in, o) })
	return len(in), constants, err
}

// exampleInputs makes inputs of the sizes of a signature, and returns their names.
func exampleInputs(s *loris.Session, sig *model.Signature, sizes map[string]int64) (names []string, in []*loris.Tensor, err error) {
	if err := checkSizes(sig, sizes); err != nil {
		return nil, nil, err
	}
	for i, a := range sig.Inputs {
		shape, err := givenShape(&inputFile{}, i, a, true, sizes)
		if err != nil {
			return nil, nil, err
		}
		names, in = append(names, a.Name), append(in, s.With(loris.As(shape.DType())).Zeros(shape.Dims()...))
	}
	return names, in, nil
}

// assignedInputs gives the inputs of a function the names that package export has for them.
func assignedInputs(assign map[string]int, names []string) (map[string]int, error) {
	out := map[string]int{}
	for name, n := range assign {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, command.Usagef("--assign %s: the inputs are %s", name, strings.Join(names, ", "))
		}
		out["input"+strconv.Itoa(i)] = n
	}
	return out, nil
}

var dynamicForm = regexp.MustCompile(`^(.+):(\d+)=(\w+)\[(\d+):(\d+)\]$`)

// dynamicShapes reads the values of --dynamic-shapes for inputs of some names.
func dynamicShapes(values, names []string) (list []map[int]export.Dim, err error) {
	for _, v := range values {
		m := dynamicForm.FindStringSubmatch(v)
		if m == nil {
			return nil, command.Usagef("--dynamic-shapes %s: want INPUT:DIMENSION=NAME[MIN:MAX], such as x:0=batch[1:64]", v)
		}
		i := slices.Index(names, m[1])
		if i < 0 {
			return nil, command.Usagef("--dynamic-shapes %s: the inputs are %s", v, strings.Join(names, ", "))
		}
		var numbers [3]int
		for k, text := range []string{m[2], m[4], m[5]} {
			if numbers[k], err = strconv.Atoi(text); err != nil {
				return nil, command.Usagef("--dynamic-shapes %s: %v", v, err)
			}
		}
		for len(list) <= i {
			list = append(list, map[int]export.Dim{})
		}
		list[i][numbers[0]] = export.Dim{Name: m[3], Min: numbers[1], Max: numbers[2]}
	}
	return list, nil
}
