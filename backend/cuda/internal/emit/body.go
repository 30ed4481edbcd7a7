package emit

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// place is where a Body is written: inside loops over packs.
type place struct {
	// at returns the address of an operand's element in this row, column 0.
	at func(arg int) string
	// index is the position of element j along the reduced axis.
	index string
	// fixed says that operands that do not move along columns were loaded before
	// the loop.
	fixed bool
	// one is set where packs are of one element and are not unrolled.
	one bool
	// hold leaves out accesses of what is held in registers, if H.
	hold bool
}

// width returns how many elements a pack has.
func (pl *place) width() string {
	if pl.one {
		return "1"
	}
	return "V"
}

// of returns the array with an operand's pack.
func (pl *place) of(arg int) string {
	if pl.one {
		return fmt.Sprintf("one%d", arg)
	}
	return fmt.Sprintf("in%d[u]", arg)
}

// value returns the name of an instruction's result.
func (w *writer) value(v loop.Value) string {
	in := &w.k.Instrs[v]
	switch in.Code {
	case loop.Load:
		return fmt.Sprintf("x_%d", v)
	case loop.Const:
		return fmt.Sprintf("c_%d", v)
	case loop.Index:
		return fmt.Sprintf("i_%d", v)
	case loop.Round:
		return fmt.Sprintf("round_%d", v)
	}
	return fmt.Sprintf("%v_%d", in.Op, v)
}

// use returns an operand: row statistics of columns have one element for each.
func (w *writer) use(v loop.Value) string {
	if w.k.Axis == loop.Rows && !w.split && w.birth[v]%2 == 1 {
		return w.value(v) + "[j]"
	}
	return w.value(v)
}

// consts declares the constants.
func (w *writer) consts() {
	for v := range w.k.Instrs {
		if in := &w.k.Instrs[v]; in.Code == loop.Const && w.last[v] >= 0 {
			w.line("const %s %s = %s;", cxx.Computed(in.DType), w.value(loop.Value(v)), cxx.Constant(in))
		}
	}
}

// operands lists the operands that a list loads or stores, each once.
func (w *writer) operands(list []loop.Value, code loop.Code) (args []int) {
	for _, v := range list {
		if in := &w.k.Instrs[v]; in.Code == code && !slices.Contains(args, in.Arg) {
			args = append(args, in.Arg)
		}
	}
	return args
}

// fixedLoads loads operands that do not move along columns.
func (w *writer) fixedLoads(p int, at func(arg int) string) {
	for _, a := range w.operands(w.k.Passes[p].Body, loop.Load) {
		if w.k.Args[a].Cols == loop.Fixed {
			w.line("const %[1]s in%[2]d = *(const %[1]s*)(%[3]s);", cxx.Stored(w.k.Args[a].DType), a, at(a))
		}
	}
}

// arrays declares what holds the packs of operands that a Body loads, but for
// those that are held from one pass to another.
func (w *writer) arrays(p int) {
	for _, a := range w.operands(w.k.Passes[p].Body, loop.Load) {
		switch t := cxx.Stored(w.k.Args[a].DType); {
		case w.k.Args[a].Cols == loop.Fixed:
		case !w.persists(a):
			w.line("%s in%d[U][V];", t, a)
		}
	}
}

// persists reports whether a form has the packs of an operand in arrays that
// outlive a pass.
func (w *writer) persists(arg int) bool { return w.k.Axis == loop.Columns && !w.split && w.holds(arg) }

// fetches writes the loads of a Body.
func (w *writer) fetches(p int, pl place) {
	for _, a := range w.operands(w.k.Passes[p].Body, loop.Load) {
		arg := &w.k.Args[a]
		if arg.Cols == loop.Fixed {
			continue
		}
		when := ""
		if pl.hold && w.holds(a) && w.reloaded[a]&(1<<p-1) != 0 {
			when = "if (!H) "
		}
		if pl.one {
			w.line("%s one%d[1];", cxx.Stored(arg.DType), a)
		}
		if arg.Cols == loop.Unit {
			w.line("%sfetch<%s>(%s, %s + c * %d);", when, pl.width(), pl.of(a), pl.at(a), arg.DType.Size())
		} else {
			w.line("%sgather<%s>(%s, %s + c * f.arg[%d].col, f.arg[%d].col);", when, pl.width(), pl.of(a), pl.at(a), a, a)
		}
	}
}

// compute writes what a pass does with a pack that is there.
func (w *writer) compute(p int, pl place) {
	body := w.k.Passes[p].Body
	if !pl.fixed {
		w.fixedLoads(p, pl.at)
	}
	for _, a := range w.operands(body, loop.Load) {
		if t := cxx.Stored(w.k.Args[a].DType); w.k.Args[a].Cols != loop.Fixed {
			w.line("const %s* const x%d = %s;", t, a, pl.of(a))
		}
	}
	for _, a := range w.operands(body, loop.Store) {
		if t := cxx.Stored(w.k.Args[a].DType); !pl.one && w.persists(a) {
			w.line("%s (&out%d)[V] = in%d[u];", t, a, a)
		} else {
			w.line("%s out%d[%s];", t, a, pl.width())
		}
	}
	w.line("#pragma unroll")
	w.line("for (int j = 0; j < %s; j++) {", pl.width())
	for _, v := range body {
		w.instr(v, pl)
	}
	w.line("}")
	for _, a := range w.operands(body, loop.Store) {
		arg := &w.k.Args[a]
		when := ""
		if pl.hold && w.scratch(a) {
			when = "if (!H) "
		}
		if arg.Cols == loop.Unit {
			w.line("%sput<%s>(%s + c * %d, out%d);", when, pl.width(), pl.at(a), arg.DType.Size(), a)
		} else {
			w.line("%sspread<%s>(%s + c * f.arg[%d].col, f.arg[%d].col, out%d);", when, pl.width(), pl.at(a), a, a, a)
		}
	}
}

