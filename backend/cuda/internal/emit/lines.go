package emit

import (
	"fmt"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/loop"
)

// each writes the form of kernels without reductions: threads along columns, rows
// and what is around them.
func (w *writer) each() {
	w.line("")
	w.line("template <int V, int U> INLINE void %s_each(const %s& f, const Grid& g, u64* pool) {", w.Name, w.Frame())
	w.consts()
	w.line("const i64 packs = f.cols / V, first = (i64)g.block.x * g.threads.x + g.thread.x, step = (i64)g.blocks.x * g.threads.x;")
	w.line("for (i64 o = (i64)g.block.z * g.threads.z + g.thread.z; o < f.outers; o += (i64)g.blocks.z * g.threads.z) {")
	w.line("for (i64 row = (i64)g.block.y * g.threads.y + g.thread.y; row < f.rows; row += (i64)g.blocks.y * g.threads.y) {")
	w.pointers()
	pl := place{at: pointer, index: "c + j + f.first", fixed: true}
	for p := range w.k.Passes {
		w.line("{ // pass %d", p)
		w.depth++
		w.fixedLoads(p, pl.at)
		w.line("for (i64 t = first; t < packs; t += U * step) {")
		w.arrays(p)
		w.walk(p, pl, "U", "U == 1 || s < packs", func() { w.line("const i64 s = t + u * step, c = s * V;") })
		w.line("}")
		w.tail(p, pl, "first", "step", "")
		w.line("}")
	}
	w.line("}")
	w.line("}")
	w.line("}")
}

func pointer(arg int) string { return fmt.Sprintf("at%d", arg) }

// pointers declares where operands begin for the row and outer index.
func (w *writer) pointers() {
	for a := range w.k.Args {
		o, row := "o", "row"
		if w.scratch(a) {
			o, row = "0", "(i64)g.block.x * g.threads.y + g.thread.y"
			if w.split {
				row = "line"
			}
		}
		w.line("char* const at%d = f.at(%d, %s, %s);", a, a, o, row)
	}
}

// linesForms writes the forms of kernels of which a line is a row or everything.
func (w *writer) linesForms() {
	w.whole()
	w.split = true
	for p := range w.k.Passes {
		w.part(p)
		if w.combines(p) {
			w.final(p)
		}
	}
}

// dims declares how many lines there are and how many packs each has.
func (w *writer) dims() {
	if w.k.Axis == loop.Both {
		w.line("const i64 lines = f.outers, across = f.cols / V, packs = across * f.rows;")
		return
	}
	w.line("const i64 lines = f.outers * f.rows, packs = f.cols / V;")
}

// lineStart declares what belongs to a line.
func (w *writer) lineStart() {
	switch {
	case w.k.Axis == loop.Both:
		w.line("const i64 o = line, row = 0;")
	case w.opt.Outer == 0:
		w.line("const i64 o = 0, row = line;")
	default:
		w.line("const i64 o = line / f.rows, row = line %% f.rows;")
	}
	w.pointers()
}

// whole writes the form in which the threads along x of a block have a line,
// which they read in each pass or, if H, hold in registers, U packs each.
func (w *writer) whole() {
	w.line("")
	w.line("template <int V, int U, bool H> INLINE void %s_whole(const %s& f, const Grid& g, u64* pool) {", w.Name, w.Frame())
	w.consts()
	w.dims()
	w.line("for (i64 base = (i64)g.block.x * g.threads.y; base < lines; base += (i64)g.blocks.x * g.threads.y) {")
	w.line("const bool live = base + g.thread.y < lines;")
	w.line("const i64 line = live ? base + g.thread.y : lines - 1;")
	w.lineStart()
	w.line("typedef typename Counter<H>::type I;")
	w.line("const I lo = 0, hi = live ? packs : 0;")
	for a := range w.k.Args {
		if w.persists(a) {
			w.line("%s in%d[U][V];", cxx.Stored(w.k.Args[a].DType), a)
		}
	}
	for p := range w.k.Passes {
		w.line("")
		w.line("// pass %d", p)
		w.linePass(p)
		for _, v := range w.reduces(p) {
			f := w.foldOf(v)
			w.line("const %s %s = %s;", cxx.Computed(w.result(v)), w.value(v), f.Out(fmt.Sprintf("fold_group<%s>(%s_acc, g, pool)", f.Name, w.value(v))))
		}
		w.finals(p, w.finalAt, "live && g.thread.x == 0")
	}
	w.line("}")
	w.line("}")
}

// finalAt returns the address of an operand's element of a line: its first.
func (w *writer) finalAt(arg int) string { return pointer(arg) }

