package plan

import (
	"fmt"
	"strings"
)

// String returns the plan as text: a line for each step, with its ops, the buffers that it reads,
// and after an arrow those that it writes. A buffer in the workspace is [begin:end] in bytes.
// Where a buffer is written first, "(in place)" says that it takes over the memory of an operand,
// and "(from in1)" that it takes the memory of that input, if it is donated.
func (p *Plan[P]) String() string {
	var b strings.Builder
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(&b, "%3d %s:", i, s.name())
		for _, r := range s.Reads {
			b.WriteString(" " + p.location(r))
		}
		b.WriteString(" ->")
		for _, w := range s.Writes {
			b.WriteString(" " + p.location(w))
			if buf := &p.Buffers[w]; buf.First == i {
				b.WriteString(p.sharing(w))
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "workspace %d\n", p.Workspace)
	return b.String()
}

// name returns the ops of a step.
func (s *Step[P]) name() string {
	var names []string
	for _, in := range s.ops() {
		names = append(names, in.Op.String())
	}
	if names == nil {
		return "copy"
	}
	return strings.Join(names, "+")
}

// location returns where a buffer is.
func (p *Plan[P]) location(buf int) string {
	b := &p.Buffers[buf]
	switch {
	case b.Kind == Input:
		return fmt.Sprintf("in%d", buf)
	case b.Kind == Constant:
		return fmt.Sprintf("const(%d)", b.Bytes)
	case b.Kind == Returned:
		return fmt.Sprintf("returned(%d)", b.Bytes)
	}
	st := &p.Storages[b.Storage]
	if st.Output >= 0 {
		return fmt.Sprintf("out%d", st.Output)
	}
	return fmt.Sprintf("[%d:%d]", st.Offset, st.Offset+b.Bytes)
}

// sharing says whose memory a buffer has.
func (p *Plan[P]) sharing(buf int) string {
	st := &p.Storages[p.Buffers[buf].Storage]
	switch {
	case st.Root != buf:
		return " (in place)"
	case st.Donor >= 0:
		return fmt.Sprintf(" (from in%d)", st.Donor)
	}
	return ""
}
