package cxx

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/loop"
)

//go:embed host.h
var host string

// Prelude is what a source of Loops begins with.
var Prelude = host + Values + Ops + Folds + `
// As loop.Frame.
struct Frame {
  i64 rows, cols, first;
  char* spill;
  char* ptr[32];
  i64 row[32], col[32];
};
enum { FAULT_AT = 32 * 8 + 24 }; // in the spill memory, as machine code has it

// LANES lines or elements are computed beside each other.
enum { LANES = 16 };
#ifdef __clang__
#define BESIDE _Pragma("clang loop vectorize(assume_safety)")
#else
#define BESIDE _Pragma("GCC ivdep")
#endif
`

// Defined returns an error unless Loop can write a kernel.
func Defined(k *loop.Kernel) error {
	if slices.ContainsFunc(k.Args, func(a loop.Arg) bool { return a.By > 0 }) {
		return errors.New("a row that an index chooses has no form in C++")
	}
	for i := range k.Instrs {
		if why := Lacks(k, &k.Instrs[i]); why != "" {
			return fmt.Errorf("%s has no form in C++", why)
		}
	}
	return nil
}

// Spill is the spill memory that a Loop needs, in bytes: for the number of an instruction that divided
// by 0, at native.FaultOffset.
const Spill = loop.MaxArgs*8 + 32

// Loop returns a function of C, by name, that computes a kernel, which Defined takes, on a loop.Frame. It
// goes over the lines as loop.Eval does, or over LANES that are columns beside each other. Sums and
// products of f32s are kept in f64; a line along columns is joined of LANES parts.
func Loop(name string, k *loop.Kernel) string {
	w := &writer{k: k, lines: k.Axis == loop.Rows}
	w.line("extern \"C\" void %s(const Frame* f) {", name)
	w.line("u32* const fault = (u32*)(f->spill + FAULT_AT); fault[0] = fault[1] = 0;")
	w.line("const i64 rows = f->rows, cols = f->cols; (void)rows;")
	for i := range k.Args {
		w.line("char* const p%d = (char*)f->ptr[%d]; const i64 row%d = f->row[%d], col%d = %s; (void)row%d, (void)col%d;", i, i, i, i, i, w.step(i), i, i)
	}
	for v := range k.Instrs {
		if in := &k.Instrs[v]; in.Code == loop.Const {
			w.line("const %s v%d = %s; (void)v%d;", Computed(in.DType), v, Constant(in), v)
		}
	}
	switch k.Axis {
	case loop.Rows:
		w.line("for (i64 c0 = 0; c0 < cols; c0 += LANES) {\nconst int n = cols - c0 < LANES ? (int)(cols - c0) : (int)LANES;")
	case loop.Both:
		w.line("{\nconst i64 r = 0, c = 0, at = f->first; (void)r, (void)c, (void)at;")
	default:
		w.line("for (i64 r = 0; r < rows; r++) {\nconst i64 c = 0, at = f->first; (void)c, (void)at;")
	}
	for p := range k.Passes {
		w.pass(&k.Passes[p])
	}
	w.line("}\n}")
	return w.String()
}

