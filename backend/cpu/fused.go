package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
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
	n.hint()
	n.code, ok = l.engine.compile(k.Loop)
	return n.emit, ok
}

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
	if !ok {
		return false
	}
	emit, ok := l.Kernel(k)
	if ok {
		emit()
	}
	return ok
}

// fewLines is when the lines of a reduction give the processors too little to
// share.
const fewLines = 16

// mostStrips bounds the parts of a tall reduction.
const mostStrips = 128

// Parts returns into how many parts the lines of a reduction are cut: where there
// are few of them, and where lines are tall columns, which are better read in
// strips of rows.
func (l *lowering) Parts(r fuse.Reduction) int {
	first := 1 // the size of the first run of reduced dimensions
	started := false
	for d, size := range r.Shape.Dims() {
		if r.Mask[d] {
			first *= size
			started = started || size > 1
		} else if started && size > 1 {
			break
		}
	}
	t := &l.tune
	switch {
	case r.Lines < fewLines:
		return max(1, min(r.Shape.Numel()/t.part, first, maxParts))
	case r.Axis == loop.Rows && r.Shape.Numel() >= t.tall && first >= 4*t.strip:
		return min(first/t.strip, mostStrips)
	}
	return 1
}
