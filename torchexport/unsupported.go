package torchexport

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// UnsupportedError lists the ops of a program that cannot be recorded.
type UnsupportedError struct {
	// Nodes are the uses of these ops, the first of each op.
	Nodes []UnsupportedNode
}

// UnsupportedNode is the first use of an op that is not supported.
type UnsupportedNode struct {
	Op    string // "aten.foo.default"
	Node  string // the node's name in the graph
	Line  string // the line of Python that it comes from; empty where the file does not tell
	Count int    // how many nodes use the op
}

// Error lists the ops with their nodes and lines of Python.
func (e *UnsupportedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ops of the program are not supported:", len(e.Nodes))
	for _, n := range e.Nodes {
		fmt.Fprintf(&b, "\n\t%s (node %s, %d uses", n.Op, n.Node, n.Count)
		if n.Line != "" {
			b.WriteString(", " + n.Line)
		}
		b.WriteString(")")
	}
	if slices.ContainsFunc(e.Nodes, func(n UnsupportedNode) bool { return strings.HasPrefix(n.Op, "torch._functorch.") }) {
		b.WriteString("\nprogram.run_decompositions() in Python writes vmap and the like out")
	}
	return b.String()
}

// unsupportedError lists what a reader met.
func (r *reader) unsupportedError() error {
	e := &UnsupportedError{}
	for _, n := range r.unsupported {
		e.Nodes = append(e.Nodes, *n)
	}
	sort.Slice(e.Nodes, func(i, j int) bool { return e.Nodes[i].Op < e.Nodes[j].Op })
	return e
}
