package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/ir"
)

// loadFlags are the flags of commands that load a model.
type loadFlags struct {
	model, libtorch, weights string
	instances, threads       int
	in                       string
	random                   bool
	seed                     uint64
	sizes                    map[string]int64
	// ranks are those that the model computes with; nil for a model on its own.
	ranks *dist.Group
}

func (f *loadFlags) add(c *cobra.Command, random string) {
	modelFlag(c, &f.model)
	c.Flags().StringVar(&f.libtorch, "libtorch", "", "`path` of a libtorch_cpu.so to run on instead of this host")
	c.Flags().StringVar(&f.weights, "weights", "", "safetensors `file` of constants to update before the first run")
	c.Flags().IntVar(&f.threads, "threads", 0, "threads of parallel code; 0 uses all CPUs")
	c.Flags().StringVar(&f.in, "in", "", "safetensors `file` of inputs")
	c.Flags().BoolVar(&f.random, "random-inputs", false, random)
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of made-up inputs")
	c.Flags().StringToInt64Var(&f.sizes, "size", nil, "dynamic sizes of made-up inputs, such as s0=16")
}

// load loads the model and updates its constants.
func (f *loadFlags) load(ctx context.Context, path string, instances int) (*aoti.Runner, error) {
	opts := []aoti.Option{aoti.ModelName(f.model), aoti.Instances(instances), aoti.Threads(f.threads)}
	if f.libtorch != "" {
		opts = append(opts, aoti.WithLibtorch(f.libtorch))
	}
	if f.ranks != nil {
		opts = append(opts, aoti.Groups(map[string]aoti.Group{"0": f.ranks}))
	}
	r, err := aoti.Load(ctx, path, opts...)
	if err != nil || f.weights == "" {
		return r, err
	}
	if err := updateFrom(ctx, r, f.weights); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// updateFrom sets those constants that the file has.
func updateFrom(ctx context.Context, r *aoti.Runner, path string) error {
	all, _, err := tensors.ReadFile(path)
	if err != nil {
		return err
	}
	values := map[string]aoti.Buffer{}
	defer func() {
		for _, b := range values {
			b.Release()
		}
	}()
	for name, t := range all {
		if values[name], err = bufferOf(t); err != nil {
			delete(values, name)
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := r.Update(ctx, values, aoti.Active, aoti.Partial()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func bufferOf(t tensors.Tensor) (aoti.Buffer, error) {
	b, err := aoti.FromBytes(t.Data, t.Shape.DType(), t.Shape.Dims()...)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return b, nil
}

// inputs returns the model's inputs: of --in by name or as in0, in1, …, and made
// up where that is wanted.
func (f *loadFlags) inputs(r *aoti.Runner, path string) (bufs []aoti.Buffer, err error) {
	defer func() {
		if err != nil {
			release(bufs)
		}
	}()
	given := map[string]tensors.Tensor{}
	if f.in != "" {
		if given, _, err = tensors.ReadFile(f.in); err != nil {
			return nil, err
		}
	}
	var shapes []ir.Shape
	if f.random {
		if shapes, err = r.ExampleShapes(f.sizes); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	rng := rand.New(rand.NewPCG(f.seed, 0))
	var missing []string
	for i, name := range r.InputNames() {
		t, ok := given[name]
		if !ok {
			t, ok = given[fmt.Sprintf("in%d", i)]
		}
		switch {
		case ok:
		case f.random:
			t = tensors.Random(name, shapes[i], rng)
		default:
			missing = append(missing, fmt.Sprintf("%q (or in%d)", name, i))
			continue
		}
		b, err := bufferOf(t)
		if err != nil {
			return bufs, err
		}
		bufs = append(bufs, b)
	}
	if missing != nil {
		where := "give --in or --random-inputs"
		if f.in != "" {
			where = "not in " + f.in
		}
		return bufs, fmt.Errorf("missing input %s: %s", strings.Join(missing, ", "), where)
	}
	return bufs, nil
}

func newAOTIRun() *cobra.Command {
	var f loadFlags
	var out, compare string
	var rtol, atol float64
	var ranks bool
	c := &cobra.Command{
		Use:   "run PACKAGE",
		Short: "Run a compiled model once",
		Long: `Run a compiled model once. Inputs come from the safetensors file of --in, by the
model's names or as in0, in1, …; other tensors of the file are ignored. Outputs
are written to the file of --out as out0, out1, …, or printed.

--compare reads what the outputs should be from another file (out0, out1, …, or
the model's names) and prints the largest errors. An element is past the
tolerances if its error exceeds atol + rtol·|wanted|; then the exit code is 1. The
tolerances are by default those of torch.testing.assert_close for the dtype.

With --dist the model computes with all ranks of the job that mpiexec, torchrun or
loris launch has started, each of which runs this command: they are the group that
PyTorch calls "0". {rank} in the names of files is the number of the rank.

The file of --out appears whole or not at all. A symbolic link is followed, and a
device or a FIFO is written to; other hard links of the file keep what they have.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: packageArgs,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if f.instances < 1 {
				return command.Usagef("--instances is %d: it takes at least one", f.instances)
			}
			if ranks {
				leave, failed := f.join(c.Context(), &out, &compare)
				if failed != nil {
					return failed
				}
				defer func() { err = errors.Join(err, leave()) }()
			}
			outs, err := f.run(c.Context(), args[0])
			if err != nil {
				return err
			}
			if out != "" {
				if err := tensors.WriteFile(out, outs, nil); err != nil {
					return err
				}
			}
			if compare != "" {
				tol := tolerances{rtol, atol, c.Flags().Changed("rtol"), c.Flags().Changed("atol")}
				return compareOutputs(c, outs, compare, tol)
			}
			for _, t := range outs {
				if out == "" {
					fmt.Fprintf(c.OutOrStdout(), "%s: %v\n%v\n", t.Name, t.Shape, t)
				}
			}
			return nil
		},
	}
	f.add(c, "make up the inputs that are missing")
	c.Flags().IntVar(&f.instances, "instances", 1, "instances of the model to make")
	c.Flags().BoolVar(&ranks, "dist", false, "compute with all ranks of the job that mpiexec, torchrun or loris launch has started")
	c.Flags().StringVar(&out, "out", "", "safetensors `file` for the outputs; printed if not given")
	c.Flags().StringVar(&compare, "compare", "", "safetensors `file` of wanted outputs")
	c.Flags().Float64Var(&rtol, "rtol", 0, "relative tolerance of --compare; by default the dtype's")
	c.Flags().Float64Var(&atol, "atol", 0, "absolute tolerance of --compare; by default the dtype's")
	return c
}

// join makes the run one of all ranks of the job. It puts the rank into the names of files, those of the
// flags and more.
func (f *loadFlags) join(ctx context.Context, more ...*string) (leave func() error, err error) {
	if f.ranks, err = dist.Init(ctx); err != nil {
		return nil, err
	}
	for _, name := range append(more, &f.in, &f.weights) {
		*name = strings.ReplaceAll(*name, "{rank}", strconv.Itoa(f.ranks.Rank()))
	}
	return func() error { return f.ranks.Close(context.WithoutCancel(ctx)) }, nil
}

func (f *loadFlags) run(ctx context.Context, path string) (outs []tensors.Tensor, err error) {
	r, err := f.load(ctx, path, f.instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in, err := f.inputs(r, path)
	if err != nil {
		return nil, err
	}
	defer release(in)
	results, err := r.Run(ctx, in...)
	if err != nil {
		return nil, err
	}
	defer release(results)
	for i, b := range results {
		data, err := b.Bytes(ctx)
		if err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		outs = append(outs, tensors.Tensor{Name: fmt.Sprintf("out%d", i), Shape: b.Shape(), Data: slices.Clone(data)})
	}
	return outs, nil
}

// tolerances has the tolerances of the flags and whether they are set.
type tolerances struct {
	rtol, atol       float64
	rtolSet, atolSet bool
}

func (t tolerances) of(d ir.DType) (rtol, atol float64) {
	rtol, atol = tensors.Tolerances(d)
	if t.rtolSet {
		rtol = t.rtol
	}
	if t.atolSet {
		atol = t.atol
	}
	return rtol, atol
}

// compareOutputs prints a table of errors and fails if one is past the
// tolerances.
func compareOutputs(c *cobra.Command, outs []tensors.Tensor, path string, tol tolerances) error {
	wanted, _, err := tensors.ReadFile(path)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "output\tshape\tlargest absolute error\tlargest relative error\tequal\tpast tolerances")
	past := 0
	for i, got := range outs {
		want, ok := wanted[got.Name]
		if !ok {
			want, ok = wanted[fmt.Sprintf("output%d", i)]
		}
		if !ok {
			return fmt.Errorf("%s: no tensor %q to compare with", path, got.Name)
		}
		rtol, atol := tol.of(want.Shape.DType())
		d, err := tensors.Compare(got, want, rtol, atol)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		past += d.Past
		fmt.Fprintf(t, "%s\t%v\t%.3g\t%.3g\t%s\t%d\n", got.Name, got.Shape, d.MaxAbs, d.MaxRel, percent(d.Exact, d.Elements), d.Past)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if past > 0 {
		return fmt.Errorf("%d elements are past the tolerances", past)
	}
	return nil
}

func percent(part, whole int) string {
	if whole == 0 {
		return "100 %"
	}
	return fmt.Sprintf("%.4g %%", math.Floor(1e4*float64(part)/float64(whole))/1e2)
}
