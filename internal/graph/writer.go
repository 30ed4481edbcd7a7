package graph

import "slices"

// writer writes a Program of the instructions of another one: in another order, or some of them several times.
type writer struct {
	from, to *Program
	ids      []ID // of the new Program, by those of the old one
}

// newWriter returns one for about more instructions than the Program has.
func newWriter(p *Program, more int) *writer {
	w := &writer{p, &Program{
		Name: p.Name, Params: p.Params, Shapes: slices.Clone(p.Shapes[:len(p.Params)]), Instrs: make([]Instr, 0, len(p.Instrs)+more), inferred: p.inferred,
	}, make([]ID, len(p.Shapes))}
	for i := range p.Params {
		w.ids[i] = ID(i)
	}
	return w
}

// now returns what a value of the old Program is in the new one, as it was written last.
func (w *writer) now(id ID) ID { return w.ids[id] }

// append appends an instruction, with the operands that of returns for those of the old Program, and returns its first
// result. What of appends comes before it.
func (w *writer) append(in *Instr, of func(id ID) ID) ID {
	next := *in
	next.Args = make([]ID, len(in.Args))
	for k, id := range in.Args {
		next.Args[k] = of(id)
	}
	next.Out = ID(len(w.to.Shapes))
	w.to.Instrs = append(w.to.Instrs, next)
	w.to.Shapes = append(w.to.Shapes, w.from.Shapes[in.Out:int(in.Out)+in.NOut]...)
	return next.Out
}

// write is append of an instruction whose results are those of the old Program from now on.
func (w *writer) write(in *Instr, of func(id ID) ID) {
	first := w.append(in, of)
	for k := range in.NOut {
		w.ids[int(in.Out)+k] = first + ID(k)
	}
}

// program returns the new Program, with the results of the old one.
func (w *writer) program() *Program {
	for _, id := range w.from.Returns {
		w.to.Returns = append(w.to.Returns, w.ids[id])
	}
	return w.to
}
