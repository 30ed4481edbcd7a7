package fuse

import (
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// Probe is one op on operands of given dtypes: the smallest kernel there is of
// it. Whether an instruction becomes part of a kernel depends on nothing else,
// so that it is computed by the same code alone and among others.
type Probe struct {
	Op ir.Op
	// In are the dtypes of the operands, N of them.
	In  [3]ir.DType
	N   uint8
	Out ir.DType
	// Axis is that of a reduction, None for a pointwise op.
	Axis loop.Axis
}

// Kernel returns the kernel that a Probe stands for.
func (q Probe) Kernel() *loop.Kernel {
	w := &kernelWriter{}
	w.k.Axis = q.Axis
	w.begin()
	var src []loop.Value
	for i := range q.N {
		w.k.Args = append(w.k.Args, loop.Arg{DType: q.In[i], Cols: loop.Unit})
		src = append(src, w.load(int(i), q.In[i]))
	}
	w.k.Args = append(w.k.Args, loop.Arg{DType: q.Out, Cols: loop.Unit, Write: true})
	if q.Axis == loop.None {
		w.store(int(q.N), w.apply(q.Op, q.Out, q.In[q.N-1], src))
		return &w.k
	}
	if q.Axis != loop.Rows {
		w.k.Args[q.N].Cols = loop.Fixed
	}
	r := w.reduce(q.Op, q.Out, q.In[0], src[0], false)
	w.final = true
	w.store(int(q.N), r)
	return &w.k
}
