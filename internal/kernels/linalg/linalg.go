// Package linalg has the kernels of dense linear algebra for all backends on the host, which are package
// dense's, and a Fourier transform for the reference. They compute one matrix or line of a batch at a time,
// or groups of small matrices by package lanes, in float64, and round each result once.
package linalg

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/dense"
	"github.com/loris-ml/loris/internal/kernels/lanes"
	"github.com/loris-ml/loris/internal/parallel"
)

// kernel computes one element of a batch: in are the operands, out the results, which begin as
// zeros; those that nobody wants are nil. Complex numbers are pairs. It returns an error for data that
// has no result. Behind the operands in is the room of the family.
type kernel func(room *dense.Room, in, out [][]float64) error

// mover is as kernel, but of elements as they lie in the tensors, and results do not begin as zeros.
type mover func(in, out [][]byte) error

// family is how the kernels of an op are made.
type family struct {
	// core has for each operand the number of its last dimensions that are one element of the
	// batch; those in front broadcast together.
	core  []int
	make  func(a ir.Args) kernel
	large func(a ir.Args) large   // takes make's place; nil, or returns nil, if there is none
	move  func(a ir.Args) mover   // in place of make for an op that computes nothing
	group func(a ir.Args) grouped // for groups of small matrices; nil, or returns nil, if there are none
	// vectors says that the kernel leaves out all results but that of the values where they are nil.
	vectors bool
	// room is the numbers of memory for its own use that a kernel finds behind the operands; nil for none.
	room func(a ir.Args) int
	cost func(a ir.Args) float64 // nanoseconds for an element, roughly; nil for a matrix's cube
}

// Ops returns the ops that have kernels here.
func Ops() []ir.Op {
	out := make([]ir.Op, 0, len(families))
	for op := range families {
		out = append(out, op)
	}
	return out
}

// Call is one use of an op.
type Call struct {
	// Batch is the number of elements of the batch, which are independent of each other, and Nanos
	// about the time that one takes.
	Batch int
	Nanos float64
	// Limiter bounds the goroutines of Run where the batch has one element; with nil there is one.
	Limiter *parallel.Limiter

	kernel  kernel
	large   large // if there is one it takes the kernel's place, and so
	mover   mover // does this
	vectors bool  // can be left out
	group   grouped
	groups  sync.Pool
	in, out []operand
	room    int // numbers for the kernel's own use
	rooms   sync.Pool
}

// operand is how the elements of the batch lie in one operand or result.
type operand struct {
	dtype ir.DType // of the numbers, of which two are a complex one
	n     int      // numbers in one element of the batch
	from  []int    // which element of the operand is used for each of the batch; nil for the same
	none  bool     // nobody wants the result
}

// Unwanted says that nobody wants a result. It is then perhaps not computed.
func (c *Call) Unwanted(result int) { c.out[result].none = c.vectors }

// New returns the use of an op with results of the given shapes.
func New(a ir.Args, outs []ir.Shape) *Call {
	f := families[a.Spec.Op]
	batch := ir.MakeShape(ir.U8)
	for i, v := range a.In {
		batch, _ = ir.BroadcastDims(batch, batchOf(v.Shape(), f.core[i]))
	}
	cost := f.cost
	if cost == nil {
		cost = cube
	}
	c := &Call{Batch: batch.Numel(), vectors: f.vectors, Nanos: cost(a)}
	if f.large != nil {
		c.large = f.large(a)
	}
	switch {
	case f.move != nil:
		c.mover = f.move(a)
	case c.large == nil:
		c.kernel = f.make(a)
	}
	if f.room != nil {
		c.room = f.room(a)
	}
	for i, v := range a.In {
		own := batchOf(v.Shape(), f.core[i])
		o := operandOf(v.Shape(), own.Numel())
		if !own.SameDims(batch) {
			o.from = broadcast(own, batch)
		}
		c.in = append(c.in, o)
	}
	for _, s := range outs {
		c.out = append(c.out, operandOf(s, c.Batch))
	}
	if c.group = c.groupOf(f, a); c.group != nil {
		c.Nanos /= lanes.Width / 2
	}
	return c
}

func batchOf(s ir.Shape, core int) ir.Shape { return s.WithDims(s.Dims()[:s.Rank()-core]...) }

func operandOf(s ir.Shape, batch int) operand {
	o := operand{dtype: s.DType().Part(), n: s.Numel() / max(batch, 1)}
	if s.DType().IsComplex() {
		o.n *= 2
	}
	return o
}

// broadcast returns which element of own each of batch is.
func broadcast(own, batch ir.Shape) []int {
	from := make([]int, batch.Numel())
	for i := range from {
		at, step, rest := 0, 1, i
		for d := 1; d <= batch.Rank(); d++ {
			n := batch.Dim(-d)
			if d <= own.Rank() {
				if own.Dim(-d) != 1 {
					at += rest % n * step
				}
				step *= own.Dim(-d)
			}
			rest /= n
		}
		from[i] = at
	}
	return from
}

// cube is the cost of a factorisation.
func cube(a ir.Args) float64 {
	s := a.In[0].Shape()
	n := float64(max(s.Dim(-1), s.Dim(-2)))
	return 50 + n*n*n
}

