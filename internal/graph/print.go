package graph

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
)

// String returns the Program in text form (.lir); Parse reads it back to the
// same hash.
func (p *Program) String() string {
	var b strings.Builder
	_ = p.write(&b, false) // a strings.Builder does not fail
	return b.String()
}

// WriteText writes the text form; with lines, each instruction is followed by a
// comment with the user's source line, where it is known.
func (p *Program) WriteText(w io.Writer, lines bool) error { return p.write(w, lines) }

func (p *Program) write(w io.Writer, lines bool) error {
	names := p.ValueNames()
	var b []byte
	name := p.Name
	if !isName(name) {
		name = "program"
	}
	b = append(b, "program @"+name+" {\n"...)
	for i, q := range p.Params {
		b = append(b, "  "+names[i]+" = parameter "+strconv.Quote(q.Name)+" : "...)
		b = append(q.Shape.Append(b), '\n')
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		b = append(b, "  "...)
		for k := range in.NOut {
			if k > 0 {
				b = append(b, ", "...)
			}
			b = append(b, names[int(in.Out)+k]...)
		}
		if in.NOut > 0 {
			b = append(b, " = "...)
		}
		b = p.appendCall(b, in, names)
		for k, s := range p.Outs(in) {
			if k == 0 {
				b = append(b, " : "...)
			} else {
				b = append(b, ", "...)
			}
			b = s.Append(b)
		}
		if lines && in.Line != 0 {
			b = append(b, "  # "+ir.FormatLine(in.Line)...)
		}
		b = append(b, '\n')
		if len(b) > 1<<16 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	b = append(b, "  return"...)
	for i, id := range p.Returns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, " "+names[id]...)
	}
	b = append(b, "\n}\n"...)
	_, err := w.Write(b)
	return err
}

// ValueNames returns the name of each value in the text form, by ID: parameters keep their own
// names where these are unique words, the results of instructions are numbered.
func (p *Program) ValueNames() []string {
	names := make([]string, len(p.Shapes))
	used := map[string]bool{}
	for i, q := range p.Params {
		n := q.Name
		if !isName(n) || used[n] || n[0] >= '0' && n[0] <= '9' {
			n = "p" + strconv.Itoa(i)
			for used[n] {
				n += "_"
			}
		}
		used[n] = true
		names[i] = "%" + n
	}
	for i := len(p.Params); i < len(names); i++ {
		names[i] = "%" + strconv.Itoa(i-len(p.Params))
	}
	return names
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isWord(c) && c != '.' {
			return false
		}
	}
	return s != ""
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// appendCall appends op(operands, name=value, …). Operands are printed by position until an argument
// is left out, all further arguments by ATen's name; arguments that equal their default are left
// out.
func (p *Program) appendCall(b []byte, in *Instr, names []string) []byte {
	sp := in.Op.Spec()
	b = append(b, sp.Name...)
	b = append(b, '(')
	a := p.Args(in)
	positional, first := true, true
	next := 0
	for i := range sp.Schema.Params {
		q := &sp.Schema.Params[i]
		v := a.Get(q.Name)
		var text string
		if q.Kind.Operand() {
			n := v.(int)
			text = operandText(q, in.Args[next:next+n], names)
			next += n
		} else if !q.HasDef || !sameDefault(v, q.Default) {
			text = AttrText(v)
		}
		if text == "" {
			positional = false
			continue
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		if !positional || !q.Kind.Operand() {
			b = append(b, q.Name+"="...)
			positional = false
		}
		b = append(b, text...)
	}
	return append(b, ')')
}

func operandText(q *ir.Param, args []ID, names []string) string {
	if q.Kind == ir.KindTensors {
		parts := make([]string, len(args))
		for i, id := range args {
			parts[i] = names[id]
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	switch {
	case len(args) > 0:
		return names[args[0]]
	case !q.HasDef || q.Default != nil:
		return AttrText(nil)
	}
	return ""
}

func sameDefault(v, def any) bool {
	if v == nil || def == nil {
		return v == nil && def == nil
	}
	return AttrText(v) == AttrText(def)
}

// AttrText returns an attribute value as the text form writes it.
func AttrText(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return strconv.Quote(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case ir.DType:
		return v.String()
	case []int:
		parts := make([]string, len(v))
		for i, n := range v {
			parts[i] = strconv.Itoa(n)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return fmt.Sprint(v)
}

// floatText always looks like a float, so that it is read back as one.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// DOT returns the Program as a Graphviz digraph: a node for each parameter and
// instruction with op, result shapes and, where known, the user's source line.
func (p *Program) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  node [shape=box, fontname=monospace];\n", p.Name)
	owner := make([]string, len(p.Shapes))
	for i, q := range p.Params {
		owner[i] = fmt.Sprintf("p%d", i)
		fmt.Fprintf(&b, "  p%d [label=%q, style=filled, fillcolor=lightgrey];\n", i, q.Name+"\n"+q.Shape.String())
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		label := in.Op.String()
		for k, s := range p.Outs(in) {
			owner[int(in.Out)+k] = fmt.Sprintf("n%d", i)
			label += "\n" + s.String()
		}
		if l := ir.FormatLine(in.Line); l != "" {
			label += "\n" + l
		}
		fmt.Fprintf(&b, "  n%d [label=%q];\n", i, label)
		for _, id := range in.Args {
			fmt.Fprintf(&b, "  %s -> n%d;\n", owner[id], i)
		}
	}
	for i, id := range p.Returns {
		fmt.Fprintf(&b, "  r%d [label=%q, shape=ellipse];\n  %s -> r%d;\n", i, fmt.Sprintf("out%d", i), owner[id], i)
	}
	b.WriteString("}\n")
	return b.String()
}
