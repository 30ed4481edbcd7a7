package cpu

import (
	"errors"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

// planned refuses a Program whose buffers have more bytes than any machine, so that sums of their
// sizes overflow nowhere.
func planned(p *graph.Program, buffers []plan.Buffer, limit int64) error {
	total, largest := int64(0), 0
	for i := range buffers {
		total = memlimit.Sum(total, int64(buffers[i].Bytes))
		largest = max(largest, buffers[i].Bytes)
	}
	if total <= memlimit.Most {
		return nil
	}
	if limit <= 0 {
		limit = memlimit.Default()
	}
	e := &ir.OutOfMemory{Wanted: total, Held: memlimit.Held(), Limit: limit}
	describe(e, p, instrOfSize(p, largest))
	return e
}

// outOfMemory adds to an error what wants the memory: what a storage is first written by.
func (m *model) outOfMemory(err error, st *plan.Storage) error {
	var e *ir.OutOfMemory
	if st != nil && errors.As(err, &e) {
		in := m.plan.Steps[st.First].Instr
		if st.Output >= 0 {
			in = instrOf(m.program, m.program.Returns[st.Output])
			e.Shape = m.spec.Outputs[st.Output].Shape
		}
		if in == nil { // a copy of a view, which no instruction stands for
			in = instrOfSize(m.program, st.Bytes)
		}
		describe(e, m.program, in)
	}
	return err
}

// began notes in an error of a run that inputs may be overwritten: it is one of a model that a step
// called.
func began(err error) {
	if e := (*ir.OutOfMemory)(nil); errors.As(err, &e) {
		e.Began = true
	}
}

// largestInside returns the largest storage in the workspace, or nil if there is none.
func (m *model) largestInside() (found *plan.Storage) {
	for i := range m.plan.Storages {
		st := &m.plan.Storages[i]
		if st.Output < 0 && (found == nil || st.Bytes > found.Bytes) {
			found = st
		}
	}
	return found
}

// instrOfSize returns the first instruction with a result of so many bytes or more, or nil.
func instrOfSize(p *graph.Program, bytes int) *graph.Instr {
	for i := range p.Instrs {
		for _, s := range p.Outs(&p.Instrs[i]) {
			if s.Bytes() >= bytes {
				return &p.Instrs[i]
			}
		}
	}
	return nil
}

// instrOf returns the instruction that computes a value, nil for a parameter.
func instrOf(p *graph.Program, id graph.ID) *graph.Instr {
	for i := range p.Instrs {
		if in := &p.Instrs[i]; in.Out <= id && int(id) < int(in.Out)+in.NOut {
			return in
		}
	}
	return nil
}

// describe says of an error which instruction it is about; nil stands for none.
func describe(e *ir.OutOfMemory, p *graph.Program, in *graph.Instr) {
	if in == nil {
		return
	}
	e.Op, e.Line = in.Op.String(), ir.FormatLine(in.Line)
	for _, s := range p.Outs(in) {
		if s.Bytes() >= e.Shape.Bytes() {
			e.Shape = s
		}
	}
}
