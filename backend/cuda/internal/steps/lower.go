package steps

import (
	"errors"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// operand is an address in a buffer.
type operand struct {
	buf, off int // in bytes
}

// planned is a Step whose buffers have no addresses yet.
type planned struct {
	Step
	operands []operand
	work     int // a buffer, or -1
	writes   int // the number of operands that are written, which come first
	inPlace  []plan.Pair
}

// lowering emits the steps of a Program, as a plan.Emitter.
type lowering struct {
	*plan.Builder
	opt      Options
	steps    []plan.Step[planned]
	faults   int
	returned int                  // by called models
	order    *int                 // the buffer that all collectives write, which keeps their order; nil for none
	numbers  map[graph.ID]float64 // of the Program
	probes   map[fuse.Probe]bool
	// attentions are those that keep their sums, by their results.
	attentions map[graph.ID]savedAttention
	failures   []error // of a plan for another process
}

// lowerFunc emits the steps of one use of an op.
type lowerFunc = func(c *call)

// lowerings has the primitives that are neither pointwise nor views; the files of the
// families fill it in.
var lowerings = map[ir.Op]lowerFunc{}

// Supports reports whether there is a lowering for an op: a primitive, attention, or
// a composite that is one product. What of a composite's uses there is no kernel for is decomposed by Lower.
func Supports(op ir.Op) bool {
	sp := op.Spec()
	return sp != nil && (lowerings[op] != nil || plan.IsView(op) || sp.Category == ir.Pointwise && !sp.Composite())
}

// Lower returns the steps of a Program. An op or dtype without kernel is an error
// that wraps backend.ErrUnsupported; a Program whose parts do not fit together is
// one that wraps ir.ErrArg or ir.ErrShape. Errors name the op and the user's line.
func Lower(p *graph.Program, o Options) (*Sequence, error) {
	l, err := lower(p, o)
	if err != nil {
		return nil, err
	}
	return l.sequence(l.plan()), nil
}

// lower emits the steps of a Program.
func lower(p *graph.Program, o Options) (*lowering, error) {
	if err := check.Program(p, Supports); err != nil {
		return nil, err
	}
	p, err := onDevice(p, &o)
	if err != nil {
		return nil, err
	}
	p = decomposed(p, &o)
	l := &lowering{Builder: plan.NewBuilder(p, o.Inputs), opt: o, probes: map[fuse.Probe]bool{}, numbers: numbersOf(p)}
	return l, l.Build(l, o.Outputs)
}

// onDevice writes collectives as those that there are lowerings for.
func onDevice(p *graph.Program, o *Options) (*graph.Program, error) {
	if o.Collectives == nil {
		return p, nil
	}
	return collective.OnDevice(p, o.Collectives, Supports)
}

// Lower emits the steps of an instruction.
func (l *lowering) Lower(pc *plan.Call) {
	if l.opt.Ahead {
		defer l.collect(pc)
	}
	c := &call{pc, l}
	f := lowerings[pc.Instr.Op]
	if f == nil {
		f = pointwise
	}
	if pc.Instr.Op != aten.Cat {
		pc.Compute()
	}
	f(c)
}

// call is one use of an op that is being lowered.
type call struct {
	*plan.Call // of which Instr is nil for the copy of a result
	l          *lowering
}

// operand returns an operand by name.
func (c *call) operand(name string) plan.Value { return c.Operands[c.InputIndex(name)] }

// at returns the place of a value's first element.
func at(v plan.Value) operand { return operand{v.Buf, v.View.Offset * v.Size()} }

func places(values ...plan.Value) (all []operand) {
	for _, v := range values {
		all = append(all, at(v))
	}
	return all
}

// emit adds a step of this op. The first operands, as many as writes says, are
// written.
func (c *call) emit(s planned) {
	step := plan.Step[planned]{Instr: c.Instr, InPlace: s.inPlace}
	for i, o := range s.operands {
		if i < s.writes {
			step.Writes = append(step.Writes, o.buf)
		} else {
			step.Reads = append(step.Reads, o.buf)
		}
	}
	c.l.add(step, s)
}

// add adds a step with what it executes, and makes its workspace.
func (l *lowering) add(step plan.Step[planned], s planned) {
	s.Instr, s.work = step.Instr, -1
	if s.Kernels != nil {
		s.Fault = -1
	}
	if n := s.workspace(); n > 0 {
		s.work = l.NewBuffer(plan.Buffer{Bytes: n})
		step.Writes = append(step.Writes, s.work)
	}
	step.Payload = s
	l.steps = append(l.steps, step)
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
func (c *call) kernels(p *emit.Plan, writes int, values ...plan.Value) {
	c.emit(planned{Step: Step{Kernels: p}, operands: places(values...), writes: writes})
}

// mayFail lets the last step leave a fault behind: an index out of a dimension's
// size, or a division by 0.
func (l *lowering) mayFail(size int) {
	s := &l.steps[len(l.steps)-1].Payload
	s.Fault, s.size = l.faults, size
	l.faults++
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
