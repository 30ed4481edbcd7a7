package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

func newAOTI() *cobra.Command {
	c := &cobra.Command{
		Use:   "aoti",
		Short: "Inspect, run, measure and write packages of compiled models",
		Long: `Inspect, run and measure models that PyTorch's AOTInductor compiled: .pt2
archives, folders extracted from one, and bare shared libraries. Export writes such
archives from programs.

Running a package executes the code in it; inspecting it does not.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newInspect(), newConstants(), newSymbols(), newAOTIRun(), newBench(), newUpdate(), newExport())
	return c
}

// modelFlag adds --model.
func modelFlag(c *cobra.Command, model *string) {
	c.Flags().StringVar(model, "model", "", "`name` of the model, if the package has several")
}

// packageArgs completes the names of compiled packages.
func packageArgs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"pt2", "so"}, cobra.ShellCompDirectiveFilterFileExt
}

func newInspect() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect PACKAGE",
		Short: "Tell everything about a package without loading it",
		Long: `Tell everything about a package without loading it: what its models take and
give, constants, instruction sets, the functions that they call, with (!) at those
that this host lacks, and sizes. Every file is read and checked.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: packageArgs,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := aoti.Inspect(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(c.OutOrStdout(), r)
			}
			return r.WriteText(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newConstants() *cobra.Command {
	var asJSON bool
	var model string
	c := &cobra.Command{
		Use:               "constants PACKAGE",
		Short:             "List the constants of a model without loading it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: packageArgs,
		RunE: func(c *cobra.Command, args []string) error {
			m, err := inspectModel(args[0], model)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(c.OutOrStdout(), m.Constants)
			}
			return m.WriteConstants(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	modelFlag(c, &model)
	return c
}

// inspectModel reports on one model of a package.
func inspectModel(path, model string) (*aoti.ModelReport, error) {
	r, err := aoti.Inspect(path)
	if err != nil {
		return nil, err
	}
	return r.Model(model)
}

// symbolGroup counts the symbols of one header.
type symbolGroup struct {
	header      string
	have, count int
	where       map[aoti.SymbolPlace]int
}

func newSymbols() *cobra.Command {
	var asJSON, missing bool
	c := &cobra.Command{
		Use:   "symbols",
		Short: "List PyTorch's C functions that this host has and has not",
		Long: `List the functions of PyTorch's C headers and of Sleef that compiled models may
call, and whether this host has them. Of those that compute for models on an
accelerator it says where: on the device, on the CPU from copies of their
tensors, or nowhere, so that models which call them are refused.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list := []aoti.Symbol{}
			for _, s := range aoti.Symbols() {
				if !missing || !s.Implemented {
					list = append(list, s)
				}
			}
			if asJSON {
				return command.PrintJSON(c.OutOrStdout(), list)
			}
			return printSymbols(c.OutOrStdout(), list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&missing, "missing", false, "list only what this host has not")
	return c
}

func printSymbols(w io.Writer, list []aoti.Symbol) error {
	var groups []symbolGroup
	at := map[string]int{}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "function\theader\ton accelerators\timplemented")
	for _, s := range list {
		i, ok := at[s.Header]
		if !ok {
			i = len(groups)
			at[s.Header] = i
			groups = append(groups, symbolGroup{header: s.Header, where: map[aoti.SymbolPlace]int{}})
		}
		groups[i].count++
		groups[i].where[s.Where]++
		word := "no"
		if s.Implemented {
			groups[i].have++
			word = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, s.Header, s.Where, word)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range groups {
		line := fmt.Sprintf("%s: %d of %d implemented", g.header, g.have, g.count)
		for i, where := range []aoti.SymbolPlace{aoti.OnDevice, aoti.ThroughHost, aoti.Refused} {
			if n := g.where[where]; n > 0 {
				line += fmt.Sprintf("%s %d %s", [...]string{"; on accelerators", ",", ","}[min(i, 1)], n, where)
			}
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
