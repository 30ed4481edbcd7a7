package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/parallel"
)

// memory is what the kernels of one model see: the storage of each buffer,
// which Run sets.
type memory struct {
	bufs [][]byte
	// inputs are the buffers that the first of bufs are of, nil where the run writes them or reads a
	// copy; none in the body of a loop.
	inputs []*hostmem.Buffer
	run    uint64 // see hostmem.Allocator.NextRun
	limit  int64  // of the host's memory, see backend.CompileOptions
}

// steady returns the input that a buffer is, if what is computed from its contents may be kept with
// it; else nil.
func (m *memory) steady(buf int) *hostmem.Buffer {
	if buf < len(m.inputs) {
		if in := m.inputs[buf]; in != nil && in.Steady(m.run) {
			return in
		}
	}
	return nil
}

// operand is a dense run of elements in a buffer.
type operand struct {
	buf int
	off int // in elements
	n   int // elements
}

// elements returns the operand's elements as T, which has their size.
func elements[T any](m *memory, o operand) []T {
	var t T
	size := int(unsafe.Sizeof(t))
	return as[T](m.bufs[o.buf][o.off*size : (o.off+o.n)*size])
}

// as returns bytes as elements. Storage is aligned for all types: buffers
// begin at cache lines and hold one dtype each.
func as[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

func sizeOf[T any]() int {
	var t T
	return int(unsafe.Sizeof(t))
}

// contiguous returns the elements of a value if they are in order without gaps.
func contiguous(v plan.Value) (o operand, ok bool) {
	if o = (operand{v.Buf, v.View.Offset, v.Shape.Numel()}); o.n == 0 {
		o.off = 0
	}
	return o, v.Contiguous()
}

// step is one kernel.
type step = plan.Step[work]

// work is what a step executes: run computes units lo..hi-1 of n.
type work struct {
	n     int
	grain int // units that are worth a goroutine
	run   func(lo, hi int)
	// loop, if set, takes the place of run: it has steps of its own.
	loop       func(ctx context.Context) error
	callsModel bool // it runs another model, which shares processors in its own way
	// begin, if set, is a collective that is begun in place of run. wait, if set, is one that is awaited.
	begin, wait *transfer
}

// lowering emits the steps of a Program, as a plan.Emitter.
type lowering struct {
	*plan.Builder
	tune    tuning
	mem     *memory
	steps   []step
	engine  *journal          // nil: no kernels, Go loops only
	limiter *parallel.Limiter // what the steps run on
	flush   bool              // kernels may take subnormal numbers as zero
	// order is the buffer that all collectives write, which keeps their order; nil if there is none.
	order *int
	moves *shortMoves // the last step that copies short lines; nil if there is none
	// sums are those that attentions keep for their gradients, by their results.
	sums map[graph.ID]savedSums
	// slopes are gradients of scores that were computed for gradients of masks, by the latter.
	slopes map[graph.ID]operand
	// steadyFilters says that the filters of convolutions are likely to be the same for many runs.
	steadyFilters bool
	// workers is the number of goroutines that a step is cut for if its results
	// depend on that; 0 stands for those of the limiter.
	workers int
}

// lineBytes is the alignment of everything in the workspace: a cache line.
const lineBytes = 64

// grain returns how many units of the given cost are worth a goroutine.
func (l *lowering) grain(nanosPerUnit float64) int {
	return max(1, int(l.tune.nanos/max(nanosPerUnit, 0.1)))
}

// lowerFunc emits the steps of one use of an op.
type lowerFunc = func(c *call)

// lowerings has the primitives that are neither pointwise nor views; the files of
// the families fill it in.
var lowerings = map[ir.Op]lowerFunc{}

// fixedWorkers is what steps are cut for where results must not depend on the
// number of processors: enough for most machines, and few units for the others.
const fixedWorkers = 8

// lower checks a Program and emits its steps. What it decides is kept for Programs of the same Template, which
// differ in sizes only.
func lower(p *graph.Program, t tuning, e *journal, o backend.CompileOptions, has func(ir.Op) bool) (*lowering, error) {
	of := p.Template()
	if e != nil && of != nil {
		// Another Program of the Template was checked, and had the same ops.
		if s := e.script(of); s != nil {
			if l, err := lowerBy(plan.NewFollowing(narrowFactors(p), s), t, e, o, s.Steps); !errors.Is(err, fuse.ErrStale) {
				return l, err
			}
		}
	}
	if err := check.Program(p, has); err != nil {
		return nil, err
	}
	p = narrowFactors(p)
	room := len(p.Instrs) / 2
	if e == nil || of == nil {
		return lowerBy(plan.NewBuilder(p, nil), t, e, o, room)
	}
	b := plan.NewRecording(p)
	l, err := lowerBy(b, t, e, o, room)
	if s := b.Recorded(); err == nil && s != nil {
		s.Steps = len(l.steps)
		e.keepScript(of, s)
	}
	return l, err
}

func lowerBy(b *plan.Builder, t tuning, e *journal, o backend.CompileOptions, steps int) (*lowering, error) {
	l := &lowering{
		Builder: b, tune: t, mem: &memory{limit: o.MemoryLimit}, steps: make([]step, 0, steps),
		engine: e, limiter: parallel.NewLimiter(o.Threads), flush: o.FlushDenormals,
		steadyFilters: steadyFilters(b.Program, o.Aliases),
	}
	if o.Deterministic {
		l.workers = fixedWorkers
	}
	l.Progress, l.LinesInPlace = o.Progress, true
	return l, l.Build(l, nil)
}

// Brief reports whether the steps of an op need nothing of their call: those of products.
func (*lowering) Brief(op ir.Op) bool { return op == aten.MatMul }

// Lower emits the steps of an instruction that is not pointwise. A pad puts its
// value into the result before its operand is computed there, and index_select and take need not have their own
// in order.
func (l *lowering) Lower(pc *plan.Call) {
	f := lowerings[pc.Instr.Op]
	if pc.Spec.Category == ir.Collective {
		f = lowerCollective
	}
	if f == nil {
		panic(backend.ErrUnsupported)
	}
	switch pc.Instr.Op {
	case aten.Cat, aten.ConstantPadNd, aten.IndexSelect, aten.TakeElements, aten.IndexAdd, aten.ScatterReduce:
	default:
		pc.Compute()
	}
	f(&call{pc, l})
	if pc.Epilogue != nil && len(l.steps) > 0 {
		l.steps[len(l.steps)-1].Ops = pc.Epilogue.Ops
	}
}

// temp returns scratch memory for n elements of a dtype.
func (l *lowering) temp(d ir.DType, n int) operand { return l.bytesTemp(d.Size(), n) }

// bytesTemp returns scratch memory for n elements of the given size.
func (l *lowering) bytesTemp(size, n int) operand {
	bytes := math.MaxInt // is refused, see planned
	if n <= math.MaxInt/size {
		bytes = size * n
	}
	return operand{l.NewBuffer(plan.Buffer{Bytes: bytes}), 0, n}
}

// emit adds a step.
func (l *lowering) emit(s step) { l.steps = append(l.steps, s) }

// call is one use of an op that is being lowered.
type call struct {
	*plan.Call
	l *lowering
}

// result makes the buffer of the next result.
func (c *call) result() operand {
	v := c.Result()
	return operand{v.Buf, 0, v.Shape.Numel()}
}

// unused says that nothing wants result i of the instruction, of which there are several.
func (c *call) unused(i int) bool {
	id := c.Instr.Out + graph.ID(i)
	return !c.l.Kept[id] && len(c.l.Users[id]) == 0
}

// dense returns a value's elements in order, copying them if they are not so.
func (c *call) dense(v plan.Value) operand {
	o, _ := contiguous(c.Dense(v))
	return o
}

// emit adds a step of this op that reads and writes the given operands.
func (c *call) emit(n, grain int, writes, reads []operand, run func(lo, hi int)) {
	c.l.emit(c.step(n, grain, writes, reads, run))
}

// emitOver is emit of a step that may write its result over an operand of the same size, element by
// element or in pieces that only they read.
func (c *call) emitOver(over operand, n, grain int, out operand, reads []operand, run func(lo, hi int)) {
	s := c.step(n, grain, []operand{out}, reads, run)
	if over.off == 0 && c.l.Buffers[over.buf].Bytes == c.l.Buffers[out.buf].Bytes {
		s.InPlace = []plan.Pair{{Write: out.buf, Read: over.buf}}
	}
	c.l.emit(s)
}

func (c *call) step(n, grain int, writes, reads []operand, run func(lo, hi int)) step {
	s := step{Instr: c.Instr, Payload: work{n: n, grain: grain, run: run}}
	elements := 0
	room := c.l.Numbers.Take(len(writes) + len(reads))
	s.Writes, s.Reads = room[:0:len(writes)], room[len(writes):len(writes)]
	for _, o := range writes {
		s.Writes = append(s.Writes, o.buf)
		elements += o.n
	}
	if elements == 0 {
		s.Payload.n = 0 // however many lines of no elements there are
	}
	for _, o := range reads {
		s.Reads = append(s.Reads, o.buf)
	}
	return s
}

// widened lowers an op whose kernels do not know 16-bit floats: f converts them
// on the way in and out and works in f32.
func widened(f lowerFunc) lowerFunc {
	return func(c *call) {
		wide := &call{c.Inner(nil, nil), c.l}
		for _, v := range c.Operands {
			wide.Operands = append(wide.Operands, c.l.cast(c.Instr, v, loop.ComputeDType(v.DType())))
		}
		for _, s := range c.Shapes {
			wide.Shapes = append(wide.Shapes, s.WithDType(loop.ComputeDType(s.DType())))
		}
		f(wide)
		for i, s := range c.Shapes {
			c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[i], s.DType()))
		}
	}
}

