package cpu

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/check"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/parallel"
	"github.com/loris-ml/loris/internal/strided"
	"github.com/loris-ml/loris/ir"
)

// memory is what the kernels of one model see: the storage of each buffer,
// which Run sets.
type memory struct{ bufs [][]byte }

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

// value is where a value of the Program is: a strided view of a buffer.
type value struct {
	shape ir.Shape
	buf   int
	view  strided.View // with the dimensions of shape
}

func (v value) dtype() ir.DType { return v.shape.DType() }

// contiguous reports whether the elements are in order without gaps, and where.
func (v value) contiguous() (operand, bool) {
	n := v.shape.Numel()
	if n == 0 {
		return operand{buf: v.buf}, true
	}
	m := v.view.Merge()
	if m.Rank == 0 || (m.Rank == 1 && m.Strides[0] == 1) {
		return operand{v.buf, m.Offset, n}, true
	}
	return operand{}, false
}

// step is one kernel.
type step = plan.Step[work]

// work is what a step executes: run computes units lo..hi-1 of n.
type work struct {
	n       int
	grain   int // units that are worth a goroutine
	run     func(lo, hi int)
	foreign bool // it runs another model, which shares processors in its own way
}

// lowering turns a Program into steps.
type lowering struct {
	p     *graph.Program
	tune  tuning
	mem   *memory
	vals  []value // by ID; of values in open groups: unset
	bufs  []plan.Buffer
	steps []step
	*fuse.Uses
	plan    *fuse.Plan
	engine  *journal          // nil: no kernels, Go loops only
	limiter *parallel.Limiter // what the steps run on
	flush   bool              // kernels may take subnormal numbers as zero
	// workers is the number of goroutines that a step is cut for if its results
	// depend on that; 0 stands for those of the limiter.
	workers int
	// epilogues are by their last instruction; inner marks those before it.
	epilogues map[int32]*fuse.Epilogue
	inner     []bool
}

// lineBytes is the alignment of everything in the workspace: a cache line.
const lineBytes = 64

// grain returns how many units of the given cost are worth a goroutine.
func (l *lowering) grain(nanosPerUnit float64) int {
	return max(1, int(l.tune.nanos/max(nanosPerUnit, 0.1)))
}

// lowerFunc emits the steps of one use of an op.
type lowerFunc = func(c *call)

// early has what some ops do before their operands are computed.
var early = map[ir.Op]lowerFunc{}

// lowerings has the primitives that are not pointwise; the files of the
// families fill it in.
var lowerings = map[ir.Op]lowerFunc{}

// fixedWorkers is what steps are cut for where results must not depend on the
// number of processors: enough for most machines, and few units for the others.
const fixedWorkers = 8

func lower(p *graph.Program, t tuning, e *journal, o backend.CompileOptions) (*lowering, error) {
	l := &lowering{
		p: p, tune: t, mem: &memory{}, vals: make([]value, len(p.Shapes)),
		engine: e, limiter: parallel.NewLimiter(o.Threads), flush: o.FlushDenormals,
	}
	if o.Deterministic {
		l.workers = fixedWorkers
	}
	l.Uses = fuse.UsesOf(p)
	l.plan = fuse.New(p, l.Uses, l)
	l.epilogues, l.inner = fuse.Epilogues(p, l.Uses, l.epilogueRule)
	for i, q := range p.Params {
		l.vals[i] = denseValue(q.Shape, l.newBuffer(plan.Input, q.Shape.Bytes()))
	}
	for i := range p.Instrs {
		if err := l.instr(i); err != nil {
			return nil, check.Located(&p.Instrs[i], err)
		}
	}
	for _, id := range p.Returns {
		l.val(id)
	}
	l.results()
	return l, nil
}

func (l *lowering) instr(i int) (err error) {
	defer check.Recover(&err)
	in := &l.p.Instrs[i]
	if l.inner[i] {
		return nil
	}
	last := in
	e := l.epilogues[int32(i)]
	if e != nil {
		in = &l.p.Instrs[e.Anchor]
	}
	switch {
	case e == nil && l.plan.Add(int32(i)):
	case lowerings[in.Op] != nil:
		l.lower(in, last, e)
	default:
		return backend.ErrUnsupported
	}
	return nil
}