// writer writes one function.
type writer struct {
	strings.Builder
	k     *loop.Kernel
	lines bool // lines are columns, LANES of which are computed beside each other
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// step returns by how many bytes an operand moves along columns.
func (w *writer) step(arg int) string {
	switch a := &w.k.Args[arg]; a.Cols {
	case loop.Unit:
		return fmt.Sprint(a.DType.Size())
	case loop.Free:
		return fmt.Sprintf("f->col[%d]", arg)
	}
	return "0"
}

// pass writes a pass over the line, or over LANES lines. Values of lines that others use are arrays
// with an element for each lane where lines are columns.
func (w *writer) pass(p *loop.Pass) {
	for _, v := range p.Body {
		if in := &w.k.Instrs[v]; in.Code == loop.Reduce {
			f := w.fold(v)
			w.line("%s::A a%d[LANES]; for (int j = 0; j < LANES; j++) a%d[j] = %s::zero();", f.Name, v, v, f.Name)
		}
	}
	if len(p.Body) > 0 {
		w.body(p.Body)
	}
	for _, v := range p.Body {
		if in := &w.k.Instrs[v]; in.Code == loop.Reduce {
			w.join(v)
		}
	}
	if len(p.Final) > 0 {
		w.final(p.Final)
	}
}

func (w *writer) fold(v loop.Value) Fold {
	in := &w.k.Instrs[v]
	return FoldOf(in, w.k.Instrs[in.In[0]].Result())
}

// body writes the loops over the elements.
func (w *writer) body(list []loop.Value) {
	at := map[loop.Axis]string{loop.Rows: "r", loop.Both: "r * cols + c"}[w.k.Axis]
	if at == "" {
		at = "c"
	}
	one := func() {
		w.line("BESIDE\nfor (int j = 0; j < n; j++) {\nconst i64 c = c0 + j, at = %s + f->first; (void)at;", at)
		for _, v := range list {
			w.instr(v, true)
		}
		w.line("}")
	}
	if w.lines {
		w.line("for (i64 r = 0; r < rows; r++) {")
		one()
		w.line("}")
		return
	}
	if w.k.Axis == loop.Both {
		w.line("for (i64 r = 0; r < rows; r++)")
	}
	w.line("{\nauto some = [&](const i64 c0, const int n) __attribute__((always_inline)) {")
	one()
	w.line("};\ni64 c0 = 0;\nfor (; c0 + LANES <= cols; c0 += LANES) some(c0, LANES);\nif (c0 < cols) some(c0, (int)(cols - c0));\n}")
}

// join makes the result of a Reduce of its lanes.
func (w *writer) join(v loop.Value) {
	f, t := w.fold(v), Computed(w.k.Instrs[v].Result())
	if w.lines {
		w.line("%s v%d[LANES]; for (int j = 0; j < LANES; j++) v%d[j] = %s;", t, v, v, f.Out(fmt.Sprintf("a%d[j]", v)))
		return
	}
	w.line("for (int d = LANES / 2; d > 0; d /= 2) for (int j = 0; j < d; j++) a%d[j] = %s::fold(a%d[j], a%d[j + d]);", v, f.Name, v, v)
	w.line("const %s v%d = %s; (void)v%d;", t, v, f.Out(fmt.Sprintf("a%d[0]", v)), v)
}

// final writes what follows a pass, once for each line.
func (w *writer) final(list []loop.Value) {
	if !w.lines {
		for _, v := range list {
			w.instr(v, false)
		}
		return
	}
	for _, v := range list {
		if in := &w.k.Instrs[v]; in.Code != loop.Store && in.Code != loop.Const {
			w.line("%s v%d[LANES];", Computed(in.Result()), v)
		}
	}
	w.line("for (int j = 0; j < n; j++) {\nconst i64 c = c0 + j, r = 0, at = f->first; (void)at, (void)r;")
	for _, v := range list {
		w.instr(v, false)
	}
	w.line("}")
}

// use returns an operand.
func (w *writer) use(v loop.Value) string {
	if w.lines && w.ofLine(v) {
		return fmt.Sprintf("v%d[j]", v)
	}
	return fmt.Sprintf("v%d", v)
}

// ofLine reports whether a value is one of a line: the result of a Reduce or of a Final.
func (w *writer) ofLine(v loop.Value) bool {
	if code := w.k.Instrs[v].Code; code == loop.Const || code == loop.Reduce {
		return code == loop.Reduce
	}
	return slices.ContainsFunc(w.k.Passes, func(p loop.Pass) bool { return slices.Contains(p.Final, v) })
}

// instr writes one instruction for one element.
func (w *writer) instr(v loop.Value, body bool) {
	in := &w.k.Instrs[v]
	var x []string
	for _, o := range in.In[:in.N] {
		x = append(x, w.use(o))
	}
	value := ""
	switch in.Code {
	case loop.Load, loop.Store:
		t := Stored(w.k.Args[in.Arg].DType)
		at := fmt.Sprintf("(p%d + r * row%d + c * col%d)", in.Arg, in.Arg, in.Arg)
		if in.Code == loop.Store {
			w.line("set(*(%s*)%s, %s);", t, at, x[0])
			return
		}
		value = fmt.Sprintf("widen(*(const %s*)%s)", t, at)
	case loop.Index:
		value = "at"
	case loop.Apply:
		value = Apply(in, v, w.k.Instrs[in.In[in.N-1]].Result(), x, "fault")
	case loop.Round:
		value = fmt.Sprintf("round_to<%s>(%s)", Stored(in.DType), x[0])
	case loop.Reduce:
		f := w.fold(v)
		w.line("a%d[j] = %s::fold(a%d[j], %s);", v, f.Name, v, f.In(x[0], "at"))
		return
	case loop.Const:
		return
	}
	if w.lines && !body {
		w.line("v%d[j] = %s;", v, value)
		return
	}
	w.line("const %s v%d = %s; (void)v%d;", Computed(w.k.Instrs[v].Result()), v, value, v)
}

// Flags returns what a compiler must be told for a source of Loops: each operation is rounded as package ir
// says, and memory is untyped.
func Flags() []string {
	return []string{"-std=c++17", "-O3", "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-w"}
}
