package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/model"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/onnx"
	"github.com/loris-ml/loris/torchexport"
)

// isModel reports whether a file is an imported model by its name.
func isModel(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".onnx" || ext == ".pt2"
}

// importedModel is what the packages that read models return.
type importedModel interface {
	model.Model
	Forward(inputs ...*loris.Tensor) []*loris.Tensor
}

// loadModel reads an imported model with its weights made by m.
func loadModel(ctx context.Context, path string, m loris.Maker) (importedModel, error) {
	if strings.ToLower(filepath.Ext(path)) == ".onnx" {
		return onnx.Load(ctx, path, onnx.With(m))
	}
	return torchexport.Load(ctx, path, torchexport.With(m))
}

// runModel runs an imported model once. Its outputs have the names of the signature.
func runModel(ctx context.Context, path string, d ir.Device, given *inputFile, r *rand.Rand, sizes map[string]int64) (outs []tensors.Tensor, err error) {
	s, err := loris.New(loris.WithDevice(d))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	m, err := loadModel(ctx, path, s.With())
	if err != nil {
		return nil, err
	}
	sig := m.Signature()
	bound, err := bindModel(path, sig, given, r, sizes)
	if err != nil {
		return nil, err
	}
	in := make([]*loris.Tensor, len(bound))
	for i, t := range bound {
		in[i] = s.With().FromBytes(t.Data, t.Shape)
	}
	results, err := m.Call(ctx, in...)
	if err != nil {
		return nil, err
	}
	data, err := loris.Fetch(ctx, results...)
	if err != nil {
		return nil, err
	}
	for i, t := range results {
		outs = append(outs, tensors.Tensor{Name: sig.Outputs[i].Name, Shape: t.Shape(), Data: data[i]})
	}
	return outs, nil
}

// bindModel finds the inputs of a signature in a file, or makes them up where r is not nil. The model
// itself checks sizes that vary.
func bindModel(path string, sig *model.Signature, f *inputFile, r *rand.Rand, sizes map[string]int64) ([]tensors.Tensor, error) {
	if err := checkSizes(sig, sizes); err != nil {
		return nil, err
	}
	p := &graph.Program{Name: path}
	for i, a := range sig.Inputs {
		shape, err := givenShape(f, i, a, r != nil, sizes)
		if err != nil {
			return nil, err
		}
		p.Params = append(p.Params, graph.Param{Name: a.Name, Shape: shape})
	}
	return bind(p, f, r)
}

// checkSizes refuses names that no size of an input has.
func checkSizes(sig *model.Signature, sizes map[string]int64) error {
	have := map[string]bool{}
	for _, a := range sig.Inputs {
		for _, d := range a.Dims {
			if d.Size < 0 && d.Symbol != "" {
				have[d.Symbol] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if have[name] {
			continue
		}
		if len(have) == 0 {
			return command.Usagef("--size %s: no size of the model varies", name)
		}
		return command.Usagef("--size %s: the sizes of the model that vary are %s", name, strings.Join(slices.Sorted(maps.Keys(have)), ", "))
	}
	return nil
}

// givenShape is the shape of an input: that of the file's tensor, or one made up of the sizes.
func givenShape(f *inputFile, i int, a model.Arg, random bool, sizes map[string]int64) (ir.Shape, error) {
	if info, ok := f.find(i, a.Name); ok {
		s, err := tensorfile.Shape(info)
		if err != nil || a.DType.Valid() && s.DType() != a.DType {
			return s, fmt.Errorf("%s: input %q: expected %v, given %v: %w", f.path, info.Name, a, s, errors.Join(err, ir.ErrDType))
		}
		return s, nil
	}
	if !random {
		return ir.Shape{}, fmt.Errorf("missing input %v: give --in or --random-inputs", a)
	}
	if !a.DType.Valid() || a.Dims == nil {
		return ir.Shape{}, fmt.Errorf("input %v cannot be made up: the file does not tell its shape", a)
	}
	dims := make([]int, len(a.Dims))
	for k, d := range a.Dims {
		dims[k] = d.Size
		if d.Size >= 0 {
			continue
		}
		size, ok := sizes[d.Symbol]
		if !ok {
			size = int64(max(d.Min, 1))
		}
		if size < 0 || size > 1<<40 {
			return ir.Shape{}, command.Usagef("--size %s=%d is no size", d.Symbol, size)
		}
		dims[k] = int(size)
	}
	return ir.NewShape(a.DType, dims)
}

func newInspectModel() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect MODEL.onnx|MODEL.pt2|PROGRAM.lir",
		Short: "Tell what a model takes, gives and holds, without running it",
		Long: `Tell what a model takes, gives and holds, without running it: a model of ONNX
(.onnx), a program of torch.export (.pt2) or one in text form (.lir). What it needs
and Loris lacks is the error. For packages that PyTorch compiled see loris aoti inspect.`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"onnx", "pt2", "lir"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(c *cobra.Command, args []string) error {
			r, err := reportOf(c, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(c.OutOrStdout(), r)
			}
			return r.write(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// modelReport is what inspect prints.
type modelReport struct {
	Kind       string   `json:"kind"`
	Inputs     []string `json:"inputs"`
	Outputs    []string `json:"outputs"`
	Parameters int      `json:"parameters"` // trainable elements
	Weights    []string `json:"weights"`
}

func reportOf(c *cobra.Command, path string) (*modelReport, error) {
	if !isModel(path) {
		p, err := command.ReadProgram(c, path)
		if err != nil {
			return nil, err
		}
		r := &modelReport{Kind: "program in text form"}
		for _, q := range p.Params {
			r.Inputs = append(r.Inputs, fmt.Sprintf("%s: %v", q.Name, q.Shape))
		}
		for i, id := range p.Returns {
			r.Outputs = append(r.Outputs, fmt.Sprintf("out%d: %v", i, p.Shape(id)))
		}
		return r, nil
	}
	m, err := loadModel(c.Context(), path, loris.With())
	if err != nil {
		return nil, err
	}
	r := &modelReport{Kind: "program of torch.export", Parameters: nn.NumParams(m)}
	if o, ok := m.(*onnx.Model); ok {
		r.Kind = strings.TrimSuffix(fmt.Sprintf("model of ONNX, opset %d, written by %s", o.Opset(), o.Producer()), ", written by ")
	}
	for _, a := range m.Signature().Inputs {
		r.Inputs = append(r.Inputs, a.String())
	}
	for _, a := range m.Signature().Outputs {
		r.Outputs = append(r.Outputs, a.String())
	}
	for name, v := range m.Params() {
		r.Weights = append(r.Weights, fmt.Sprintf("%s: %v", name, v.Shape()))
	}
	for name, v := range m.Buffers() {
		r.Weights = append(r.Weights, fmt.Sprintf("%s: %v (buffer)", name, v.Shape()))
	}
	return r, nil
}

func (r *modelReport) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\n", r.Kind)
	for _, part := range []struct {
		name string
		list []string
	}{{"input", r.Inputs}, {"output", r.Outputs}, {"weight", slices.Clone(r.Weights)}} {
		for _, line := range part.list {
			fmt.Fprintf(t, "%s\t%s\n", part.name, line)
		}
	}
	fmt.Fprintf(t, "trainable\t%d\n", r.Parameters)
	return t.Flush()
}
