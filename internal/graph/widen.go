package graph

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// widen returns a Program in which what uses a 16-bit float as f32 makes it f32 by itself. It returns p itself if nothing
// does so more than once.
//
// Kernels compute in f32 what they read as 16 bits, so that it costs nothing there. One f32 value for several kernels would be
// written and read as twice the bytes of what it is made of. Pointwise instructions with no reduction or product between
// them become one kernel, and share it.
func widen(p *Program) *Program {
	w := widening{p: p, casts: map[ID]*widened{}}
	users := make([]int, len(p.Shapes))
	for i := range p.Instrs {
		for _, id := range p.Instrs[i].Args {
			users[id]++
		}
	}
	for i := range p.Instrs {
		if in := &p.Instrs[i]; users[in.Out] > 1 && w.widens(in) {
			w.casts[in.Out] = &widened{in: in, epoch: -1}
		}
	}
	if len(w.casts) == 0 {
		return p
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		for _, id := range in.Args {
			if c := w.casts[id]; c != nil && !w.p.InKernel(in, id) {
				c.whole = true
			}
		}
	}
	for _, id := range p.Returns {
		if c := w.casts[id]; c != nil {
			c.whole = true
		}
	}
	return w.program()
}

// widening is the state of widen.
type widening struct {
	p     *Program
	casts map[ID]*widened // what is used more than once, by what it is in the old Program
	out   *writer
	epoch int // how many reductions and products came before
}

// widened is a 16-bit float as f32.
type widened struct {
	in    *Instr
	whole bool // something else than a kernel that could make it uses it
	// now is the value that kernels use at present, of that epoch.
	now   ID
	epoch int
}

// widens reports whether an instruction makes f32 of a 16-bit float.
func (w *widening) widens(in *Instr) bool {
	if in.Op != aten.Cast || w.p.Shape(in.Out).DType() != ir.F32 {
		return false
	}
	d := w.p.Shape(in.Args[0]).DType()
	return d == ir.BF16 || d == ir.F16
}

// InKernel reports whether an instruction uses a value as the elements of the kernel that it becomes part of.
func (p *Program) InKernel(in *Instr, id ID) bool {
	sp := in.Op.Spec()
	return sp.Reduces() || sp.Category == ir.Pointwise && !sp.Composite() && p.Shape(in.Out).SameDims(p.Shape(id))
}

func (w *widening) program() *Program {
	w.out = newWriter(w.p, len(w.casts))
	for i := range w.p.Instrs {
		in := &w.p.Instrs[i]
		if c := w.casts[in.Out]; c != nil && !c.whole {
			continue
		}
		w.out.write(in, func(id ID) ID { return w.operand(in, id) })
		if !passes(in) {
			w.epoch++
		}
	}
	return w.out.program()
}

// operand returns what an instruction is to use for a value: one that is made f32 before it, where that is due.
func (w *widening) operand(in *Instr, id ID) ID {
	c := w.casts[id]
	if c == nil || !w.p.InKernel(in, id) {
		return w.out.now(id)
	}
	if c.epoch != w.epoch {
		c.epoch, c.now = w.epoch, w.out.append(c.in, w.out.now)
	}
	return c.now
}
