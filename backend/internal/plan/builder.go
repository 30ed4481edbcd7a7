package plan

import (
	"errors"
	"fmt"
	"sync"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// Emitter is a backend that emits the steps of a Program.
type Emitter interface {
	fuse.Backend
	// Epilogue says which of the ops that follow an instruction its kernel can compute; false if
	// none.
	Epilogue(in *graph.Instr) (fuse.Rule, bool)
	// Lower emits the steps of an instruction that is not part of a kernel of package fuse and no
	// view, or panics. It appends where the results lie to c.Results.
	Lower(c *Call)
	// CopyTo emits the copy of a value to another one of its shape. in is nil for the copy of a
	// result.
	CopyTo(in *graph.Instr, to, from Value)
}

// Brief is an Emitter that says of which ops the steps need nothing of their Call once it is lowered:
// its memory is that of the next one.
type Brief interface {
	Emitter
	Brief(op ir.Op) bool
}

// Reordering is an Emitter whose kernels write results with their dimensions in any order.
type Reordering interface {
	Emitter
	Reorders() bool
}

// Builder knows where the values of a Program lie while an Emitter emits its steps. Emitters embed
// it.
type Builder struct {
	Program *graph.Program
	*fuse.Uses
	// Groups holds the instructions that wait to become a kernel.
	Groups  *fuse.Groups
	Values  []Value // by ID; unset for those in open groups
	Buffers []Buffer
	// Progress, if set, is told how many instructions are done.
	Progress  func(done, total int)
	emitter   Emitter
	constants map[string]int // buffers by content
	// apart has what values are reshaped from that are not copied as long as only few of their elements
	// are read.
	apart map[graph.ID]Value
	// chosen has the values that are not in memory as long as kernels alone read them.
	// inMemory marks those that were computed after all.
	chosen   map[graph.ID]fuse.Chosen
	inMemory map[graph.ID]bool
	// copies are the dense ones of values that lie in another way.
	copies map[Value]Value
	// epilogues are by their last instruction, nil for others; inner marks those before it.
	epilogues []*fuse.Epilogue
	inner     []bool
	standIns  ir.StandIns // scratch of args
	brief     func(op ir.Op) bool
	reorders  bool  // the Emitter is Reordering
	spare     *Call // of a Brief emitter: the memory of the next call, nil while that is in use
	// LinesInPlace says that kernels compute what there is one of for each line in one thread, so that it
	// may be written over what they read of the line.
	LinesInPlace bool
	// Numbers is the memory of the buffers that steps read and write, inPlace that of their pairs.
	Numbers fuse.Slab[int]
	inPlace fuse.Slab[Pair]
	pairs   []Pair // scratch of KernelStep
	// pieces are the cats and reshapes that are emitted with the cat that they are part of.
	pieces map[graph.ID]*graph.Instr
	// recorded is what Build decided, once it is done; records asks for it, and follows has it.
	records  bool
	recorded *fuse.Script
	follows  *fuse.Script
}

// NewBuilder returns a Builder for a Program that has been checked. inputs are the layouts of its
// parameters; nil stands for dense ones.
func NewBuilder(p *graph.Program, inputs []strided.View) *Builder {
	return newBuilder(p, fuse.UsesOf(p), inputs, len(p.Params)+len(p.Instrs)/2)
}

// NewRecording is NewBuilder for a Program that has a Template: what Build decides is Recorded.
func NewRecording(p *graph.Program) *Builder {
	b := NewBuilder(p, nil)
	b.records = true
	return b
}

// NewFollowing is NewBuilder for another Program of the Template. Build decides what was recorded, or
// returns an error that wraps fuse.ErrStale.
func NewFollowing(p *graph.Program, s *fuse.Script) *Builder {
	b := newBuilder(p, s.Uses, nil, s.Buffers)
	b.follows = s
	return b
}

func newBuilder(p *graph.Program, u *fuse.Uses, inputs []strided.View, buffers int) *Builder {
	b := &Builder{Program: p, Uses: u, Values: newValues(len(p.Shapes)), Buffers: make([]Buffer, 0, buffers), constants: map[string]int{}}
	for i, q := range p.Params {
		buf := b.NewBuffer(Buffer{Kind: Input, Bytes: q.Shape.Bytes()})
		b.Values[i] = DenseValue(q.Shape, buf)
		if inputs != nil {
			b.Values[i].View = inputs[i]
			b.Buffers[buf].Bytes = Extent(q.Shape, &inputs[i])
		}
	}
	return b
}

// valuesPool has the Values of Builders that are done: they are much of what compiling allocates.
var valuesPool sync.Pool // of *[]Value

func newValues(n int) []Value {
	if p, _ := valuesPool.Get().(*[]Value); p != nil && cap(*p) >= n {
		v := (*p)[:n]
		clear(v)
		return v
	}
	return make([]Value, n)
}

// release gives back what only building needs. Nothing may ask for a Value afterwards.
func (b *Builder) release() {
	values := b.Values
	b.Values, b.Groups, b.Uses, b.epilogues, b.inner, b.brief, b.spare = nil, nil, nil, nil, nil, nil, nil
	valuesPool.Put(&values)
}

// progressEvery is the number of instructions from one call of Progress to the next.
const progressEvery = 64

// Build has the steps of all instructions emitted, in the order of the Program. outputs are the
// layouts of the results; nil stands for dense ones. Errors name the op and the user's line. Afterwards
// the Builder has its Buffers only.
func (b *Builder) Build(e Emitter, outputs []strided.View) error {
	b.emitter = e
	if q, ok := e.(Brief); ok {
		b.brief, b.spare = q.Brief, &Call{b: b}
	}
	if q, ok := e.(Reordering); ok {
		b.reorders = q.Reorders()
	}
	switch {
	case b.follows != nil:
		var ok bool
		if b.Groups, b.epilogues, b.inner, ok = fuse.Follow(b.follows, b.Program, e); !ok {
			return fuse.ErrStale
		}
	case b.records:
		b.Groups, b.epilogues, b.inner, _ = fuse.Record(b.Program, b.Uses, e, e.Epilogue)
	default:
		b.Groups = fuse.New(b.Program, b.Uses, e)
		b.epilogues, b.inner = fuse.Epilogues(b.Program, b.Uses, e.Epilogue)
	}
	for i := range b.Program.Instrs {
		if err := b.instr(int32(i)); err != nil {
			return located(&b.Program.Instrs[i], err)
		}
		if b.Progress != nil && i%progressEvery == progressEvery-1 {
			b.Progress(i+1, len(b.Program.Instrs))
		}
	}
	if err := b.results(outputs); err != nil {
		return err
	}
	if b.records {
		if b.recorded = b.Groups.Recorded(); b.recorded != nil {
			b.recorded.Buffers = len(b.Buffers)
		}
	}
	b.release()
	return nil
}

// Recorded returns what Build decided, for Programs of the same Template; nil if it serves no others.
func (b *Builder) Recorded() *fuse.Script { return b.recorded }

// opError is an error that names an op and the user's line.
type opError struct{ error }

func (e *opError) Unwrap() error { return e.error }

// located adds the op and the user's line to an error that has none.
func located(in *graph.Instr, err error) error {
	if e := (*opError)(nil); errors.As(err, &e) {
		return err
	}
	return &opError{check.Located(in, err)}
}

// instr adds an instruction to a group, or has its steps emitted.
func (b *Builder) instr(i int32) (err error) {
	defer check.Recover(&err)
	in := &b.Program.Instrs[i]
	switch e := b.epilogues[i]; {
	case b.inner[i]:
	case e != nil:
		b.lower(&b.Program.Instrs[e.Anchor], in, e)
	case b.partOfCat(in):
		if b.pieces == nil {
			b.pieces = map[graph.ID]*graph.Instr{}
		}
		b.pieces[in.Out] = in
	case !b.Groups.Add(i):
		b.lower(in, in, nil)
	}
	return nil
}

// Alone has the steps of an instruction emitted by itself. It panics with an error that names the
// instruction.
func (b *Builder) Alone(in *graph.Instr) {
	var err error
	func() {
		defer check.Recover(&err)
		b.lower(in, in, nil)
	}()
	if err != nil {
		panic(located(in, err))
	}
}

// lower has the steps of an instruction emitted, and of the epilogue that ends with last.
func (b *Builder) lower(in, last *graph.Instr, e *fuse.Epilogue) { b.lowerTo(in, last, e, nil) }

// lowerTo is lower of an instruction whose first result is made at a place, unless that is nil.
func (b *Builder) lowerTo(in, last *graph.Instr, e *fuse.Epilogue, place *Value) {
	if IsView(in.Op) {
		if b.viewOfChosen(in) {
			return
		}
		b.Values[last.Out] = b.view(in)
		return
	}
	c := b.spare
	brief := c != nil && b.brief(in.Op)
	if brief {
		b.spare = nil
		c.Args, c.Operands, c.Results = b.Program.ArgsIn(&c.standIns, in), c.Operands[:0], c.Results[:0]
	} else {
		c = &Call{b: b, Args: b.Program.Args(in)}
	}
	c.place = place
	c.Instr, c.Last, c.Shapes, c.Epilogue = in, last, b.Program.Outs(last), e
	b.emitter.Lower(c)
	if c.chosen != nil {
		b.chosen[last.Out] = *c.chosen
		return
	}
	if len(c.Results) != last.NOut {
		panic(fmt.Sprintf("%d outputs lowered, want %d", len(c.Results), last.NOut))
	}
	copy(b.Values[last.Out:], c.Results)
	if brief {
		b.spare = c
	}
}

// Computed returns where a value lies, after its group's kernel has been emitted.
func (b *Builder) Computed(id graph.ID) Value {
	b.Groups.Need(id)
	if c, ok := b.chosen[id]; ok {
		b.compute(id, c.Instr)
	}
	if v, ok := b.apart[id]; ok {
		delete(b.apart, id)
		b.Values[id] = b.reshape(nil, v, b.Program.Shape(id))
	}
	return b.Values[id]
}

// Value returns where a value lies that is in no open group.
func (b *Builder) Value(id graph.ID) fuse.Value {
	if c, ok := b.chosen[id]; ok {
		b.compute(id, c.Instr)
	}
	return b.Values[id].Value
}

// SetValue notes where a value lies that a kernel computes.
func (b *Builder) SetValue(id graph.ID, v fuse.Value) {
	b.Values[id] = Value{b.Program.Shape(id), v}
}

// Copy has a dense copy of v emitted, whose elements are of dtype d.
func (b *Builder) Copy(d ir.DType, v fuse.Value) fuse.Value {
	return b.Copied(nil, Value{ir.MakeShape(d, v.View.Dims[:v.View.Rank]...), v}).Value
}

// Copied has a dense copy of a value emitted.
func (b *Builder) Copied(in *graph.Instr, v Value) Value {
	to := b.NewValue(v.Shape)
	b.emitter.CopyTo(in, to, v)
	return to
}

// NewBuffer returns the number of a new buffer.
func (b *Builder) NewBuffer(buf Buffer) int {
	buf.Output, buf.Donor, buf.First, buf.Last, buf.Storage = -1, -1, -1, -1, -1
	b.Buffers = append(b.Buffers, buf)
	return len(b.Buffers) - 1
}

// NewValue returns a dense value in a buffer of its own.
func (b *Builder) NewValue(s ir.Shape) Value {
	return DenseValue(s, b.NewBuffer(Buffer{Bytes: s.Bytes()}))
}

// Constant returns a value that is known now. Those of equal content share a buffer.
func (b *Builder) Constant(s ir.Shape, data []byte) Value {
	buf, ok := b.constants[string(data)]
	if !ok {
		buf = b.NewBuffer(Buffer{Kind: Constant, Bytes: len(data), Data: data})
		b.constants[string(data)] = buf
	}
	return DenseValue(s, buf)
}

// results gives each result of the Program a buffer of its own. What is an input or a constant,
// lies in another way, or is returned twice, is copied.
func (b *Builder) results(outputs []strided.View) (err error) {
	defer check.Recover(&err)
	for _, id := range b.Program.Returns {
		b.Computed(id)
	}
	for j, id := range b.Program.Returns {
		v := b.Values[id]
		want := strided.Dense(v.Shape.Dims())
		if outputs != nil {
			want = outputs[j]
		}
		extent := Extent(v.Shape, &want)
		if buf := &b.Buffers[v.Buf]; buf.Kind != Work || buf.Output >= 0 || buf.Bytes != extent || !v.liesAs(want) {
			to := Value{v.Shape, fuse.Value{Buf: b.NewBuffer(Buffer{Bytes: extent, Strided: extent != v.Shape.Bytes()}), View: want}}
			b.emitter.CopyTo(nil, to, v)
			v = to
		}
		b.Buffers[v.Buf].Output = j
	}
	return nil
}

// KernelStep returns the step of a kernel, without a payload, and makes the buffers of its
// operands that have none.
func KernelStep[P any](b *Builder, k *fuse.Kernel) Step[P] {
	s := Step[P]{Instr: k.Instrs[0], Ops: k.Instrs}
	room := b.Numbers.Take(2 * len(k.Args))
	s.Reads, s.Writes = room[:0:len(k.Args)], room[len(k.Args):len(k.Args)]
	for i := range k.Args {
		a := &k.Args[i]
		if a.Role == fuse.Scratch {
			continue
		}
		if a.Buf == fuse.None {
			a.Buf = b.NewBuffer(Buffer{Bytes: k.Bytes(a)})
		}
		if a.Role.Writes() {
			s.Writes = append(s.Writes, a.Buf)
		} else {
			s.Reads = append(s.Reads, a.Buf)
		}
	}
	pairs := b.pairs[:0]
	bytes := func(buf int) int { return b.Buffers[buf].Bytes }
	for w, r := range k.InPlace(bytes) {
		pairs = append(pairs, Pair{w, r})
	}
	if b.LinesInPlace {
		for w, r := range k.LinesInPlace(bytes) {
			pairs = append(pairs, Pair{w, r})
		}
	}
	b.pairs = pairs
	if len(pairs) > 0 {
		s.InPlace = b.inPlace.Take(len(pairs))
		copy(s.InPlace, pairs)
	}
	return s
}
