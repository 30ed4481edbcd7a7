package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/atomicfile"
)

func newUpdate() *cobra.Command {
	var weights, out, model string
	var partial bool
	c := &cobra.Command{
		Use:   "update PACKAGE --weights FILE --out NEW",
		Short: "Write a package again with other weights",
		Long: `Write a package again with the constants of a safetensors file, by their names in
the model or in the program that was compiled. Nothing is loaded or compiled; what
is computed from constants is computed when the new package is loaded. Without
--partial the file must have every constant, and an unknown name is always an
error. (aoti run and bench take --weights too, and leave the package alone.)

The file of --out appears whole or not at all. A symbolic link is followed, and a
device or a FIFO is written to; other hard links of the file keep what they have.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: packageArgs,
		RunE: func(c *cobra.Command, args []string) error {
			all, _, err := tensors.ReadFile(weights)
			if err != nil {
				return err
			}
			values := make(map[string]aoti.ConstantValue, len(all))
			for name, t := range all {
				values[name] = aoti.ConstantValue{Shape: t.Shape, Data: t.Data}
			}
			// The new package appears complete or not at all, also in the place of the old one.
			err = atomicfile.Write(out, func(w io.Writer) error { return aoti.Rewrite(w, args[0], model, values, partial) })
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s with %d new constants\n", out, len(values))
			return err
		},
	}
	c.Flags().StringVar(&weights, "weights", "", "safetensors `file` of new values")
	c.Flags().StringVar(&out, "out", "", "`file` for the new package")
	c.Flags().BoolVar(&partial, "partial", false, "keep the constants that the file does not have")
	modelFlag(c, &model)
	// They fail only for flags that don't exist.
	_ = c.MarkFlagRequired("weights")
	_ = c.MarkFlagRequired("out")
	return c
}
