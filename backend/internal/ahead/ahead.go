// Package ahead plans a Program for another process: it emits steps that are data alone
// (internal/ahead), machine code for both levels of instructions and calls of the C functions that
// libtorch and Loris's own host offer to compiled models. Groups, kernels, grids and the memory plan
// are those of backend/cpu.
package ahead

import (
	"errors"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native"
)

// lineBytes is the alignment of everything in the workspace and among the literals.
const lineBytes = 64

// threadNanos is the work that is worth another thread.
const threadNanos = 30_000

type step = plan.Step[ahead.Step]

// emitter emits the steps of a Program, as a plan.Emitter.
type emitter struct {
	*plan.Builder
	steps     []step
	templates *fuse.Templates
	probes    map[fuse.Probe]bool
	numbers   map[string]int // of kernels, by structure; -1: it has no code
	kernels   []ahead.Kernel
	returned  map[int]int // numbers of returned tensors, by buffer
	folded    map[int]int // offsets of values of constants alone, by buffer
	seed      int         // the parameter that stands for the generator of the process, or -1
	varies    bool        // there are plans for other sizes, too

	foldedBytes int
	sizes       []int // bytes of the buffers
	failures    []error
}

// Supports reports whether an op can be part of a Program for Plan. A loop is written out.
func Supports(op ir.Op) bool {
	sp := op.Spec()
	if op == aten.Scan {
		return false
	}
	return sp != nil && !sp.Composite() || lowerings[op] != nil && sp.Composite()
}

// Takes reports whether a use of a composite op that Supports reports is one that has a function.
func Takes(a ir.Args) bool { return a.Spec.Op != aten.Attention || takesAttention(a) }

// Plans returns the plans of a Program that graph.Optimize made with Supports, for one choice of its
// sizes or for several, the largest first. Plans for several have the same steps in the same order over
// buffers in the same places, with room for the largest; only numbers in them differ. Where
// instructions have neither a kernel nor a function, or sizes decide what is computed, the error names
// all of them, with the user's lines, and wraps backend.ErrUnsupported. Random ops whose seed is the
// parameter of that number draw from the generator of the process that runs the plan; -1 stands for
// none. What is computed of parameters alone that are constant is computed before the runs, unless sizes
// vary.
func Plans(sizes []*graph.Program, seed int, constant func(param int) bool) ([]*ahead.Plan, error) {
	drafts := make([]*emitter, len(sizes))
	for i, p := range sizes {
		e, err := draft(p, seed, len(sizes) > 1)
		if err != nil {
			return nil, err
		}
		drafts[i] = e
	}
	if err := agree(drafts); err != nil {
		return nil, err
	}
	plans := make([]*ahead.Plan, len(drafts))
	for i, e := range drafts {
		plans[i] = e.finish(constant)
	}
	return plans, nil
}

// draft emits the steps of a Program.
func draft(p *graph.Program, seed int, varies bool) (*emitter, error) {
	if err := check.Program(p, Supports); err != nil {
		return nil, err
	}
	e := &emitter{
		Builder: plan.NewBuilder(p, nil), templates: fuse.NewTemplates(), probes: map[fuse.Probe]bool{}, numbers: map[string]int{}, returned: map[int]int{}, folded: map[int]int{},
		seed: seed, varies: varies,
	}
	if err := e.Build(e, nil); err != nil {
		return nil, err
	}
	for i := range e.Buffers {
		e.sizes = append(e.sizes, e.Buffers[i].Bytes)
	}
	return e, errors.Join(e.failures...)
}

// finish orders the steps and places the buffers.
func (e *emitter) finish(constant func(param int) bool) *ahead.Plan {
	var folded []step
	if !e.varies {
		folded = e.fold(constant)
	}
	m := plan.Make(e.steps, e.Buffers, plan.Options[ahead.Step]{Alignment: lineBytes, Inputs: len(e.Program.Params), Eager: true})
	out := &ahead.Plan{Workspace: m.Workspace, Kernels: e.kernels, Returned: len(e.returned), Sizes: e.sizes, FoldedBytes: e.foldedBytes}
	for i := range m.Buffers {
		out.Places = append(out.Places, e.place(m, i, out))
	}
	for i := range folded {
		out.Folds = append(out.Folds, titled(&folded[i]))
	}
	for i := range m.Steps {
		out.Steps = append(out.Steps, titled(&m.Steps[i]))
	}
	return out
}

// place returns where buffer i lies, and adds constants to the literals.
func (e *emitter) place(m *plan.Plan[ahead.Step], i int, out *ahead.Plan) ahead.Place {
	b := &m.Buffers[i]
	switch b.Kind {
	case plan.Input:
		return ahead.Place{Space: ahead.Param, Index: i}
	case plan.Returned:
		if at, ok := e.folded[i]; ok {
			return ahead.Place{Space: ahead.Folded, Offset: at}
		}
		return ahead.Place{Space: ahead.Returned, Index: e.returned[i]}
	case plan.Constant:
		for len(out.Literals)%lineBytes != 0 {
			out.Literals = append(out.Literals, 0)
		}
		at := len(out.Literals)
		out.Literals = append(out.Literals, b.Data...)
		return ahead.Place{Space: ahead.Literal, Offset: at}
	}
	if b.Storage < 0 {
		return ahead.Place{}
	}
	if st := &m.Storages[b.Storage]; st.Output >= 0 {
		return ahead.Place{Space: ahead.Output, Index: st.Output}
	} else {
		return ahead.Place{Offset: st.Offset}
	}
}

