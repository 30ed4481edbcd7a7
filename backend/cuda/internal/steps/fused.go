package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/graph"
)

// Supports reports whether package emit writes what a probe says.
func (l *lowering) Supports(q fuse.Probe) bool {
	ok, known := l.probes[q]
	if !known {
		ok = emit.CheckLoop(q.Kernel(), emit.Options{}) == nil
		l.probes[q] = ok
	}
	return ok
}

// Parts returns 1: kernels share long lines out themselves.
func (l *lowering) Parts(fuse.Reduction) int { return 1 }

// Beside reports false: threads of a block reduce a line together.
func (l *lowering) Beside(fuse.Reduction) bool { return false }

// Unfused emits instructions one by one.
func (l *lowering) Unfused(instrs []int32, _ func(id graph.ID) bool) {
	for _, i := range instrs {
		l.Alone(&l.Program.Instrs[i])
	}
}

// Kernel writes a kernel, which emit makes a step.
func (l *lowering) Kernel(k *fuse.Kernel) (launch func(), ok bool) {
	opt := emit.Options{Outer: len(k.Grid.Outer)}
	for i := range k.Args {
		if k.Args[i].Role == fuse.Scratch {
			if opt.Scratch == nil {
				opt.Scratch = make([]bool, len(k.Args))
			}
			opt.Scratch[i] = true
		}
	}
	written, err := emit.WriteLoop(k.Loop, opt)
	return func() { l.fused(k, written) }, err == nil
}

// fused emits the step of a kernel.
func (l *lowering) fused(k *fuse.Kernel, written *emit.Loop) {
	g := emit.Geometry{Rows: k.Grid.Rows.N, Cols: k.Grid.Cols.N}
	for _, o := range k.Grid.Outer {
		g.Outer = append(g.Outer, o.N)
	}
	step := plan.KernelStep[planned](l.Builder, k)
	s := planned{writes: len(step.Writes)}
	number := make([]int, len(k.Args)) // among the operands of the step, where results go first
	for _, writes := range []bool{true, false} {
		for i := range k.Args {
			if a := &k.Args[i]; a.Role != fuse.Scratch && a.Role.Writes() == writes {
				number[i] = len(s.operands)
				s.operands = append(s.operands, operand{a.Buf, a.View.Offset * a.DType.Size()})
			}
		}
	}
	for i := range k.Args {
		size := k.Args[i].DType.Size()
		p := emit.Place{Offset: k.Args[i].View.Offset * size, Row: k.Grid.Rows.Steps[i] * size, Col: k.Grid.Cols.Steps[i] * size}
		for _, o := range k.Grid.Outer {
			p.Outer = append(p.Outer, o.Steps[i]*size)
		}
		g.Args = append(g.Args, p)
	}
	s.Kernels = renumbered(written.Plan(&g, l.opt.Limits), func(a int) int { return number[a] })
	l.add(step, s)
	if len(k.Divisions) > 0 {
		l.mayFail(0)
		l.steps[len(l.steps)-1].Payload.divisions = k.Divisions
	}
}
