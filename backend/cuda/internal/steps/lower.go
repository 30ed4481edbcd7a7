package steps

import (
	"errors"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/check"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/strided"
	"github.com/loris-ml/loris/ir"
)

// value is where a value of the Program is: a strided view of a buffer, in
// elements.
type value struct {
	shape ir.Shape
	buf   int
	view  strided.View // with the dimensions of shape
}

func (v value) dtype() ir.DType { return v.shape.DType() }

// size returns the bytes of an element.
func (v value) size() int { return v.shape.DType().Size() }

// contiguous reports whether the elements are in order without gaps.
func (v value) contiguous() bool {
	m := v.view.Merge()
	return v.shape.Numel() == 0 || m.Rank == 0 || m.Rank == 1 && m.Strides[0] == 1
}

// as returns the value with other dimensions and strides.
func (v value) as(s ir.Shape, view strided.View) value { return value{s, v.buf, view} }

// operand is a place in a buffer.
type operand struct {
	buf, off int // in bytes
}

// planned is a Step whose memory has no place yet.
type planned struct {
	Step
	operands []operand
	work     int // a buffer, or -1
	writes   int // that many operands are written
	inPlace  []plan.Pair
}

// lowering turns a Program into steps.
type lowering struct {
	p        *graph.Program
	opt      Options
	vals     []value // by ID
	bufs     []plan.Buffer
	steps    []plan.Step[planned]
	known    map[string]int // the buffers of constants, by content
	faults   int
	returned int // by called models
	plan     *fuse.Plan
	numbers  map[graph.ID]float64 // of the Program
	probes   map[fuse.Probe]bool
	// epilogues are by their last instruction; inner marks those before it.
	epilogues map[int32]*fuse.Epilogue
	inner     []bool
	// attentions are those that left their sums, by their results.
	attentions map[graph.ID]left
}

// lowerFunc emits the steps of one use of an op.
type lowerFunc = func(c *call)

// lowerings has the primitives that are not pointwise; the files of the families
// fill it in.
var lowerings = map[ir.Op]lowerFunc{}

// early has what some ops do before their operands are computed.
var early = map[ir.Op]lowerFunc{}

// Supports reports whether there is a lowering for an op: a primitive, attention, or
// a composite that is one product. What of a composite's uses there is no kernel for is decomposed by Lower.
func Supports(op ir.Op) bool {
	sp := op.Spec()
	return sp != nil && (lowerings[op] != nil || sp.Category == ir.Pointwise && !sp.Composite())
}

// Lower returns the steps of a Program. An op or dtype without kernel is an error
// that wraps backend.ErrUnsupported; a Program whose parts do not fit together is
// one that wraps ir.ErrArg or ir.ErrShape. Errors name the op and the user's line.
func Lower(p *graph.Program, o Options) (*Sequence, error) {
	if err := check.Program(p, Supports); err != nil {
		return nil, err
	}
	p = decomposed(p, &o)
	l := &lowering{p: p, opt: o, vals: make([]value, len(p.Shapes)), known: map[string]int{}, probes: map[fuse.Probe]bool{}, numbers: numbersOf(p)}
	uses := fuse.UsesOf(p)
	l.plan = fuse.New(p, uses, l)
	l.epilogues, l.inner = fuse.Epilogues(p, uses, l.epilogueRule)
	for i, q := range p.Params {
		b := plan.Buffer{Kind: plan.Input, Bytes: q.Shape.Bytes()}
		if o.Inputs == nil {
			l.vals[i] = dense(q.Shape, l.newBuffer(b))
			continue
		}
		b.Bytes = Extent(q.Shape, &o.Inputs[i])
		l.vals[i] = value{q.Shape, l.newBuffer(b), o.Inputs[i]}
	}
	for i := range p.Instrs {
		if err := l.instr(int32(i)); err != nil {
			return nil, located(&p.Instrs[i], err)
		}
	}
	if err := l.results(); err != nil {
		return nil, err
	}
	return l.sequence(), nil
}

// opError is an error with the op and the user's line.
type opError struct{ error }

func (e *opError) Unwrap() error { return e.error }

// located adds the op and the user's line to an error, unless it has them.
func located(in *graph.Instr, err error) error {
	if e := (*opError)(nil); errors.As(err, &e) {
		return err
	}
	return &opError{check.Located(in, err)}
}

// instr has an instruction wait for others that it will be computed with, or emits
// its steps.
func (l *lowering) instr(i int32) (err error) {
	defer check.Recover(&err)
	if l.inner[i] {
		return nil
	}
	if e := l.epilogues[i]; e != nil {
		return l.withEpilogue(e)
	}
	if l.plan.Add(i) {
		return nil
	}
	return l.alone(&l.p.Instrs[i])
}

// val returns where a value is, computing it first if it waits.
func (l *lowering) val(id graph.ID) value {
	l.plan.Need(id)
	return l.vals[id]
}

// alone emits the steps of an instruction.
func (l *lowering) alone(in *graph.Instr) (err error) {
	defer check.Recover(&err)
	c := &call{l: l, instr: in, Args: l.p.Args(in), outs: l.p.Outs(in)}
	if f := early[in.Op]; f != nil {
		f(c)
	}
	for _, id := range in.Args {
		c.in = append(c.in, l.val(id))
	}
	f := lowerings[in.Op]
	if f == nil {
		f = pointwise
	}
	f(c)
	if len(c.out) != in.NOut {
		panic(fmt.Sprintf("%d outputs lowered, want %d", len(c.out), in.NOut))
	}
	copy(l.vals[in.Out:], c.out)
	return nil
}

