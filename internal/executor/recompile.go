package executor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// structure is the last graph compiled of those that differ only in sizes.
type structure struct {
	hash    ir.Hash
	program *graph.Program
}

// why compares a graph with one of its structure, which is h, that was compiled before, or with the
// most similar one. It notes the graph as the last of its structure.
func (s *stats) why(p *graph.Program, h ir.Hash) (reason string, newSizes bool) {
	defer func() {
		s.recent = slices.DeleteFunc(s.recent, func(k structure) bool { return k.hash == h })
		if len(s.recent) == maxRecent {
			s.recent = slices.Delete(s.recent, 0, 1)
		}
		s.recent = append(s.recent, structure{h, p})
	}()
	for i := len(s.recent) - 1; i >= 0; i-- {
		if k := &s.recent[i]; k.hash == h {
			if diff := sizeDiff(p, k.program); diff != "" {
				return diff, true
			}
		}
	}
	return nearest(p, s.recent), false
}

// nearest compares a graph with the most similar one of those compiled before.
func nearest(p *graph.Program, recent []structure) string {
	if len(recent) == 0 {
		return "first graph"
	}
	var near *graph.Program
	best := -1
	for i := range recent {
		q := recent[i].program
		if n := commonPrefix(p, q); n > best || (n == best && len(q.Instrs) == len(p.Instrs)) {
			best, near = n, q
		}
	}
	if best == len(p.Instrs) && best == len(near.Instrs) {
		if s := sizeDiff(p, near); s != "" {
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

// sizeDiff says which parameters or, if there are none, which result has another shape than in q, and
// where a value of another shape is computed first.
func sizeDiff(p, q *graph.Program) string {
	var diffs []string
	for i := range min(len(p.Params), len(q.Params)) {
		if a, b := q.Params[i].Shape, p.Params[i].Shape; a != b {
			diffs = append(diffs, fmt.Sprintf("input %d: %v became %v", i, a, b))
		}
	}
	if len(diffs) > 4 {
		diffs = append(diffs[:4], fmt.Sprintf("and %d more", len(diffs)-4))
	}
	if len(p.Instrs) != len(q.Instrs) || len(p.Shapes) != len(q.Shapes) {
		return shapesChanged(diffs, "")
	}
	in, was, is := p.Resized(q)
	if in == nil {
		return shapesChanged(diffs, "")
	}
	at := ""
	if line := ir.FormatLine(in.Line); line != "" {
		at = " at " + line
	}
	if diffs == nil {
		return fmt.Sprintf("sizes changed: %v%s made %v and now makes %v", in.Op, at, was, is)
	}
	return shapesChanged(diffs, fmt.Sprintf("; the first op that this concerns is %v%s", in.Op, at))
}

func shapesChanged(inputs []string, where string) string {
	if inputs == nil {
		return ""
	}
	return "input shapes changed: " + strings.Join(inputs, ", ") + where
}
