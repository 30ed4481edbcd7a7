package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// cheapRows is what an element of computed rows costs at most, in nanoseconds, where two threads could share out nothing
// but the computing. fewSharers is how many threads there are at most for each piece of columns where adding row after row
// takes no longer than what they share out: chains of rows, which are read in no order.
const cheapRows, fewSharers = 0.25, 4

// addsAsComputed has the kernel that is to compute the source of an index_add, or of a scatter of sums of whole rows, add
// its rows to those that the index selects, in its order, as addRows does to rows in memory. It reports whether it will.
func (c *call) addsAsComputed() bool {
	source := c.Instr.Args[2]
	if !c.addsRows() || !c.l.Groups.Waits(source) {
		return false
	}
	_, _, inner := c.In[0].Shape().Around(c.Dim("dim", c.In[0].Shape().Rank()))
	if t := c.l.limiter.Threads(); t > nest.ColumnCuts(inner, t) && (t > 2 || c.l.Groups.Nanos(source) > cheapRows) {
		return false // they share out the computing of rows that lie in memory
	}
	c.ComputeFirst(2)
	index, ok := c.selected()
	sink := &fuse.Sink{ID: source, Sum: true}
	if !ok || !c.l.Groups.AddSink(source, sink) {
		return false
	}
	c.setSink(sink, index)
	c.l.Groups.Need(source)
	return true
}

// addsInOrder emits one kernel that adds the rows of a source in memory to those of a result that is not in the cache. It
// reports whether it did.
func (c *call) addsInOrder() bool {
	if !c.addsRows() {
		return false
	}
	_, size, inner := c.In[0].Shape().Around(c.Dim("dim", c.In[0].Shape().Rank()))
	t := c.l.limiter.Threads()
	if d := c.In[0].DType(); c.In[0].Shape().Bytes() <= cachedRows || fewRows(c.In[2].Shape().Numel()/inner, size) || loop.ComputeDType(d) != d || t > fewSharers*nest.ColumnCuts(inner, t) {
		return false
	}
	c.Compute()
	index, ok := c.selected()
	if !ok {
		return false
	}
	sink := &fuse.Sink{ID: c.Instr.Args[2], Sum: true}
	c.setSink(sink, index)
	if k, ok := fuse.AddMoved(c.Instr, c.In[0].DType(), sink, c.Operands[2].Value); !ok || !c.l.emitKernel(k) {
		c.l.Store(sink)
	}
	return true
}

// addsRows reports whether an op adds rows to others, which kernels can do.
func (c *call) addsRows() bool {
	self := c.In[0].Shape()
	if c.l.engine == nil || self.Rank() < 2 || self.Numel() == 0 || c.In[2].Shape().Numel() == 0 {
		return false
	}
	outer, _, inner := self.Around(c.Dim("dim", self.Rank()))
	return outer == 1 && inner >= shortRow/2 && self.DType() != ir.Bool && self.DType().Size() <= 8
}

// selected returns the index of an op that adds rows, an element for each; false if elements of a row have other ones.
func (c *call) selected() (index plan.Value, ok bool) {
	if c.Instr.Op != aten.ScatterReduce {
		return c.Operands[1], true
	}
	index, _, ok = c.rowVector()
	return index, ok && c.In[1].Shape().SameDims(c.In[2].Shape())
}

// setSink makes the result a copy of self, to whose rows a sink adds those that an index selects.
func (c *call) setSink(sink *fuse.Sink, index plan.Value) {
	dims, dim := c.In[2].Shape().Dims(), c.Dim("dim", c.In[0].Shape().Rank())
	index = c.l.cast(c.Instr, index, ir.I64)
	out := c.ResultOfCopy()
	by := fuse.Chosen{Size: out.Shape.Dim(dim), Step: out.View.Strides[dim], Instr: c.Instr}
	by.Index = fuse.Value{Buf: index.Buf, View: strided.View{Offset: index.View.Offset, Rank: len(dims)}}
	copy(by.Index.View.Dims[:], dims)
	by.Index.View.Strides[dim] = index.View.Strides[0]
	sink.By, sink.To = &by, out.Value
	copy(sink.To.View.Dims[:], dims)
	sink.To.View.Strides[dim] = 0
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