// rounding lowers an op of floats that rounds numbers on the way as their dtype has them: f32 is widened,
// and rounds lines to 16 bits by what it is given; for other dtypes that is nil.
func rounding(f32 func(c *call, round func([]float32)), f64 func(c *call, round func([]float64))) lowerFunc {
	narrow := func(d ir.DType) lowerFunc { return widened(func(c *call) { f32(c, lineRounders[d]) }) }
	t := byType[lowerFunc]{
		ir.F32: func(c *call) { f32(c, nil) }, ir.F64: func(c *call) { f64(c, nil) },
		ir.BF16: narrow(ir.BF16), ir.F16: narrow(ir.F16),
	}
	return func(c *call) { t.of(c.Operands[0].DType())(c) }
}

// singleOrDouble chooses by the dtype of the first operand, f32 or f64.
func singleOrDouble(f32, f64 lowerFunc) lowerFunc {
	return func(c *call) {
		if c.Operands[0].DType() == ir.F64 {
			f64(c)
		} else {
			f32(c)
		}
	}
}

// lineRounders round lines of numbers as 16-bit floats have them.
var lineRounders = map[ir.DType]func([]float32){ir.BF16: roundLine[vec.BF16], ir.F16: roundLine[vec.F16]}

func roundLine[E vec.BF16 | vec.F16](line []float32) {
	var some [256]E
	for len(line) > 0 {
		n := min(len(line), len(some))
		vec.Store(some[:n], line[:n])
		vec.Load(line[:n], some[:n])
		line = line[n:]
	}
}

// byType holds one instantiation of a generic function for each compute dtype.
type byType[F any] map[ir.DType]F

func integers[F any](u8, i8, i16, i32, i64 F) byType[F] {
	return byType[F]{ir.Bool: u8, ir.U8: u8, ir.I8: i8, ir.I16: i16, ir.I32: i32, ir.I64: i64}
}

func numbers[F any](u8, i8, i16, i32, i64, f32, f64 F) byType[F] {
	t := integers(u8, i8, i16, i32, i64)
	t[ir.F32], t[ir.F64] = f32, f64
	return t
}

func (t byType[F]) of(d ir.DType) F {
	f, ok := t[d]
	if !ok {
		panic(fmt.Errorf("%w: no kernel for %v", backend.ErrUnsupported, d))
	}
	return f
}

// bySize holds one instantiation for each element size.
type bySize[F any] struct{ b1, b2, b4, b8, b16 F }

func (t *bySize[F]) of(d ir.DType) F {
	switch d.Size() {
	case 1:
		return t.b1
	case 2:
		return t.b2
	case 4:
		return t.b4
	case 8:
		return t.b8
	}
	return t.b16
}
