package cpu

import (
	"slices"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Supports reports whether there is machine code for what a probe says.
func (l *lowering) Supports(q fuse.Probe) bool { return l.engine != nil && l.engine.supports(q) }

// Templates returns the templates of kernels that the engine keeps. A portable backend has none that
// compile.
func (l *lowering) Templates() *fuse.Templates {
	if l.engine == nil {
		return fuse.NewTemplates()
	}
	return l.engine.templates
}

// Kernel compiles a kernel, which emit makes a step.
func (l *lowering) Kernel(k *fuse.Kernel) (emit func(), ok bool) {
	n := &nestStep{Kernel: k, l: l}
	if n.laid, _ = k.Layout.Kept().(*laid); l.engine.serves(n.laid, l.tune.piece) {
		return n.emitLaid, true
	}
	if n.laid != nil { // the loop is shared
		own := *k.Loop
		own.Args = slices.Clone(own.Args)
		k.Loop = &own
	}
	together := l.takeTall(k) || l.takeTogether(k)
	if !together {
		n.apart = setApart(k)
	}
	// What is moved for a call is that of one grid, and parts are calls of their own.
	k.Loop.Planes = len(k.Grid.Outer) > 0 && len(n.apart) == 0 && k.Parts <= 1
	nest.Hint(k, l.Uses)
	if !together {
		l.takeWhole(k)
		l.takeGrouped(k)
	}
	n.code, ok = l.engine.compile(k.Loop)
	return n.emit, ok
}

// BriefKernels says that steps need no Kernel.
func (*lowering) BriefKernels() {}

// Reorders reports whether there are kernels that write results in another order than they read operands.
func (l *lowering) Reorders() bool { return l.engine != nil }

// OrdersByLanes reports whether sums of narrow floats go by lanes of which elements of 64 bits halve the number.
func (l *lowering) OrdersByLanes() bool { return l.engine != nil && l.engine.byLanes }

// ReadsSingly reports whether no vector gathers elements of a dtype.
func (*lowering) ReadsSingly(d ir.DType) bool { return d.Size() < 4 }

// Unfused emits pointwise instructions as a step of Go kernels, any other as its
// op is lowered.
func (l *lowering) Unfused(instrs []int32, leaves func(id graph.ID) bool) {
	if in := &l.Program.Instrs[instrs[0]]; in.Op.Spec().Category != ir.Pointwise {
		l.Alone(in)
		return
	}
	l.blockGroup(instrs, leaves)
}

// move emits the copy of src to dst as one kernel. It reports whether there is
// code for it.
func (l *lowering) move(in *graph.Instr, dst, src plan.Value) bool {
	if l.engine == nil {
		return false
	}
	k, ok := fuse.Move(in, src.DType(), dst.Value, src.Value)
	return ok && l.emitKernel(k)
}

// emitKernel emits a kernel as a step by itself. It reports whether there is code for it.
func (l *lowering) emitKernel(k *fuse.Kernel) bool {
	emit, ok := l.Kernel(k)
	if ok {
		emit()
	}
	return ok
}

// Parts returns into how many parts the lines of a reduction are cut.
func (l *lowering) Parts(r fuse.Reduction) int { return l.tune.cut.Parts(r) }

// Beside reports whether the lines of a reduction are computed beside each other.
func (l *lowering) Beside(r fuse.Reduction) bool { return l.tune.cut.Beside(r) }