// Supports reports whether there is machine code for what a probe says, for both levels.
func (e *emitter) Supports(q fuse.Probe) bool {
	ok, known := e.probes[q]
	if !known {
		_, err := assemble(q.Kernel())
		ok = err == nil
		e.probes[q] = ok
	}
	return ok
}

func assemble(k *loop.Kernel) (out ahead.Kernel, err error) {
	out.Loop = k
	if out.AVX2.Text, out.AVX2.Spill, err = native.Assemble(k, native.AVX2); err != nil {
		return out, err
	}
	out.AVX512.Text, out.AVX512.Spill, err = native.Assemble(k, native.AVX512)
	return out, err
}

// Templates returns the templates of kernels.
func (e *emitter) Templates() *fuse.Templates { return e.templates }

// Parts returns into how many parts the lines of a reduction are cut, which is one where sizes vary:
// the best number is no simple function of them.
func (e *emitter) Parts(r fuse.Reduction) int {
	if e.varies {
		return 1
	}
	return nest.Cuts().Parts(r)
}

// Beside reports false: what is computed ahead does not move lines to lie beside each other.
func (e *emitter) Beside(fuse.Reduction) bool { return false }

// Epilogue says what the function of a dense instruction does to its results: addmm_out adds a vector.
func (e *emitter) Epilogue(in *graph.Instr) (fuse.Rule, bool) {
	out := e.Program.Shape(in.Out)
	adds := in.Op == aten.MatMul && out.DType().IsFloat() && out.Rank() > 0 && e.Program.Shape(in.Args[1]).Rank() == 2
	return fuse.Rule{Channel: out.Rank() - 1, Vector: true}, adds
}

// Kernel assembles a kernel.
func (e *emitter) Kernel(k *fuse.Kernel) (emit func(), ok bool) {
	nest.Hint(k, e.Uses)
	key := k.Loop.Key()
	n, known := e.numbers[key]
	if !known {
		n = -1
		if code, err := assemble(k.Loop); err == nil {
			n = len(e.kernels)
			e.kernels = append(e.kernels, code)
		}
		e.numbers[key] = n
	}
	return func() {
		s := plan.KernelStep[ahead.Step](e.Builder, k)
		walk := nest.Of(k, nest.Piece)
		s.Payload = ahead.Step{Kernel: n, Nest: walk, Grain: max(1, int(threadNanos/max(nest.Cost(k, walk), 0.1)))}
		e.steps = append(e.steps, s)
	}, n >= 0
}

// Unfused fails: whatever pointwise ops and reductions have no machine code have nothing else.
func (e *emitter) Unfused(instrs []int32, _ func(id graph.ID) bool) {
	for _, i := range instrs {
		in := &e.Program.Instrs[i]
		if in.Op.Spec().Category != ir.Pointwise {
			e.Alone(in)
			continue
		}
		e.fail(in, "it has no machine code for these dtypes")
		for k, s := range e.Program.Outs(in) {
			e.Values[in.Out+graph.ID(k)] = e.NewValue(s)
		}
	}
}

// fail notes that an instruction cannot be exported. Emitting goes on, so that all such are found.
func (e *emitter) fail(in *graph.Instr, why string, args ...any) {
	e.failures = append(e.failures, check.Located(in, fmt.Errorf("%w: %s", backend.ErrUnsupported, fmt.Sprintf(why, args...))))
}

// Lower emits the steps of an instruction that is no part of a kernel of package fuse.
func (e *emitter) Lower(pc *plan.Call) {
	f := lowerings[pc.Instr.Op]
	if f == nil {
		e.fail(pc.Instr, "neither a kernel nor a function of libtorch computes %v", pc.Instr.Op)
		e.results(pc)
		return
	}
	f(&call{pc, e})
}

// results makes the results of an instruction that failed.
func (e *emitter) results(pc *plan.Call) {
	for len(pc.Results) < len(pc.Shapes) {
		pc.Result()
	}
}

// CopyTo emits the copy of a value to another place, as a kernel.
func (e *emitter) CopyTo(in *graph.Instr, to, from plan.Value) {
	if from.Shape.Numel() == 0 {
		e.nothing(in, []int{from.Buf}, to.Buf)
		return
	}
	k, ok := fuse.Move(in, from.DType(), to.Value, from.Value)
	if ok {
		var emit func()
		if emit, ok = e.Kernel(k); ok {
			emit()
			return
		}
	}
	e.fail(in, "elements of %v cannot be moved from %v", from.DType(), from.View)
}

// nothing emits a step that does nothing but write a buffer of no elements.
func (e *emitter) nothing(in *graph.Instr, reads []int, buf int) {
	e.steps = append(e.steps, step{Instr: in, Reads: reads, Writes: []int{buf}, Payload: ahead.Step{Nest: &loop.Nest{Units: loop.Units{Rows: 1, Cols: 1}}}})
}
