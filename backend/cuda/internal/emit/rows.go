package emit

import (
	"fmt"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/loop"
)

// rowsForms writes the forms of kernels of which a line is a column: threads
// along x have packs of columns, those along y share the rows.
func (w *writer) rowsForms() {
	w.rowsWhole()
	for p := range w.k.Passes {
		w.rowsPart(p)
		if w.combines(p) {
			w.split = true
			w.rowsFinal(p)
			w.split = false
		}
	}
}

// rowsStart opens the loops over outer indices and packs of columns.
func (w *writer) rowsStart() {
	w.consts()
	w.line("const i64 packs = f.cols / V;")
	w.line("for (i64 o = g.block.y; o < f.outers; o += g.blocks.y) {")
	w.line("const i64 row = 0;")
	w.pointers()
	w.line("for (i64 base = (i64)g.block.x * g.threads.x; base < packs; base += (i64)g.blocks.x * g.threads.x) {")
	w.line("const i64 t = base + g.thread.x, c = t * V;")
}

// lineArrays declares the row statistics of a pass: one for each column.
func (w *writer) lineArrays(vals []loop.Value) {
	for _, v := range vals {
		if w.k.Instrs[v].Code != loop.Store && w.k.Instrs[v].Code != loop.Const {
			w.line("%s %s[V] = {};", cxx.Computed(w.result(v)), w.value(v))
		}
	}
}

func (w *writer) perColumn(write func()) {
	w.line("#pragma unroll")
	w.line("for (int j = 0; j < V; j++) {")
	write()
	w.line("}")
}

func (w *writer) rowsWhole() {
	w.line("")
	w.line("template <int V, int U> INLINE void %s_whole(const %s& f, const Grid& g, u64* pool) {", w.Name, w.Frame())
	w.rowsStart()
	w.line("const i64 lo = 0, hi = f.rows;")
	for p := range w.k.Passes {
		w.line("")
		w.line("// pass %d", p)
		w.rowsPass(p)
		w.lineArrays(w.reduces(p))
		w.lineArrays(w.k.Passes[p].Final)
		w.perColumn(func() {
			for _, v := range w.reduces(p) {
				f := w.foldOf(v)
				w.line("%s = %s;", w.use(v), f.Out(fmt.Sprintf("fold_rows<%s>(%s, g, pool)", f.Name, w.accumulator(v))))
			}
			if len(w.k.Passes[p].Final) > 0 {
				w.line("if (t >= packs) continue;")
				w.finals(p, w.columnAt("(c + j)"), "g.thread.y == 0")
			}
		})
	}
	w.line("}")
	w.line("}")
	w.line("}")
}

// columnAt returns how the elements of a column's Final are addressed.
func (w *writer) columnAt(c string) func(arg int) string {
	return func(arg int) string {
		switch a := &w.k.Args[arg]; a.Cols {
		case loop.Unit:
			return fmt.Sprintf("at%d + %s * %d", arg, c, a.DType.Size())
		case loop.Free:
			return fmt.Sprintf("at%d + %s * f.arg[%d].col", arg, c, arg)
		}
		return pointer(arg)
	}
}

// rowsPass writes the walk of the threads along y through rows lo … hi-1.
func (w *writer) rowsPass(p int) {
	for _, v := range w.reduces(p) {
		f := w.foldOf(v)
		w.line("%s::A %s_acc[V];", f.Name, w.value(v))
		w.perColumn(func() { w.line("%s = %s::zero();", w.accumulator(v), f.Name) })
	}
	pl := place{at: func(arg int) string { return fmt.Sprintf("at%d + r * f.arg[%d].row", arg, arg) }, index: "r + f.first"}
	w.line("for (i64 q = t < packs ? lo + g.thread.y : hi; q < hi; q += U * g.threads.y) {")
	w.arrays(p)
	w.walk(p, pl, "U", "U == 1 || r < hi", func() { w.line("const i64 r = q + u * g.threads.y;") })
	w.line("}")
}

func (w *writer) rowsPart(p int) {
	w.line("")
	w.line("template <int V, int U> INLINE void %s_part%d(const %s& f, const Grid& g, u64* pool) {", w.Name, p, w.Frame())
	w.rowsStart()
	w.line("const i64 lines = f.outers * f.cols, part = g.block.z;")
	w.line("const i64 lo = part * f.rows / f.parts, hi = (part + 1) * f.rows / f.parts;")
	if kept := w.uses(2 * p); len(kept) > 0 {
		w.lineArrays(kept)
		w.perColumn(func() {
			for _, v := range kept {
				w.line("if (t < packs) %s = *%s;", w.use(v), w.keep(v, "o * f.cols + c + j"))
			}
		})
	}
	w.rowsPass(p)
	if reds := w.reduces(p); len(reds) > 0 {
		w.perColumn(func() {
			for k, v := range reds {
				f := w.foldOf(v)
				w.line("const %s::A %s_all = fold_rows<%s>(%s, g, pool);", f.Name, w.value(v), f.Name, w.accumulator(v))
				w.line("if (t < packs && g.thread.y == 0) *%s = %s_all;", w.partial(k, f, "part * lines + o * f.cols + c + j"), w.value(v))
			}
		})
	}
	w.line("}")
	w.line("}")
	w.line("}")
}

// rowsFinal writes what combines the parts of pass p: threads along x have columns,
// those along y share the parts.
func (w *writer) rowsFinal(p int) {
	w.line("")
	w.line("INLINE void %s_final%d(const %s& f, const Grid& g, u64* pool) {", w.Name, p, w.Frame())
	w.consts()
	w.line("const i64 lines = f.outers * f.cols;")
	w.line("for (i64 base = (i64)g.block.x * g.threads.x; base < lines; base += (i64)g.blocks.x * g.threads.x) {")
	w.line("const bool live = base + g.thread.x < lines;")
	w.line("const i64 line = live ? base + g.thread.x : lines - 1;")
	w.line("const i64 o = line / f.cols, c = line %% f.cols, row = 0;")
	w.pointers()
	w.loadKept(2*p + 1)
	for k, v := range w.reduces(p) {
		f := w.foldOf(v)
		name := w.value(v)
		w.line("%s::A %s_acc = %s::zero();", f.Name, name, f.Name)
		w.line("#pragma unroll 4")
		w.line("for (i64 k = g.thread.y; k < f.parts; k += g.threads.y) %s_acc = %s::fold(%s_acc, *%s);", name, f.Name, name, w.partial(k, f, "k * lines + line"))
		w.line("const %s %s = %s;", cxx.Computed(w.result(v)), name, f.Out(fmt.Sprintf("fold_rows<%s>(%s_acc, g, pool)", f.Name, name)))
	}
	w.finals(p, w.columnAt("c"), "live && g.thread.y == 0")
	w.keeps(p, "line", "live && g.thread.y == 0")
	w.line("}")
	w.line("}")
}
