package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/strided"
)

// cheapRows is what an element of computed rows costs at most, in nanoseconds, where two threads could share out nothing
// but the computing.
const cheapRows = 0.25

// addsAsComputed has the kernel that is to compute the source of an index_add, or of a scatter of sums of whole rows, add
// its rows to those that the index selects, in its order, as addRows does to rows in memory. It reports whether it will.
func (c *call) addsAsComputed() bool {
	self, source := c.In[0].Shape(), c.Instr.Args[2]
	if c.l.engine == nil || self.Rank() < 2 || self.Numel() == 0 || c.In[2].Shape().Numel() == 0 || !c.l.Groups.Waits(source) {
		return false
	}
	dim := c.Dim("dim", self.Rank())
	outer, size, inner := self.Around(dim)
	selected := c.In[2].Shape().Numel() / max(inner, 1)
	if outer > 1 || inner < shortRow/2 || self.DType() == ir.Bool || self.Bytes() > cachedRows && !fewRows(selected, size) {
		return false
	}
	if t := c.l.limiter.Threads(); t > nest.ColumnCuts(inner, t) && (t > 2 || c.l.Groups.Nanos(source) > cheapRows) {
		return false // they share out the computing of rows that lie in memory
	}
	c.ComputeFirst(2)
	index := c.Operands[1]
	if c.Instr.Op == aten.ScatterReduce {
		var ok bool
		if index, _, ok = c.rowVector(); !ok || !c.In[1].Shape().SameDims(c.In[2].Shape()) {
			return false
		}
	}
	sink := &fuse.Sink{ID: source, Sum: true}
	if !c.l.Groups.AddSink(source, sink) {
		return false
	}
	index = c.l.cast(c.Instr, index, ir.I64)
	out := c.ResultOfCopy()
	dims := c.In[2].Shape().Dims()
	by := fuse.Chosen{Size: size, Step: out.View.Strides[dim], Instr: c.Instr}
	by.Index = fuse.Value{Buf: index.Buf, View: strided.View{Offset: index.View.Offset, Rank: len(dims)}}
	copy(by.Index.View.Dims[:], dims)
	by.Index.View.Strides[dim] = index.View.Strides[0]
	sink.By, sink.To = &by, out.Value
	copy(sink.To.View.Dims[:], dims)
	sink.To.View.Strides[dim] = 0
	c.l.Groups.Need(source)
	return true
}

// Store emits the store of a sink without a kernel of its group.
func (l *lowering) Store(s *fuse.Sink) {
	v := l.Computed(s.ID)
	if !s.Sum {
		l.CopyTo(nil, plan.Value{Shape: v.Shape, Value: s.To}, v)
		return
	}
	storedSums.of(v.DType())(l, s, v)
}

var storedSums = numbers(storeSum[uint8], storeSum[int8], storeSum[int16], storeSum[int32], storeSum[int64], storeSum[float32], storeSum[float64])

// storeSum adds rows of a value to those of a dense one that an index selects.
func storeSum[T kernels.Number](l *lowering, s *fuse.Sink, v plan.Value) {
	n := v.Shape.Numel() * s.By.Size / l.elementsOf(s.To.Buf, v.Size())
	at := plan.Value{Shape: ir.MakeShape(ir.I64, n), Value: fuse.Value{Buf: s.By.Index.Buf, View: strided.View{Offset: s.By.Index.View.Offset, Rank: 1}}}
	at.View.Dims[0] = n
	for d, step := range s.By.Index.View.Strides {
		if s.By.Index.View.Dims[d] > 1 && step != 0 {
			at.View.Strides[0] = step
		}
	}
	if !at.Contiguous() {
		at = l.Copied(s.By.Instr, at)
	}
	if !v.Contiguous() {
		v = l.Copied(s.By.Instr, v)
	}
	source, _ := contiguous(v)
	index, _ := contiguous(at)
	out, m, size, inner := operand{s.To.Buf, 0, s.By.Size * s.By.Step}, l.mem, s.By.Size, s.By.Step
	l.emit(step{Instr: s.By.Instr, Reads: []int{index.buf, source.buf}, Writes: []int{out.buf}, Payload: work{n: inner, grain: max(64, l.grain(float64(n))), run: func(lo, hi int) {
		kernels.IndexAdd(elements[T](m, out), elements[int64](m, index), elements[T](m, source), size, inner, lo, hi)
	}}})
}

func (l *lowering) elementsOf(buf, size int) int { return l.Buffers[buf].Bytes / size }
