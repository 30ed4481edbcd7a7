package emit

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// writer writes the source of one loop.
type writer struct {
	strings.Builder
	*Loop
	depth int
	// last is, by value, the last place that uses it: 2·pass for a Body, one more
	// for a Final. birth is where it is known.
	last, birth []int
	slot        []int // by value: where it is kept between launches, or -1
	reloaded    []int // by operand: passes that load it, and the store before a load
	split       bool  // the parts of lines are being written
}

// WriteLoop returns the CUDA form of a kernel. The error wraps ErrUnsupported, or
// loop.ErrKernel for a kernel that is malformed.
func WriteLoop(k *loop.Kernel, opt Options) (*Loop, error) {
	w, err := newWriter(k, opt)
	if err != nil {
		return nil, err
	}
	w.Name = w.name()
	w.liveness()
	w.write()
	w.forms = w.String()
	return w.Loop, nil
}

// CheckLoop returns the error that WriteLoop would, without writing.
func CheckLoop(k *loop.Kernel, opt Options) error {
	_, err := newWriter(k, opt)
	return err
}

func newWriter(k *loop.Kernel, opt Options) (*writer, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	if opt.Outer < 0 || opt.Outer > MaxOuter {
		return nil, fmt.Errorf("%w: %d outer dimensions", ErrUnsupported, opt.Outer)
	}
	w := &writer{Loop: &Loop{k: k, opt: opt, body: make([]bool, len(k.Args))}}
	if why := w.examine(); why != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, why)
	}
	return w, nil
}

