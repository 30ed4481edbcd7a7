package fuse

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
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
	w := &Writer{}
	w.K.Axis = q.Axis
	w.Begin()
	var src []loop.Value
	for i := range q.N {
		w.K.Args = append(w.K.Args, loop.Arg{DType: q.In[i], Cols: loop.Unit})
		src = append(src, w.Load(int(i), q.In[i]))
	}
	w.K.Args = append(w.K.Args, loop.Arg{DType: q.Out, Cols: loop.Unit, Write: true})
	if q.Axis == loop.None {
		w.Store(int(q.N), w.Apply(q.Op, q.Out, q.In[q.N-1], src))
		return &w.K
	}
	if q.Axis != loop.Rows {
		w.K.Args[q.N].Cols = loop.Fixed
	}
	r := w.Reduce(q.Op, q.Out, q.In[0], src[0])
	w.Final = true
	w.Store(int(q.N), r)
	return &w.K
}
