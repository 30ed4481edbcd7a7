package steps

import (
	"errors"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// aheadLimits are those of a GPU that may be any from sm_80 on: an H100 has so many processors, and
// where there are others only times differ.
var aheadLimits = emit.Limits{Processors: 132, Threads: 1024, Tensor: true}

// Ahead returns the steps of a Program as data, for a process that has PyTorch's functions, and a launch
// of each of the plan's kernels, whose images the caller makes. Products of floats are calls of libtorch,
// all else are kernels. What cannot be exported is named in one error that wraps backend.ErrUnsupported,
// all of it, with the user's lines.
func Ahead(p *graph.Program) (*ahead.Plan, []*emit.Launch, error) {
	var missing []error
	for i := range p.Instrs {
		if in := &p.Instrs[i]; !Supports(in.Op) {
			missing = append(missing, check.Located(in, fmt.Errorf("%w: no kernel computes %v on a GPU", backend.ErrUnsupported, in.Op)))
		}
	}
	if missing != nil {
		return nil, nil, errors.Join(missing...)
	}
	l, err := lower(p, Options{Limits: aheadLimits, Ahead: true, Product: func(q *Product) (int, any, bool) {
		return 0, nil, q.DType == q.Left && q.DType == q.Right && q.DType.IsFloat() && !q.DType.IsF8() && q.Scales == Unscaled
	}})
	if err == nil {
		err = errors.Join(l.failures...)
	}
	if err != nil {
		return nil, nil, err
	}
	s := l.sequence(l.plan())
	a := &aheadPlan{s: s, numbers: map[string]int{}, out: &ahead.Plan{Literals: s.Constants}}
	a.places()
	for i := range s.Steps {
		if err := a.step(&s.Steps[i]); err != nil {
			return nil, nil, err
		}
	}
	return a.out, a.kernels, nil
}

// collect notes why an op cannot be lowered for another process. Emitting goes on with results that
// nothing computes, so that all such ops are found.
func (l *lowering) collect(pc *plan.Call) {
	r := recover()
	if r == nil {
		return
	}
	err, ok := r.(error)
	if !ok || pc.Instr == nil {
		panic(r)
	}
	l.failures = append(l.failures, check.Located(pc.Instr, err))
	for len(pc.Results) < len(pc.Shapes) {
		pc.Result()
	}
}

// aheadPlan writes a Sequence as data.
type aheadPlan struct {
	s       *Sequence
	out     *ahead.Plan
	kernels []*emit.Launch
	numbers map[string]int // of kernels, by entry
}

// places makes each memory of the Sequence a buffer, by its number; the one behind them has the faults.
func (a *aheadPlan) places() {
	s, out := a.s, a.out
	out.Places = []ahead.Place{Workspace: {Space: ahead.Workspace}, Constants: {Space: ahead.Literal}}
	for i := range s.Inputs {
		out.Places = append(out.Places, ahead.Place{Space: ahead.Param, Index: i})
	}
	for i := range s.Outputs {
		out.Places = append(out.Places, ahead.Place{Space: ahead.Output, Index: i})
	}
	out.FaultsAt = (s.Workspace + Alignment - 1) / Alignment * Alignment
	out.Places = append(out.Places, ahead.Place{Offset: out.FaultsAt})
	out.Faults = make([]ahead.Fault, s.Faults)
	out.Workspace = out.FaultsAt + s.Faults*FaultBytes
}

// step appends what a step does.
func (a *aheadPlan) step(s *Step) error {
	name := ahead.Step{Op: "the copy of a result"}
	if s.Instr != nil {
		name = ahead.Step{Op: s.Instr.Called().String(), Line: ir.FormatLine(s.Instr.Line)}
	}
	add := func(x ahead.Step) { a.out.Steps = append(a.out.Steps, x) }
	switch {
	case s.Call != nil || s.Begin != nil || s.Wait != nil:
		return s.Located(fmt.Errorf("%w: it is no computation of one GPU's", backend.ErrUnsupported))
	case s.Product != nil:
		name.Call = product(s)
		add(name)
	case s.Copy > 0:
		name.Copy = &ahead.Copy{To: ahead.Memory{Buf: s.Refs[0].Memory, Offset: s.Refs[0].Offset}, From: ahead.Memory{Buf: s.Refs[1].Memory, Offset: s.Refs[1].Offset}, Bytes: s.Copy}
		add(name)
	default:
		for k := range s.Kernels.Launches {
			name.Launch = a.launch(s, &s.Kernels.Launches[k])
			add(name)
		}
		a.faults(s)
	}
	return nil
}

func (a *aheadPlan) launch(s *Step, l *emit.Launch) *ahead.Launch {
	n, ok := a.numbers[l.Entry]
	if !ok {
		n = len(a.kernels)
		a.numbers[l.Entry] = n
		a.kernels = append(a.kernels, l)
	}
	out := &ahead.Launch{Kernel: n, Grid: l.Grid, Block: l.Block, Params: l.Params}
	for _, x := range l.Addresses {
		r := s.Work
		switch {
		case x.Operand == emit.Fault && s.Fault < 0:
			continue // the kernel leaves nothing there
		case x.Operand == emit.Fault:
			r = Ref{len(a.out.Places) - 1, FaultBytes * s.Fault}
		case x.Operand >= 0:
			r = s.Refs[x.Operand]
		}
		out.Addresses = append(out.Addresses, ahead.Address{Slot: x.Slot, Buf: r.Memory, Offset: r.Offset + x.Offset})
	}
	return out
}

// faults describes what the kernels of a step may leave.
func (a *aheadPlan) faults(s *Step) {
	for i := range s.parts {
		a.faults(&s.parts[i])
	}
	if s.parts != nil || s.Fault < 0 {
		return
	}
	in := s.Instr
	for _, d := range s.divisions {
		in = d
	}
	f := ahead.Fault{Op: in.Called().String(), Line: ir.FormatLine(in.Line)}
	if s.divisions == nil && in.Op.Spec().Category != ir.Pointwise {
		f.Size = s.size
	}
	a.out.Faults[s.Fault] = f
}

// product returns the call of libtorch that computes a product: with a vector that is added, or
// without.
func product(s *Step) *ahead.Call {
	p := s.Product
	matrix := func(r Ref, rows, cols int, x Matrix) ahead.Tensor {
		v := strided.View{Rank: 2, Offset: r.Offset / p.DType.Size()}
		v.Dims[0], v.Dims[1], v.Strides[0], v.Strides[1] = rows, cols, x.LD, 1
		if x.Trans {
			v.Strides[0], v.Strides[1] = 1, x.LD
		}
		if p.Batch > 1 {
			v.Rank = 3
			v.Dims[0], v.Dims[1], v.Dims[2], v.Strides[0], v.Strides[1], v.Strides[2] = p.Batch, v.Dims[0], v.Dims[1], x.Stride, v.Strides[0], v.Strides[1]
		}
		return ahead.Tensor{Buf: r.Memory, DType: p.DType, View: v}
	}
	out := matrix(s.Refs[0], p.M, p.N, Matrix{LD: p.N, Stride: p.Stride})
	operands := []ahead.Arg{matrix(s.Refs[1], p.M, p.K, p.A), matrix(s.Refs[2], p.K, p.N, p.B)}
	name := "mm_out"
	if p.Batch > 1 {
		name = "bmm_out"
	}
	args := append([]ahead.Arg{out}, operands...)
	if p.Bias {
		name = map[string]string{"mm_out": "addmm_out", "bmm_out": "baddbmm_out"}[name]
		bias := strided.View{Rank: out.View.Rank, Offset: s.Refs[3].Offset / p.DType.Size(), Dims: out.View.Dims}
		bias.Strides[bias.Rank-1] = 1
		if bias.Rank == 2 { // a vector is what libtorch adds in the product's kernel
			bias.Rank, bias.Dims[0], bias.Strides[0] = 1, p.N, 1
		}
		args = append([]ahead.Arg{out, ahead.Tensor{Buf: s.Refs[3].Memory, DType: p.DType, View: bias}}, operands...)
		args = append(args, ahead.Float(1), ahead.Float(1))
	}
	return &ahead.Call{Function: "aoti_torch_cuda_" + name, Args: args}
}