// name makes a name of the ops and the hash of the structure.
func (w *writer) name() string {
	var ops []string
	seen := map[ir.Op]bool{aten.Cast: true}
	for i := range w.k.Instrs {
		in := &w.k.Instrs[i]
		if (in.Code == loop.Apply || in.Code == loop.Reduce) && !seen[in.Op] && len(ops) < 3 {
			seen[in.Op] = true
			ops = append(ops, in.Op.String())
		}
	}
	if len(ops) == 0 {
		ops = []string{"copy"}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%v%d%v", w.k, w.opt.Outer, w.opt.Scratch))
	return fmt.Sprintf("%s_%x", strings.Join(ops, "_"), sum[:8])
}

// examine returns why the kernel can't be written, and finds how wide packs are
// and what can be held.
func (w *writer) examine() string {
	written := make([]int, len(w.k.Args)) // 2·pass + 1 of the Body that stores it, 2·pass + 2 of the Final
	w.reloaded = make([]int, len(w.k.Args))
	widest := 0
	for p := range w.k.Passes {
		pass := &w.k.Passes[p]
		loads := 0
		for _, a := range w.operands(pass.Body, loop.Load) {
			if w.k.Args[a].Cols != loop.Fixed {
				loads += w.k.Args[a].DType.Size()
			}
		}
		w.loads = max(w.loads, loads)
		for _, v := range pass.Body {
			in := &w.k.Instrs[v]
			if why := w.supported(in, false); why != "" {
				return why
			}
			if in.Code != loop.Load && in.Code != loop.Store {
				continue
			}
			a := &w.k.Args[in.Arg]
			w.body[in.Arg] = true
			if a.Cols == loop.Unit {
				widest = max(widest, a.DType.Size())
			}
			switch at := written[in.Arg]; {
			case in.Code == loop.Store:
				written[in.Arg] = 2*p + 1
			case at == 2*p+1:
				return "a Body loads what it stored"
			case at != 0 && at%2 == 0:
				return "a Body loads what a Final stored"
			}
			if in.Code == loop.Load || p+1 < len(w.k.Passes) {
				w.reloaded[in.Arg] |= 1 << p
			}
		}
		for _, v := range pass.Final {
			in := &w.k.Instrs[v]
			if why := w.supported(in, true); why != "" {
				return why
			}
			if in.Code == loop.Load && written[in.Arg] != 0 {
				return "a Final loads what the kernel stored"
			}
			if in.Code == loop.Store {
				written[in.Arg] = 2*p + 2
			}
		}
	}
	w.width = 1
	if widest > 0 {
		w.width = min(16/widest, 8)
	}
	w.size = w.sizeOf()
	for w.width > 1 && w.size*w.width > mostUnrolled {
		w.width /= 2
	}
	for i, a := range w.k.Args {
		switch {
		case w.k.Axis != loop.Columns:
		case w.holds(i):
			w.holdable = true
			w.registers += max(1, a.DType.Size()/4)
		case a.Cols != loop.Fixed && w.reloaded[i] == 1:
			w.registers += max(1, a.DType.Size()/4)
		}
	}
	return ""
}

// simple reports whether an op is an instruction or a few.
func simple(op ir.Op) bool {
	c := op.Spec().Cost
	return c == ir.CostArithmetic || c == ir.CostRounding
}

// sizeOf estimates the code of all passes for one element, in simple operations.
func (w *writer) sizeOf() (n int) {
	for i := range w.k.Instrs {
		in := &w.k.Instrs[i]
		switch {
		case in.Code == loop.Apply && !simple(in.Op):
			n += 8
		case in.Code == loop.Reduce:
			n += 4
		default:
			n++
		}
	}
	return n
}

// holds reports whether the elements of an operand are kept in registers in the
// form that holds lines.
func (w *writer) holds(arg int) bool {
	passes := w.reloaded[arg]
	return w.k.Args[arg].Cols != loop.Fixed && passes&(passes-1) != 0
}

func (w *writer) scratch(arg int) bool { return w.opt.Scratch != nil && w.opt.Scratch[arg] }

func (w *writer) supported(in *loop.Instr, final bool) string {
	if in.Code == loop.Store && w.k.Args[in.Arg].Cols == loop.Fixed {
		switch {
		case !final:
			return "a store of a Body does not move along columns"
		case w.k.Axis == loop.Rows:
			return "a store of a Final does not move along lines"
		}
	}
	return cxx.Lacks(w.k, in)
}

// liveness finds what must be kept between the launches of a split reduction.
func (w *writer) liveness() {
	n := len(w.k.Instrs)
	w.last, w.birth, w.slot = make([]int, n), make([]int, n), make([]int, n)
	for v := range n {
		w.last[v], w.birth[v], w.slot[v] = -1, -1, -1
	}
	for p := range w.k.Passes {
		reds := 0
		for half, list := range [2][]loop.Value{w.k.Passes[p].Body, w.k.Passes[p].Final} {
			for _, v := range list {
				in := &w.k.Instrs[v]
				for _, o := range in.In[:in.N] {
					w.last[o] = 2*p + half
				}
				switch {
				case in.Code == loop.Reduce:
					w.birth[v] = 2*p + 1
					reds++
				case in.Code != loop.Const:
					w.birth[v] = 2*p + half
				}
			}
		}
		w.most = max(w.most, reds)
	}
	for v := range n {
		if w.birth[v]%2 == 1 && w.last[v] > w.birth[v] {
			w.slot[v] = w.saved
			w.saved++
		}
	}
}

// saves lists the row statistics that are known before a place and used there.
func (w *writer) uses(at int) (vals []loop.Value) {
	list := w.k.Passes[at/2].Body
	if at%2 == 1 {
		list = w.k.Passes[at/2].Final
	}
	seen := map[loop.Value]bool{}
	for _, v := range list {
		in := &w.k.Instrs[v]
		for _, o := range in.In[:in.N] {
			if w.slot[o] >= 0 && w.birth[o] < at && !seen[o] {
				seen[o] = true
				vals = append(vals, o)
			}
		}
	}
	return vals
}

// line writes one line of code.
func (w *writer) line(format string, args ...any) {
	if strings.HasPrefix(format, "}") {
		w.depth--
	}
	if format != "" && format[0] != '#' {
		w.WriteString(strings.Repeat("  ", w.depth))
	}
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
	if strings.HasSuffix(format, "{") {
		w.depth++
	}
}

func (w *writer) write() {
	for l := range strings.Lines(w.k.String()) {
		w.WriteString("// " + l)
	}
	w.line("typedef Frame<%d, %d> %s;", max(len(w.k.Args), 1), w.opt.Outer, w.Frame())
	switch w.k.Axis {
	case loop.None:
		w.each()
	case loop.Rows:
		w.rowsForms()
	default:
		w.linesForms()
	}
}
