package ahead

import (
	"slices"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/ir"
)

// foldable are the functions whose results are the same whenever they are called on the same elements,
// and which write to memory that is there.
var foldable = map[string]bool{
	"aoti_torch_cpu_mm_out": true, "aoti_torch_cpu_addmm_out": true, "aoti_torch_cpu_bmm_out": true, gather: true, indexSelect: true,
}

// fold takes out the steps that compute values of constants alone, in order, and gives those values places
// in memory that lasts as long as the constants. constant says which parameters are. What takes more
// memory than twice that of the constants is computed in each run, and so is a result.
func (e *emitter) fold(constant func(param int) bool) (folded []step) {
	takes := make([]bool, len(e.steps))
	for i := range e.steps {
		s := &e.steps[i]
		takes[i] = len(s.Reads) > 0 && (s.Payload.Call == nil || foldable[s.Payload.Call.Function])
	}
	for changed := true; changed; {
		changed = false
		runs := e.writers(takes, false)
		for i := range e.steps {
			if s := &e.steps[i]; takes[i] && !e.foldsStep(s, constant, e.writers(takes, true), runs) {
				takes[i], changed = false, true
			}
		}
	}
	rest := e.steps[:0:0]
	for i := range e.steps {
		if s := e.steps[i]; takes[i] {
			folded = append(folded, s)
		} else {
			rest = append(rest, s)
		}
	}
	e.steps = rest
	for _, s := range folded {
		for _, b := range s.Writes {
			if _, ok := e.folded[b]; !ok {
				e.Buffers[b].Kind = plan.Returned // outside of the workspace
				e.folded[b] = e.foldedBytes
				e.foldedBytes = (e.foldedBytes + e.Buffers[b].Bytes + lineBytes - 1) &^ (lineBytes - 1)
			}
		}
	}
	return folded
}

// writers returns which buffers are written by steps that are taken, or by others.
func (e *emitter) writers(takes []bool, taken bool) map[int]bool {
	all := map[int]bool{}
	for i := range e.steps {
		if takes[i] == taken {
			for _, b := range e.steps[i].Writes {
				all[b] = true
			}
		}
	}
	return all
}

// foldsStep reports whether a step reads constants alone, and writes what no run does.
func (e *emitter) foldsStep(s *step, constant func(param int) bool, folds, runs map[int]bool) bool {
	read, written := 0, 0
	for _, b := range s.Reads {
		known := folds[b] && !runs[b]
		switch e.Buffers[b].Kind {
		case plan.Input:
			known = constant(b)
		case plan.Constant:
			known = true
		}
		if !known {
			return false
		}
		read += e.Buffers[b].Bytes
	}
	for _, b := range s.Writes {
		if runs[b] || e.Buffers[b].Kind != plan.Work || e.Buffers[b].Output >= 0 || slices.Contains(s.Reads, b) {
			return false
		}
		written += e.Buffers[b].Bytes
	}
	return written <= max(2*read, ir.MaxRank*lineBytes)
}

// titled gives a step the words of the op that it computes.
func titled(s *step) ahead.Step {
	p := s.Payload
	if in := s.Instr; in != nil {
		p.Op, p.Line = in.Called().String(), ir.FormatLine(in.Line)
	} else {
		p.Op = "the copy of a result"
	}
	return p
}