// walk writes the body of a loop whose rounds have U packs: together of them are
// loaded before anything is computed with those, so that the loads are under way
// at once. where declares c of pack u, and inside says when there is one.
func (w *writer) walk(p int, pl place, together, inside string, where func()) {
	w.line("#pragma unroll")
	w.line("for (int from = 0; from < U; from += %s) {", together)
	for _, load := range []bool{true, false} {
		if load && len(w.operands(w.k.Passes[p].Body, loop.Load)) == 0 {
			continue
		}
		w.line("#pragma unroll")
		w.line("for (int u = from; u < from + (%s); u++) {", together)
		where()
		w.line("if (%s) {", inside)
		if load {
			w.fetches(p, pl)
		} else {
			w.compute(p, pl)
		}
		w.line("}")
		w.line("}")
	}
	w.line("}")
}

// tail writes what is done with the elements behind the last pack of a row, one by
// one. first is the number of the thread, step that of all of them; when says who
// sees to the end of a row.
func (w *writer) tail(p int, pl place, first, step, when string) {
	pl.one, pl.hold = true, false
	w.line("if (V > 1%s) {", when)
	w.line("for (i64 c = packs * V + %s; c < f.cols; c += %s) {", first, step)
	w.fetches(p, pl)
	w.compute(p, pl)
	w.line("}")
	w.line("}")
}

// instr writes one instruction of a Body for element j.
func (w *writer) instr(v loop.Value, pl place) {
	in := &w.k.Instrs[v]
	switch in.Code {
	case loop.Load:
		elem := fmt.Sprintf("x%d[j]", in.Arg)
		if w.k.Args[in.Arg].Cols == loop.Fixed {
			elem = fmt.Sprintf("in%d", in.Arg)
		}
		w.line("const %s %s = widen(%s);", cxx.Computed(in.DType), w.value(v), elem)
	case loop.Index:
		w.line("const i64 %s = %s;", w.value(v), pl.index)
	case loop.Apply, loop.Round:
		w.line("const %s %s = %s;", cxx.Computed(in.Result()), w.value(v), w.expression(v))
	case loop.Reduce:
		from := w.k.Instrs[in.In[0]].Result()
		f := cxx.FoldOf(in, from)
		acc := w.accumulator(v)
		w.line("%s = %s::fold(%s, %s);", acc, f.Name, acc, f.In(w.use(in.In[0]), pl.index))
	case loop.Store:
		w.line("set(out%d[j], %s);", in.Arg, w.use(in.In[0]))
	}
}

func (w *writer) expression(v loop.Value) string {
	in := &w.k.Instrs[v]
	var x []string
	for _, o := range in.In[:in.N] {
		x = append(x, w.use(o))
	}
	if in.Code == loop.Round {
		return fmt.Sprintf("round_to<%s>(%s)", cxx.Stored(in.DType), x[0])
	}
	return cxx.Apply(in, v, w.k.Instrs[in.In[in.N-1]].Result(), x, "f.fault")
}

// accumulator returns the accumulator of a Reduce for element j.
func (w *writer) accumulator(v loop.Value) string {
	if w.k.Axis == loop.Rows {
		return w.value(v) + "_acc[j]"
	}
	return w.value(v) + "_acc"
}

// reduces lists the reductions of a pass.
func (w *writer) reduces(p int) (vals []loop.Value) {
	for _, v := range w.k.Passes[p].Body {
		if w.k.Instrs[v].Code == loop.Reduce {
			vals = append(vals, v)
		}
	}
	return vals
}

func (w *writer) foldOf(v loop.Value) cxx.Fold {
	in := &w.k.Instrs[v]
	return cxx.FoldOf(in, w.k.Instrs[in.In[0]].Result())
}

// finals writes a Final. at returns the address of an operand's element of the
// line; guard says which thread stores.
func (w *writer) finals(p int, at func(arg int) string, guard string) {
	for _, v := range w.k.Passes[p].Final {
		in := &w.k.Instrs[v]
		switch in.Code {
		case loop.Load:
			w.define(v, fmt.Sprintf("widen(*(const %s*)(%s))", cxx.Stored(w.k.Args[in.Arg].DType), at(in.Arg)))
		case loop.Apply, loop.Round:
			w.define(v, w.expression(v))
		case loop.Store:
			w.line("if (%s) set(*(%s*)(%s), %s);", guard, cxx.Stored(w.k.Args[in.Arg].DType), at(in.Arg), w.use(in.In[0]))
		}
	}
}

// result returns the dtype of a row statistic.
func (w *writer) result(v loop.Value) ir.DType { return w.k.Instrs[v].Result() }

// keep returns the address expression of a row statistic between launches.
func (w *writer) keep(v loop.Value, line string) string {
	return fmt.Sprintf("(%s*)(f.work + (%d * lines + %s) * 8)", cxx.Computed(w.result(v)), w.slot[v], line)
}

// partial returns the address expression of the accumulator that the part of a
// line has found for reduction number k of its pass.
func (w *writer) partial(k int, f cxx.Fold, at string) string {
	return fmt.Sprintf("(%s::A*)(f.work + %d * lines + (%d * lines * f.parts + %s) * 16)", f.Name, 8*w.saved, k, at)
}

// define writes a row statistic of a Final. Those of several columns are in arrays,
// which are there.
func (w *writer) define(v loop.Value, x string) {
	if w.k.Axis == loop.Rows && !w.split {
		w.line("%s = %s;", w.use(v), x)
		return
	}
	w.line("const %s %s = %s;", cxx.Computed(w.result(v)), w.value(v), x)
}