// lower emits the steps of an instruction that is not pointwise, up to last if
// an epilogue goes with it.
func (l *lowering) lower(in, last *graph.Instr, e *fuse.Epilogue) {
	c := &call{l: l, instr: in, last: last, Args: l.p.Args(in), outs: l.p.Outs(last), post: e}
	if f := early[in.Op]; f != nil {
		f(c)
	}
	for _, id := range in.Args {
		c.in = append(c.in, l.val(id))
	}
	lowerings[in.Op](c)
	if e != nil && len(l.steps) > 0 {
		l.steps[len(l.steps)-1].Ops = e.Ops
	}
	if len(c.out) != last.NOut {
		panic(fmt.Sprintf("%d outputs lowered, want %d", len(c.out), last.NOut))
	}
	copy(l.vals[last.Out:], c.out)
}

// val returns where a value is, computing it first if it waits in a group.
func (l *lowering) val(id graph.ID) value {
	l.plan.Need(id)
	return l.vals[id]
}

func (l *lowering) newBuffer(k plan.Kind, bytes int) int {
	return plan.NewBuffer(&l.bufs, plan.Buffer{Kind: k, Bytes: bytes})
}

// newValue returns a dense value in a buffer of its own.
func (l *lowering) newValue(s ir.Shape) value {
	return denseValue(s, l.newBuffer(plan.Work, s.Bytes()))
}

// newConst returns a value of one element that is there from the start.
func (l *lowering) newConst(d ir.DType, data []byte) value {
	b := l.newBuffer(plan.Constant, len(data))
	l.bufs[b].Data = data
	return denseValue(ir.MakeShape(d), b)
}

func denseValue(s ir.Shape, buf int) value {
	return value{s, buf, strided.Dense(s.Dims())}
}

// temp returns scratch memory for n elements of a dtype.
func (l *lowering) temp(d ir.DType, n int) operand { return l.bytesTemp(d.Size(), n) }

// bytesTemp returns scratch memory for n elements of the given size.
func (l *lowering) bytesTemp(size, n int) operand {
	return operand{l.newBuffer(plan.Work, size*n), 0, n}
}

// emit adds a step.
func (l *lowering) emit(s step) { l.steps = append(l.steps, s) }

// results gives each result of the Program a buffer of its own, copying what
// is a parameter, a strided view, or returned twice.
func (l *lowering) results() {
	for j, id := range l.p.Returns {
		v := l.val(id)
		o, ok := v.contiguous()
		b := &l.bufs[v.buf]
		if !ok || o.off != 0 || b.Kind != plan.Work || b.Output >= 0 || b.Bytes != v.shape.Bytes() {
			v = l.materialise(nil, v)
			b = &l.bufs[v.buf]
		}
		b.Output = j
	}
}

// call is one use of an op that is being lowered. in are its operands; out
// collects its results.
type call struct {
	l     *lowering
	instr *graph.Instr
	// last is whose results are made: the end of an epilogue, or instr; nil if
	// they are made of this call's.
	last *graph.Instr
	ir.Args
	in   []value
	outs []ir.Shape // of the results to make
	out  []value
	post *fuse.Epilogue // or nil
}

// operandValue returns an operand by name; ok is false for an optional one that
// was not given.
func (c *call) operandValue(name string) (v value, ok bool) {
	if c.Tensor(name).IsNil() {
		return value{}, false
	}
	return c.in[c.InputIndex(name)], true
}

// result makes the buffer of the next result.
func (c *call) result() operand {
	v := c.l.newValue(c.outs[len(c.out)])
	c.out = append(c.out, v)
	return operand{v.buf, 0, v.shape.Numel()}
}

// dense returns a value's elements in order, copying them if they are not so.
func (c *call) dense(v value) operand {
	o, ok := v.contiguous()
	if !ok {
		o, _ = c.l.materialise(c.instr, v).contiguous()
	}
	return o
}

// emit adds a step of this op that reads and writes the given operands.
func (c *call) emit(n, grain int, writes, reads []operand, run func(lo, hi int)) {
	s := step{Instr: c.instr, Payload: work{n: n, grain: grain, run: run}}
	for _, o := range writes {
		s.Writes = append(s.Writes, o.buf)
	}
	for _, o := range reads {
		s.Reads = append(s.Reads, o.buf)
	}
	c.l.emit(s)
}

// widened lowers an op whose kernels do not know 16-bit floats: f converts them
// on the way in and out and works in f32.
func widened(f lowerFunc) lowerFunc {
	return func(c *call) {
		wide := &call{l: c.l, instr: c.instr, Args: c.Args}
		for _, v := range c.in {
			wide.in = append(wide.in, c.l.cast(c.instr, v, loop.ComputeDType(v.dtype())))
		}
		for _, s := range c.outs {
			wide.outs = append(wide.outs, s.WithDType(loop.ComputeDType(s.DType())))
		}
		f(wide)
		for i, s := range c.outs {
			c.out = append(c.out, c.l.cast(c.instr, wide.out[i], s.DType()))
		}
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