// linePass writes the walk of a group along packs lo … hi-1 of a line.
func (w *writer) linePass(p int) {
	for _, v := range w.reduces(p) {
		f := w.foldOf(v)
		w.line("%s::A %s_acc = %s::zero();", f.Name, w.value(v), f.Name)
	}
	w.line("{")
	if w.k.Axis == loop.Both {
		w.bothPass(p)
		w.line("}")
		return
	}
	pl := place{at: pointer, index: "c + j + f.first", fixed: true, hold: !w.split}
	w.fixedLoads(p, pl.at)
	next, end, together := "t + U * g.threads.x", " && part == f.parts - 1", "U"
	if w.split {
		w.line("typedef i64 I;")
	} else {
		next, end = "H ? hi : "+next, " && live && !H"
		if p > 0 {
			together = "H ? 1 : U" // what is held is there; the rest would take registers
		}
	}
	w.line("for (I t = lo + g.thread.x; t < hi; t = %s) {", next)
	w.arrays(p)
	w.walk(p, pl, together, "s < hi", func() { w.line("const I s = t + u * g.threads.x, c = s * V;") })
	w.line("}")
	w.tail(p, pl, "g.thread.x", "g.threads.x", end)
	w.line("}")
}

// bothPass writes the walk through rows and columns.
func (w *writer) bothPass(p int) {
	pl := place{at: func(arg int) string { return fmt.Sprintf("at%d + r[u] * f.arg[%d].row", arg, arg) }, index: "r[u] * f.cols + c + j + f.first"}
	w.line("i64 q = (lo + g.thread.x) / across, s = (lo + g.thread.x) %% across;")
	w.line("const i64 down = g.threads.x / across, along = g.threads.x %% across;")
	w.line("for (i64 t = lo + g.thread.x; t < hi; t += U * g.threads.x) {")
	w.arrays(p)
	w.line("i64 r[U], cols[U];")
	w.line("#pragma unroll")
	w.line("for (int u = 0; u < U; u++) {")
	w.line("r[u] = q, cols[u] = s * V;")
	w.line("q += down, s += along;")
	w.line("if (s >= across) s -= across, q++;")
	w.line("}")
	w.walk(p, pl, "U", "U == 1 || t + u * g.threads.x < hi", func() { w.line("const i64 c = cols[u];") })
	w.line("}")
}

// loadKept declares the row statistics that a place needs from earlier launches.
func (w *writer) loadKept(at int) {
	for _, v := range w.uses(at) {
		w.line("const %s %s = *%s;", cxx.Computed(w.result(v)), w.value(v), w.keep(v, "line"))
	}
}

// part writes pass p of parts of lines, which leaves accumulators behind.
func (w *writer) part(p int) {
	w.line("")
	w.line("template <int V, int U> INLINE void %s_part%d(const %s& f, const Grid& g, u64* pool) {", w.Name, p, w.Frame())
	w.consts()
	w.dims()
	w.line("for (i64 line = g.block.y; line < lines; line += g.blocks.y) {")
	w.lineStart()
	w.line("const i64 part = g.block.x, lo = part * packs / f.parts, hi = (part + 1) * packs / f.parts;")
	w.loadKept(2 * p)
	w.linePass(p)
	for k, v := range w.reduces(p) {
		f := w.foldOf(v)
		w.line("%s_acc = fold_group<%s>(%s_acc, g, pool);", w.value(v), f.Name, w.value(v))
		w.line("if (g.thread.x == 0) *%s = %s_acc;", w.partial(k, f, "line * f.parts + part"), w.value(v))
	}
	w.line("}")
	w.line("}")
}

// final writes what combines the parts of pass p and computes its Final.
func (w *writer) final(p int) {
	w.line("")
	w.line("INLINE void %s_final%d(const %s& f, const Grid& g, u64* pool) {", w.Name, p, w.Frame())
	w.consts()
	w.line("const i64 lines = f.outers%s;", map[bool]string{false: " * f.rows"}[w.k.Axis == loop.Both])
	w.line("for (i64 base = (i64)g.block.x * g.threads.y; base < lines; base += (i64)g.blocks.x * g.threads.y) {")
	w.line("const bool live = base + g.thread.y < lines;")
	w.line("const i64 line = live ? base + g.thread.y : lines - 1;")
	w.lineStart()
	w.loadKept(2*p + 1)
	for k, v := range w.reduces(p) {
		f := w.foldOf(v)
		name := w.value(v)
		w.line("%s::A %s_acc = %s::zero();", f.Name, name, f.Name)
		w.line("for (i64 k = g.thread.x; k < f.parts; k += g.threads.x) %s_acc = %s::fold(%s_acc, *%s);", name, f.Name, name,
			w.partial(k, f, "line * f.parts + k"))
		w.line("const %s %s = %s;", cxx.Computed(w.result(v)), name, f.Out(fmt.Sprintf("fold_group<%s>(%s_acc, g, pool)", f.Name, name)))
	}
	w.finals(p, w.finalAt, "live && g.thread.x == 0")
	w.keeps(p, "line", "live && g.thread.x == 0")
	w.line("}")
	w.line("}")
}

// keeps writes the row statistics of pass p that later launches need.
func (w *writer) keeps(p int, line, guard string) {
	for _, list := range [2][]loop.Value{w.k.Passes[p].Body, w.k.Passes[p].Final} {
		for _, v := range list {
			if w.slot[v] >= 0 {
				w.line("if (%s) *%s = %s;", guard, w.keep(v, line), w.use(v))
			}
		}
	}
}