// Run computes elements lo to hi-1 of the batch. in and out are the elements of dense operands and
// results. It panics with an error wrapping ir.ErrLinAlg where the data has no result.
func (c *Call) Run(in, out [][]byte, lo, hi int) {
	one, done := c.computer()
	defer done()
	each := func(lo, hi int) {
		for b := lo; b < hi; b++ {
			if err := one(in, out, b); err != nil {
				panic(fmt.Errorf("%w: batch element %d: %w", ir.ErrLinAlg, b, err))
			}
		}
	}
	each(c.runGroups(in, out, lo, hi, each), hi)
}

// room is memory for the numbers of one element of the batch.
type room struct {
	in, out [][]float64
	dense.Room
}

// computer returns what computes an element of the batch, with memory of its own until it is done.
func (c *Call) computer() (one func(in, out [][]byte, b int) error, done func()) {
	if c.mover != nil {
		x, y := make([][]byte, len(c.in)), make([][]byte, len(c.out))
		return func(in, out [][]byte, b int) error {
			for i, o := range c.in {
				x[i] = o.bytes(in[i], b)
			}
			for i, o := range c.out {
				y[i] = o.bytes(out[i], b)
			}
			return c.mover(x, y)
		}, func() {}
	}
	own, _ := c.rooms.Get().(*room)
	if own == nil {
		if own = new(room); c.large == nil {
			own.in, own.out = append(converted(c.in), make([]float64, c.room)), converted(c.out)
		}
	}
	if c.Batch == 1 {
		own.Limiter = c.Limiter
	}
	if c.large != nil {
		return c.largeComputer(own)
	}
	x, y := own.in, own.out
	return func(in, out [][]byte, b int) error {
		for i := range c.in {
			o := &c.in[i]
			x[i] = o.read(x[i], o.bytes(in[i], b))
		}
		for i := range c.out {
			o := &c.out[i]
			if o.none {
				continue
			}
			if o.dtype == ir.F64 {
				y[i] = numbers[float64](o.bytes(out[i], b))
			}
			clear(y[i])
		}
		own.Reset()
		if err := c.kernel(&own.Room, x, y); err != nil {
			return err
		}
		for i := range c.out {
			if o := &c.out[i]; !o.none && o.dtype != ir.F64 {
				o.write(o.bytes(out[i], b), y[i])
			}
		}
		return nil
	}, func() { own.forget(c); c.rooms.Put(own) }
}

// largeComputer is computer of large matrices.
func (c *Call) largeComputer(own *room) (one func(in, out [][]byte, b int) error, done func()) {
	x, y := make([]source, len(c.in)), make([]sink, len(c.out))
	return func(in, out [][]byte, b int) error {
		for i := range c.in {
			x[i] = source{&c.in[i], c.in[i].bytes(in[i], b)}
		}
		for i := range c.out {
			y[i] = sink{&c.out[i], nil}
			if !c.out[i].none {
				y[i].data = c.out[i].bytes(out[i], b)
			}
		}
		own.Reset()
		return c.large(&own.Room, x, y)
	}, func() { c.rooms.Put(own) }
}

// forget leaves out the tensors' memory.
func (r *room) forget(c *Call) {
	for i, o := range c.in {
		if o.dtype == ir.F64 {
			r.in[i] = nil
		}
	}
	for i, o := range c.out {
		if o.dtype == ir.F64 {
			r.out[i] = nil
		}
	}
}

// converted has room for the numbers of operands that are not of float64, which kernels take as they lie.
func converted(os []operand) [][]float64 {
	v := make([][]float64, len(os))
	for i, o := range os {
		if !o.none && o.dtype != ir.F64 {
			v[i] = make([]float64, o.n)
		}
	}
	return v
}

// bytes returns element b of the batch.
func (o *operand) bytes(data []byte, b int) []byte {
	if o.from != nil {
		b = o.from[b]
	}
	size := o.n * o.dtype.Size()
	return data[b*size:][:size]
}

// numbers returns the numbers of the storage of a tensor, whose elements are aligned.
func numbers[T float32 | float64 | int32](data []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(one)))
}

// read returns the numbers of data, in x unless they are of float64.
func (o *operand) read(x []float64, data []byte) []float64 {
	switch o.dtype {
	case ir.F64:
		return numbers[float64](data)
	case ir.F32:
		dense.Widen(x, numbers[float32](data))
		return x
	case ir.I32: // pivots
		for i, v := range numbers[int32](data) {
			x[i] = float64(v)
		}
		return x
	}
	for i := range x {
		if o.dtype.IsFloat() {
			x[i] = elements.Float(o.dtype, data, i)
		} else {
			x[i] = float64(elements.Int(o.dtype, data, i))
		}
	}
	return x
}

// write writes the numbers x to data.
func (o *operand) write(data []byte, x []float64) {
	switch o.dtype {
	case ir.F32:
		dense.Narrow(numbers[float32](data), x)
		return
	case ir.I32: // pivots and what is known of a matrix
		to := numbers[int32](data)
		for i, v := range x {
			to[i] = int32(v)
		}
		return
	}
	to := data[:0]
	for _, v := range x {
		if o.dtype.IsFloat() {
			to = elements.AppendFloat(to, o.dtype, v)
		} else {
			to = elements.AppendInt(to, o.dtype, int64(v))
		}
	}
}
