package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/null"
)

// opInfo is what the commands tell of an op.
type opInfo struct {
	Name     string `json:"name"`
	Category string `json:"category"`
	Schema   string `json:"schema"`
	Doc      string `json:"doc"`
	// Backends says by device type how the op is computed: "kernel", "composite"
	// (decomposed into other ops first) or "none".
	Backends   map[string]string `json:"backends"`
	Gradient   bool              `json:"gradient"`
	NoGradient string            `json:"no_gradient,omitempty"`
}

func newOps() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ops [NAME]",
		Short: "List the ops, or tell all about one",
		Long: `List the ops: name, category, whether a gradient flows through it, and for each
backend whether it has a kernel or computes the op as a composite of others.`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, sp := range ir.Ops() {
				if len(args) == 0 {
					names = append(names, sp.Name)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			backends := computing()
			if len(args) == 1 {
				op, ok := ir.Lookup(args[0])
				if !ok {
					return unknownOp(args[0])
				}
				info := describe(op.Spec(), backends)
				if asJSON {
					return command.PrintJSON(c.OutOrStdout(), info)
				}
				return printOp(c.OutOrStdout(), info)
			}
			infos := []opInfo{}
			for _, sp := range ir.Ops() {
				infos = append(infos, describe(sp, backends))
			}
			if asJSON {
				return command.PrintJSON(c.OutOrStdout(), infos)
			}
			return printOps(c.OutOrStdout(), infos)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// computing returns the backends but the null one, which computes nothing and
// so supports everything.
func computing() []backend.Backend {
	return slices.DeleteFunc(backend.All(), func(b backend.Backend) bool { return b.DeviceType() == null.DeviceType })
}

func describe(sp *ir.Spec, backends []backend.Backend) opInfo {
	info := opInfo{
		Name: sp.Name, Category: sp.Category.String(), Schema: sp.Schema.String(), Doc: sp.Doc,
		Backends: map[string]string{}, Gradient: sp.Differentiable(),
	}
	if !info.Gradient {
		if info.NoGradient = sp.NoGrad; info.NoGradient == "" {
			info.NoGradient = "none is defined"
		}
	}
	for _, b := range backends {
		how := "none"
		switch {
		case b.Supports(sp.Op):
			how = "kernel"
		case sp.Composite():
			how = "composite"
		}
		info.Backends[b.DeviceType().String()] = how
	}
	return info
}

// backendNames returns the device types of an op's backends, in order.
func (o opInfo) backendNames() []string {
	var names []string
	for name := range o.Backends {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (o opInfo) gradientText() string {
	if o.Gradient {
		return "yes"
	}
	return "no: " + o.NoGradient
}

func printOp(w io.Writer, o opInfo) error {
	var how []string
	for _, name := range o.backendNames() {
		how = append(how, name+": "+o.Backends[name])
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n\ncategory  %s\ngradient  %s\nbackends  %s\n",
		o.Schema, o.Doc, o.Category, o.gradientText(), strings.Join(how, ", "))
	return err
}

func printOps(w io.Writer, infos []opInfo) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := []string{"NAME", "CATEGORY", "GRADIENT"}
	names := infos[0].backendNames()
	for _, name := range names {
		head = append(head, strings.ToUpper(name))
	}
	fmt.Fprintln(tw, strings.Join(append(head, "SCHEMA"), "\t"))
	for _, o := range infos {
		gradient := "yes"
		if !o.Gradient {
			gradient = "no"
		}
		row := []string{o.Name, o.Category, gradient}
		for _, name := range names {
			row = append(row, o.Backends[name])
		}
		fmt.Fprintln(tw, strings.Join(append(row, o.Schema), "\t"))
	}
	return tw.Flush()
}

// unknownOp suggests the ops whose names contain the text.
func unknownOp(name string) error {
	var like []string
	for _, sp := range ir.Ops() {
		if name != "" && (strings.Contains(sp.Name, name) || strings.Contains(name, sp.Name)) && len(like) < 5 {
			like = append(like, sp.Name)
		}
	}
	if like == nil {
		return fmt.Errorf("there is no op %q; loris ops lists all", name)
	}
	return fmt.Errorf("there is no op %q; there is %s", name, strings.Join(like, ", "))
}
