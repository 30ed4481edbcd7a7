package graph

import (
	"slices"

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
			if c := w.casts[id]; c != nil && !w.inKernel(in, id) {
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
	out   *Program
	ids   []ID // of the new Program, by those of the old one
	epoch int  // how many reductions and products came before
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

// inKernel reports whether an instruction uses a value as the elements of the kernel that it becomes part of.
func (w *widening) inKernel(in *Instr, id ID) bool {
	sp := in.Op.Spec()
	if sp.Composite() {
		return false
	}
	return sp.Category == ir.Reduction || sp.Category == ir.Pointwise && w.p.Shape(in.Out).SameDims(w.p.Shape(id))
}

func (w *widening) program() *Program {
	p := w.p
	w.out = &Program{Name: p.Name, Params: p.Params, Shapes: slices.Clone(p.Shapes[:len(p.Params)]), Instrs: make([]Instr, 0, len(p.Instrs)+len(w.casts)), inferred: p.inferred}
	w.ids = make([]ID, len(p.Shapes))
	for i := range p.Params {
		w.ids[i] = ID(i)
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if c := w.casts[in.Out]; c != nil && !c.whole {
			continue
		}
		w.add(in)
		if !passes(in) {
			w.epoch++
		}
	}
	for _, id := range p.Returns {
		w.out.Returns = append(w.out.Returns, w.ids[id])
	}
	return w.out
}

// add adds an instruction, and before it what it is to make f32.
func (w *widening) add(in *Instr) {
	args := make([]ID, len(in.Args))
	for k, id := range in.Args {
		c := w.casts[id]
		if c == nil || !w.inKernel(in, id) {
			args[k] = w.ids[id]
			continue
		}
		if c.epoch != w.epoch {
			c.epoch, c.now = w.epoch, w.append(c.in, []ID{w.ids[c.in.Args[0]]})
		}
		args[k] = c.now
	}
	first := w.append(in, args)
	for k := range in.NOut {
		w.ids[int(in.Out)+k] = first + ID(k)
	}
}

// append returns the first result of an instruction on other operands.
func (w *widening) append(in *Instr, args []ID) ID {
	next := *in
	next.Args, next.Out = args, ID(len(w.out.Shapes))
	w.out.Instrs = append(w.out.Instrs, next)
	w.out.Shapes = append(w.out.Shapes, w.p.Shapes[in.Out:int(in.Out)+in.NOut]...)
	return next.Out
}
