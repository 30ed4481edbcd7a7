package executor

import (
	"fmt"
	"strings"
	"time"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// Compile describes one compilation.
type Compile struct {
	Hash         ir.Hash
	Device       ir.Device
	Nodes        int // recorded
	EmittedNodes int // compiled, after the rewrites
	Time         time.Duration
	// Why is the reason: the first graph, a changed input shape, or the first difference from
	// the most similar graph compiled before, with its line.
	Why string
}

// why compares a graph with the most similar one of those compiled before.
func why(p *graph.Program, recent []*graph.Program) string {
	if len(recent) == 0 {
		return "first graph"
	}
	var near *graph.Program
	best := -1
	for _, q := range recent {
		if n := commonPrefix(p, q); n > best || (n == best && len(q.Instrs) == len(p.Instrs)) {
			best, near = n, q
		}
	}
	if best == len(p.Instrs) && best == len(near.Instrs) {
		if s := shapeDiff(p, near); s != "" {
			return s
		}
		return "same ops, other connections or outputs"
	}
	if best == len(p.Instrs) {
		return fmt.Sprintf("new graph: ends after %d of the %d nodes of the nearest", best, len(near.Instrs))
	}
	in := &p.Instrs[best]
	line := ir.FormatLine(in.Line)
	if line != "" {
		line = " at " + line
	}
	if best >= len(near.Instrs) {
		return fmt.Sprintf("new graph: node %d, %v%s, comes after the end of the nearest", best, in.Op, line)
	}
	other := &near.Instrs[best]
	if other.Op == in.Op {
		return fmt.Sprintf("new graph: node %d, %v%s, has other attributes than in the nearest", best, in.Op, line)
	}
	return fmt.Sprintf("new graph: node %d is %v%s, in the nearest it is %v", best, in.Op, line, other.Op)
}

// commonPrefix counts the leading instructions with equal ops and attributes.
func commonPrefix(p, q *graph.Program) int {
	n := min(len(p.Instrs), len(q.Instrs))
	for i := range n {
		if p.Instrs[i].Op != q.Instrs[i].Op || p.Instrs[i].Attr != q.Instrs[i].Attr {
			return i
		}
	}
	return n
}

func shapeDiff(p, q *graph.Program) string {
	var diffs []string
	for i := range min(len(p.Params), len(q.Params)) {
		if a, b := q.Params[i].Shape, p.Params[i].Shape; a != b {
			diffs = append(diffs, fmt.Sprintf("input %d: %v became %v", i, a, b))
		}
	}
	if diffs == nil {
		return ""
	}
	if len(diffs) > 4 {
		diffs = append(diffs[:4], fmt.Sprintf("and %d more", len(diffs)-4))
	}
	return "input shapes changed: " + strings.Join(diffs, ", ")
}
