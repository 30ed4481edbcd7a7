package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/atomicfile"
)

func newExport() *cobra.Command {
	var weights, out, model, torch string
	var assign map[string]int
	c := &cobra.Command{
		Use:   "export PROGRAM.lir --out PACKAGE.pt2",
		Short: "Write a package that PyTorch runs from a program",
		Long: `Write a package, as PyTorch's AOTInductor writes them, from a program in text form
(PROGRAM - reads it from standard input). Nothing is compiled by others and nothing is
run. The package runs on Linux on x86-64 processors with AVX2: in loris aoti run, in
torch._inductor.aoti_load_package and in PyTorch's C++ runners.

Parameters of the program that the safetensors file of --weights has are the model's
constants, the others its inputs. A tensor of the file that is no parameter is an error,
and so are ops for which there is neither machine code nor a function of libtorch; all
of them are listed.

A result of --assign NAME=N is no output: each run writes result number N to the parameter
NAME, which keeps it for the next run if it is a constant, and is overwritten in the
caller's memory if it is an input.

The file of --out appears whole or not at all. A symbolic link is followed, and a
device or a FIFO is written to; other hard links of the file keep what they have.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: programArgs,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := readProgram(c, args[0])
			if err != nil {
				return err
			}
			o := export.Options{Model: model, Torch: torch, Assign: assign, Constants: map[string]aoti.ConstantValue{}}
			if weights != "" {
				all, _, err := tensors.ReadFile(weights)
				if err != nil {
					return err
				}
				for name, t := range all {
					o.Constants[name] = aoti.ConstantValue{Shape: t.Shape, Data: t.Data}
				}
			}
			if err := atomicfile.Write(out, func(w io.Writer) error { return export.Program(c.Context(), w, p, o) }); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s with %d inputs and %d constants\n", out, len(p.Params)-len(o.Constants), len(o.Constants))
			return err
		},
	}
	c.Flags().StringVar(&weights, "weights", "", "safetensors `file` of the constants")
	c.Flags().StringVarP(&out, "out", "o", "", "`file` for the package")
	c.Flags().StringVar(&model, "model", "", "`name` of the model in the package (model if not given)")
	c.Flags().StringVar(&torch, "torch", "", "`version` of PyTorch whose archive to write, such as 2.6 (the newest if not given)")
	c.Flags().StringToIntVar(&assign, "assign", nil, "`NAME=N`: write result number N to a parameter instead of returning it")
	_ = c.MarkFlagRequired("out") // fails only for a flag that doesn't exist
	return c
}
