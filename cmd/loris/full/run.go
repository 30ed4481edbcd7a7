package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
)

func newRun() *cobra.Command {
	var in, out, device string
	var random bool
	var seed uint64
	var sizes map[string]int64
	c := &cobra.Command{
		Use:   "run PROGRAM.lir|MODEL.onnx|MODEL.pt2",
		Short: "Run a program in text form or an imported model",
		Long: `Run a program in text form (PROGRAM - reads it from standard input), a model of ONNX
or a program of torch.export. For packages that PyTorch compiled see loris aoti run.

Inputs come from the safetensors file of --in: by parameter name, or in0, in1, …
by position. --random-inputs makes up those that are missing: floats from the
standard normal distribution, integers from 0 to 9; sizes of a model that vary are
those of --size, or else the least. Outputs are written to the safetensors file of
--out, or printed: out0, out1, …, those of a model under their names.

The file of --out appears whole or not at all. A symbolic link is followed, and a
device or a FIFO is written to; other hard links of the file keep what they have.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: command.ProgramArgs,
		RunE: func(c *cobra.Command, args []string) error {
			d, be, err := command.ParseDevice(device)
			if err != nil {
				return err
			}
			given, err := openInputs(in)
			if err != nil {
				return err
			}
			defer given.close()
			var r *rand.Rand
			if random {
				r = rand.New(rand.NewPCG(seed, 0))
			}
			var outputs []tensors.Tensor
			if !isModel(args[0]) && len(sizes) > 0 {
				return command.Usagef("--size: no size of a program in text form varies")
			}
			if isModel(args[0]) {
				outputs, err = runModel(c.Context(), args[0], d, given, r, sizes)
			} else {
				outputs, err = runProgram(c, args[0], be, d, given, r)
			}
			if err != nil {
				return err
			}
			if out != "" {
				return tensors.WriteFile(out, outputs, nil)
			}
			for _, t := range outputs {
				fmt.Fprintf(c.OutOrStdout(), "%s: %v\n%v\n", t.Name, t.Shape, t)
			}
			return nil
		},
	}
	c.Flags().StringVar(&in, "in", "", "safetensors `file` of inputs")
	c.Flags().StringVar(&out, "out", "", "safetensors `file` for the outputs; printed if not given")
	c.Flags().BoolVar(&random, "random-inputs", false, "make up the inputs that are missing")
	c.Flags().Uint64Var(&seed, "seed", 0, "seed of --random-inputs")
	c.Flags().StringToInt64Var(&sizes, "size", nil, "sizes of a model's made-up inputs that vary, such as batch=16")
	command.DeviceFlag(c, &device)
	return c
}

// runProgram runs a program in text form.
func runProgram(c *cobra.Command, path string, be backend.Backend, d ir.Device, given *inputFile, r *rand.Rand) ([]tensors.Tensor, error) {
	p, err := command.ReadProgram(c, path)
	if err != nil {
		return nil, err
	}
	inputs, err := bind(p, given, r)
	if err != nil {
		return nil, err
	}
	return execute(c.Context(), p, be, d, inputs)
}

// inputFile is the file of --in, or none.
type inputFile struct {
	path string
	file *safetensors.File
}

func openInputs(path string) (*inputFile, error) {
	if path == "" {
		return &inputFile{}, nil
	}
	f, err := safetensors.Open(path)
	return &inputFile{path, f}, err
}

func (f *inputFile) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// find returns the tensor that is for parameter i: of its name or else of its
// position.
func (f *inputFile) find(i int, name string) (safetensors.Info, bool) {
	if f.file == nil {
		return safetensors.Info{}, false
	}
	if info, ok := f.file.Lookup(name); ok {
		return info, true
	}
	return f.file.Lookup(fmt.Sprintf("in%d", i))
}

// bind returns the program's inputs in order, those that the file lacks made up
// with r unless it is nil. Everything is checked before any data is read.
func bind(p *graph.Program, f *inputFile, r *rand.Rand) ([]tensors.Tensor, error) {
	found := make([]string, len(p.Params)) // the names in the file; "" is none
	used := map[string]bool{}
	var missing []string
	for i, q := range p.Params {
		info, ok := f.find(i, q.Name)
		if !ok || used[info.Name] {
			missing = append(missing, fmt.Sprintf("%q (%v)", q.Name, q.Shape))
			continue
		}
		found[i], used[info.Name] = info.Name, true
		given, err := tensorfile.Shape(info)
		if err != nil {
			return nil, fmt.Errorf("%s: input %q: expected %v: %w", f.path, info.Name, q.Shape, err)
		}
		if given != q.Shape {
			return nil, fmt.Errorf("%s: input %q: expected %v, given %v", f.path, info.Name, q.Shape, given)
		}
	}
	if err := f.checkUnused(p, used); err != nil {
		return nil, err
	}
	if missing != nil && r == nil {
		where := "give --in or --random-inputs"
		if f.file != nil {
			where = "not in " + f.path
		}
		return nil, fmt.Errorf("missing input %s: %s", strings.Join(missing, ", "), where)
	}
	inputs := make([]tensors.Tensor, len(p.Params))
	for i, q := range p.Params {
		if found[i] == "" {
			inputs[i] = tensors.Random(q.Name, q.Shape, r)
			continue
		}
		data, err := f.file.Bytes(found[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		inputs[i] = tensors.Tensor{Name: q.Name, Shape: q.Shape, Data: data}
	}
	return inputs, nil
}

// checkUnused refuses tensors of the file that are no input: most often a
// misspelt name.
func (f *inputFile) checkUnused(p *graph.Program, used map[string]bool) error {
	if f.file == nil {
		return nil
	}
	var unexpected []string
	for _, info := range f.file.Tensors() {
		if !used[info.Name] {
			unexpected = append(unexpected, fmt.Sprintf("%q", info.Name))
		}
	}
	if unexpected == nil {
		return nil
	}
	slices.Sort(unexpected)
	var want []string
	for _, q := range p.Params {
		want = append(want, fmt.Sprintf("%q", q.Name))
	}
	return fmt.Errorf("%s: unexpected input %s: the program takes %s", f.path, strings.Join(unexpected, ", "), listed(want))
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// execute compiles the program for a device and runs it once. The outputs are
// named out0, out1, …
func execute(ctx context.Context, p *graph.Program, be backend.Backend, d ir.Device, inputs []tensors.Tensor) (out []tensors.Tensor, err error) {
	lowered, _ := graph.Optimize(p, graph.Options{Supports: be.Supports})
	m, err := be.Compile(ctx, lowered, d, backend.CompileOptions{})
	if err != nil {
		return nil, fmt.Errorf("compiling @%s for %v: %w", p.Name, d, err)
	}
	defer func() {
		if cerr := m.Close(); err == nil {
			err = cerr
		}
	}()
	bufs := make([]backend.Buffer, 0, len(inputs))
	defer func() { release(bufs) }()
	for _, t := range inputs {
		b, err := be.Upload(ctx, t.Shape, d, t.Data)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", t.Name, err)
		}
		bufs = append(bufs, b)
	}
	results, err := m.Run(ctx, bufs, nil)
	if err != nil {
		return nil, fmt.Errorf("running @%s: %w", p.Name, err)
	}
	defer release(results)
	for i, b := range results {
		data, err := b.Bytes(ctx)
		if err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		out = append(out, tensors.Tensor{Name: fmt.Sprintf("out%d", i), Shape: b.Shape(), Data: slices.Clone(data)})
	}
	return out, nil
}

func release(bufs []backend.Buffer) {
	for _, b := range bufs {
		b.Release()
	}
}
