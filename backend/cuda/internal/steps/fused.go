package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// The methods of lowering that are exported are what it is to the plan of what is
// fused, as a fuse.Backend.

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

// Value returns where a value is that does not wait.
func (l *lowering) Value(id graph.ID) fuse.Value {
	v := &l.vals[id]
	return fuse.Value{Buf: v.buf, View: v.view}
}

// SetValue notes where a value is.
func (l *lowering) SetValue(id graph.ID, v fuse.Value) {
	l.vals[id] = value{l.p.Shape(id), v.Buf, v.View}
}

// Copy emits a dense copy.
func (l *lowering) Copy(d ir.DType, v fuse.Value) fuse.Value {
	c := (&call{l: l}).copied(value{ir.MakeShape(d, v.View.Dims[:v.View.Rank]...), v.Buf, v.View})
	return fuse.Value{Buf: c.buf, View: c.view}
}

// Unfused emits instructions one by one.
func (l *lowering) Unfused(instrs []int32, _ func(id graph.ID) bool) {
	for _, i := range instrs {
		in := &l.p.Instrs[i]
		if err := l.alone(in); err != nil {
			panic(located(in, err))
		}
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
	s := planned{}
	number := make([]int, len(k.Args)) // among the operands of the step, where results go first
	for _, writes := range []bool{true, false} {
		for i := range k.Args {
			a := &k.Args[i]
			if a.Role == fuse.Scratch || a.Role.Writes() != writes {
				continue
			}
			if a.Buf == fuse.None {
				a.Buf = l.newBuffer(plan.Buffer{Bytes: k.Bytes(a)})
			}
			number[i] = len(s.operands)
			s.operands = append(s.operands, operand{a.Buf, a.View.Offset * a.DType.Size()})
		}
		if writes {
			s.writes = len(s.operands)
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
	for w, r := range k.InPlace(func(buf int) int { return l.bufs[buf].Bytes }) {
		s.inPlace = append(s.inPlace, plan.Pair{Write: w, Read: r})
	}
	s.Kernels = renumbered(written.Plan(&g, l.opt.Limits), func(a int) int { return number[a] })
	c := &call{l: l, instr: k.Instrs[0]}
	c.emit(s)
	if len(k.Divisions) > 0 {
		c.mayFail(0)
		l.steps[len(l.steps)-1].Payload.divisions = k.Divisions
	}
}
