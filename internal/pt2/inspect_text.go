package pt2

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/loris-ml/loris/internal/escape"
)

// WriteText prints the report for people. What strangers may have written into the
// package is escaped where a terminal would obey it.
func (r *Report) WriteText(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s: %s, %s", r.Path, r.Kind, plural(len(r.Models), "model"))
	if r.Root != "" || r.Version != "" {
		p.line("  root %q, archive version %q", r.Root, r.Version)
	}
	p.notes("  ", r.Notes)
	for i := range r.Models {
		p.line("")
		r.Models[i].write(p)
	}
	return p.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, escape.Text(fmt.Sprintf(format, args...))+"\n")
	}
}

func (p *printer) notes(indent string, notes []string) {
	for _, n := range notes {
		p.line("%snote: %s", indent, n)
	}
}

func (r *ModelReport) write(p *printer) {
	p.line("model %s", r.Name)
	target := strings.Join(nonEmpty(r.Device, r.Platform, r.Machine), ", ")
	isa := strings.Join(r.ISA, " ")
	if isa == "" {
		isa = "no vector instruction set named"
	}
	if r.March != "" {
		isa += ", -march=" + r.March
	}
	p.line("  compiled for  %s; %s", target, isa)
	switch {
	case r.Generation != "":
		p.line("  interface     PyTorch %s (%d container functions)", r.Generation, r.Functions)
	case r.Library != "":
		p.line("  interface     unknown (%d container functions)", r.Functions)
	}
	if r.Library != "" {
		p.line("  needs         %s", strings.Join(r.Needed, ", "))
	}
	n, size, folded := r.constantTotals()
	p.line("  constants     %d (%d folded), %s; weights %s, %s", n, folded, Bytes(size), r.Weights.Kind, Bytes(r.Weights.Bytes))
	for i := range r.Inputs {
		p.line("  input %-7d %s", i, r.Inputs[i].text)
	}
	p.line("  outputs       %s", strings.Join(r.Outputs, ", "))
	if r.InSpec != "" {
		p.line("  call spec     in  %s", r.InSpec)
		p.line("                out %s", r.OutSpec)
	}
	r.writeSymbols(p)
	for _, e := range r.Externs {
		p.line("  extern op     %s, %s%s", e.Target, plural(e.Calls, "call"), presence(e.Has))
	}
	for _, f := range r.Files {
		p.line("  file          %s, %s", f.Name, Bytes(f.Bytes))
	}
	p.notes("  ", r.Notes)
	if len(r.Missing) > 0 {
		p.line("  missing       %s", strings.Join(r.Missing, ", "))
	}
	if r.Refused != "" {
		p.line("  refused       %s", r.Refused)
	}
}

// writeSymbols prints the symbols by class.
func (r *ModelReport) writeSymbols(p *printer) {
	var class Class
	var names []string
	flush := func() {
		if len(names) > 0 {
			p.line("  %-13s %d: %s", class, len(names), strings.Join(names, " "))
		}
		names = nil
	}
	for _, s := range r.Symbols {
		if s.Class != class {
			flush()
			class = s.Class
		}
		mark := ""
		if s.Has != nil && !*s.Has {
			mark = "(!)"
		}
		names = append(names, s.Name+mark)
	}
	flush()
	p.line("  system        %s", plural(r.System, "symbol"))
}

// WriteConstants prints a table of the constants, escaped as WriteText does.
func (r *ModelReport) WriteConstants(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\toriginal name\tdtype\tsizes\tbytes\ttype")
	for i := range r.Constants {
		c := &r.Constants[i]
		typ := c.Type
		if c.Packed {
			typ += ", packed"
		}
		row := fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s", c.Name, c.OriginalName, c.DType, dims(c.Sizes), c.Bytes, typ)
		fmt.Fprintln(t, escape.Text(row))
	}
	return t.Flush()
}

func nonEmpty(parts ...string) []string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return []string{"an unknown target (no metadata)"}
	}
	return out
}

func presence(has *bool) string {
	switch {
	case has == nil:
		return ""
	case *has:
		return ", known"
	}
	return ", not known to this host"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Bytes returns a size in words: "1.5 MiB".
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, suffix := float64(n)/unit, "KiB"
	for _, s := range []string{"MiB", "GiB", "TiB"} {
		if f < unit {
			break
		}
		f, suffix = f/unit, s
	}
	return fmt.Sprintf("%.1f %s", f, suffix)
}
