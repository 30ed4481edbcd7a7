package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

func newDump() *cobra.Command {
	var device, format string
	var lowered, hash bool
	c := &cobra.Command{
		Use:   "dump PROGRAM.lir",
		Short: "Print a program, as written or as a backend compiles it",
		Long: `Print a program (PROGRAM - reads it from standard input) as text, which can be
read back, as a Graphviz digraph or as JSON. With --lowered it is what the
backend of --device compiles: ops that it lacks decomposed, rewrites applied.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: command.ProgramArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(dumpFormats, format) {
				return command.Usagef("--format is %q: the formats are %s", format, strings.Join(dumpFormats, ", "))
			}
			p, err := command.ReadProgram(c, args[0])
			if err != nil {
				return err
			}
			note := ""
			if lowered {
				d, be, err := command.ParseDevice(device)
				if err != nil {
					return err
				}
				var st graph.Stats
				p, st = graph.Optimize(p, graph.Options{Supports: be.Supports})
				note = loweredNote(d, st)
			}
			if hash {
				_, err := fmt.Fprintln(c.OutOrStdout(), p.Hash())
				return err
			}
			return dump(c.OutOrStdout(), p, format, note)
		},
	}
	c.Flags().BoolVar(&lowered, "lowered", false, "print what the backend of --device compiles")
	c.Flags().StringVar(&format, "format", "text", "text, dot or json")
	c.Flags().BoolVar(&hash, "hash", false, "print the graph hash only")
	// It fails only for a flag that does not exist.
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(dumpFormats, cobra.ShellCompDirectiveNoFileComp))
	command.DeviceFlag(c, &device)
	return c
}

var dumpFormats = []string{"text", "dot", "json"}

func dump(w io.Writer, p *graph.Program, format, note string) error {
	switch format {
	case "dot":
		_, err := io.WriteString(w, p.DOT())
		return err
	case "json":
		return command.PrintJSON(w, programJSON(p))
	}
	if _, err := io.WriteString(w, note); err != nil {
		return err
	}
	return p.WriteText(w, false)
}

// loweredNote tells, in a comment, what a rewriting did.
func loweredNote(d ir.Device, st graph.Stats) string {
	var rules []string
	for name, n := range st.Applied {
		rules = append(rules, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(rules)
	text := fmt.Sprintf("# for %v: %d instructions became %d", d, st.Before, st.After)
	if rules != nil {
		text += ": " + strings.Join(rules, ", ")
	}
	return text + "\n"
}

type valueJSON struct {
	ID    graph.ID `json:"id"`
	Name  string   `json:"name,omitempty"`
	DType string   `json:"dtype"`
	Shape []int    `json:"shape"`
}

type instrJSON struct {
	Op      string         `json:"op"`
	Inputs  []graph.ID     `json:"inputs"`
	Attrs   map[string]any `json:"attrs"`
	Outputs []valueJSON    `json:"outputs"`
}

type programJSONForm struct {
	Name         string      `json:"name"`
	Hash         string      `json:"hash"`
	Parameters   []valueJSON `json:"parameters"`
	Instructions []instrJSON `json:"instructions"`
	Returns      []graph.ID  `json:"returns"`
}

// programJSON returns what encodes as the program. Attributes keep their types;
// dtypes and the floats that JSON lacks are words as in the text form.
func programJSON(p *graph.Program) programJSONForm {
	out := programJSONForm{
		Name: p.Name, Hash: p.Hash().String(),
		Parameters: []valueJSON{}, Instructions: []instrJSON{}, Returns: append([]graph.ID{}, p.Returns...),
	}
	value := func(id graph.ID, name string) valueJSON {
		s := p.Shape(id)
		return valueJSON{ID: id, Name: name, DType: s.DType().String(), Shape: s.Dims()}
	}
	for i, q := range p.Params {
		out.Parameters = append(out.Parameters, value(graph.ID(i), q.Name))
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		j := instrJSON{Op: in.Op.String(), Inputs: append([]graph.ID{}, in.Args...), Attrs: map[string]any{}, Outputs: []valueJSON{}}
		a := p.Args(in)
		for _, q := range in.Op.Spec().Schema.Params {
			if !q.Kind.Operand() {
				j.Attrs[q.Name] = attrJSON(a.Get(q.Name))
			}
		}
		for k := range in.NOut {
			j.Outputs = append(j.Outputs, value(in.Out+graph.ID(k), ""))
		}
		out.Instructions = append(out.Instructions, j)
	}
	return out
}

func attrJSON(v any) any {
	switch v := v.(type) {
	case ir.DType:
		return v.String()
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return graph.AttrText(v)
		}
	}
	return v
}