// results gives each result of the Program a buffer of its own, copying what is
// an input, a constant, a strided view, or returned twice.
func (l *lowering) results() (err error) {
	defer check.Recover(&err)
	c := &call{l: l}
	for j, id := range l.p.Returns {
		v := l.val(id)
		want := strided.Dense(v.shape.Dims())
		if l.opt.Outputs != nil {
			want = l.opt.Outputs[j]
		}
		if b := &l.bufs[v.buf]; b.Kind != plan.Work || b.Output >= 0 || b.Bytes != Extent(v.shape, &want) || !liesAs(v, want) {
			to := value{v.shape, l.newBuffer(plan.Buffer{Bytes: Extent(v.shape, &want)}), want}
			l.bufs[to.buf].Strided = !unbroken(to)
			c.copyTo(to, v)
			v = to
		}
		l.bufs[v.buf].Output = j
	}
	return nil
}

// Extent returns the bytes from the start of a memory to the last element that a
// view has there.
func Extent(s ir.Shape, v *strided.View) int {
	if s.Numel() == 0 {
		return 0
	}
	last := v.Offset
	for i := range v.Rank {
		last += (v.Dims[i] - 1) * v.Strides[i]
	}
	return (last + 1) * s.DType().Size()
}

// liesAs reports whether the elements of a value are where a view of the same
// dimensions has them.
func liesAs(v value, want strided.View) bool {
	return v.shape.Numel() == 0 || v.view.Merge() == want.Merge()
}

// unbroken reports whether a value fills its memory.
func unbroken(v value) bool { return Extent(v.shape, &v.view) == v.shape.Bytes() }

func (l *lowering) newBuffer(b plan.Buffer) int { return plan.NewBuffer(&l.bufs, b) }

// newValue returns a dense value in a buffer of its own.
func (l *lowering) newValue(s ir.Shape) value {
	return dense(s, l.newBuffer(plan.Buffer{Bytes: s.Bytes()}))
}

// constant returns a value that is there from the start. Equal ones are one.
func (l *lowering) constant(s ir.Shape, data []byte) value {
	b, ok := l.known[string(data)]
	if !ok {
		b = l.newBuffer(plan.Buffer{Kind: plan.Constant, Bytes: len(data), Data: data})
		l.known[string(data)] = b
	}
	return dense(s, b)
}

func dense(s ir.Shape, buf int) value { return value{s, buf, strided.Dense(s.Dims())} }

// call is one use of an op that is being lowered. in are its operands; out collects
// its results.
type call struct {
	l     *lowering
	instr *graph.Instr // nil for the copy of a result
	ir.Args
	in   []value
	outs []ir.Shape // of the results to make
	out  []value
	post *fuse.Epilogue // or nil
}

// result makes the buffer of the next result.
func (c *call) result() value {
	v := c.l.newValue(c.outs[len(c.out)])
	c.out = append(c.out, v)
	return v
}

// operand returns an operand by name.
func (c *call) operand(name string) value { return c.in[c.InputIndex(name)] }

// dense returns a value with its elements in order, copying it if they are not so.
func (c *call) dense(v value) value {
	if v.contiguous() {
		return v
	}
	return c.copied(v)
}

// at returns the place of a value's first element.
func at(v value) operand { return operand{v.buf, v.view.Offset * v.size()} }

func places(values ...value) (all []operand) {
	for _, v := range values {
		all = append(all, at(v))
	}
	return all
}

// emit adds a step of this op. The first operands, as many as writes says, are
// written.
func (c *call) emit(s planned) {
	s.Instr, s.work = c.instr, -1
	if s.Kernels != nil {
		s.Fault = -1
	}
	step := plan.Step[planned]{Instr: c.instr, InPlace: s.inPlace}
	for i, o := range s.operands {
		if i < s.writes {
			step.Writes = append(step.Writes, o.buf)
		} else {
			step.Reads = append(step.Reads, o.buf)
		}
	}
	if n := s.workspace(); n > 0 {
		s.work = c.l.newBuffer(plan.Buffer{Bytes: n})
		step.Writes = append(step.Writes, s.work)
	}
	step.Payload = s
	c.l.steps = append(c.l.steps, step)
}

// workspace returns the bytes that a step needs besides its operands.
func (s *planned) workspace() int {
	switch {
	case s.Kernels != nil:
		return s.Kernels.Workspace
	case s.Product != nil:
		return s.Product.WorkspaceSize
	}
	return 0
}

// kernels adds a step that launches kernels on values of which the first are
// written.
func (c *call) kernels(p *emit.Plan, writes int, values ...value) {
	c.emit(planned{Step: Step{Kernels: p}, operands: places(values...), writes: writes})
}

// mayFail lets the last step leave a fault behind: an index out of a dimension's
// size, or a division by 0.
func (c *call) mayFail(size int) {
	s := &c.l.steps[len(c.l.steps)-1].Payload
	s.Fault, s.size = c.l.faults, size
	c.l.faults++
}

// unsupported is what lowerings panic with.
func unsupported(err error, d ir.DType) error {
	return fmt.Errorf("%w: %v: %w; compute it on the CPU", backend.ErrUnsupported, d, err)
}

// loopError explains why a loop was not written.
func loopError(err error, d ir.DType) error {
	if errors.Is(err, emit.ErrUnsupported) {
		return unsupported(err, d)
	}
	return err
}
