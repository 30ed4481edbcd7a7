package cpu

import (
	"context"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/parallel"
)

// Step is one run of one kernel of a compiled Program, as an observer gets it.
type Step struct {
	// Program is the name of the Program, and Index the kernel's number in it.
	Program string
	Index   int
	// Name has the ops that the kernel computes, in their order.
	Name string
	// Line is the user's call that recorded the first of them, if it is known.
	Line string
	// Bytes is the size of what the kernel reads and writes outside of itself,
	// each buffer once, and FLOP the arithmetic of its ops as they are defined;
	// a kernel that computes otherwise may do less.
	Bytes, FLOP int64
	// Duration is the time of the run.
	Duration time.Duration
}

// Observe makes fn get every step that the backend's models run from now on,
// from the goroutine that ran it; nil ends that. While a step is observed, its
// goroutines carry the pprof labels kernel, with its name, and line. Programs
// that are compiled already are observed, too; fn must run no model.
func (b *Backend) Observe(fn func(Step)) {
	if fn == nil {
		b.observer.Store(nil)
		return
	}
	b.observer.Store(&fn)
}

// observe runs a step for an observer.
func (m *model) observe(ctx context.Context, at int, fn func(Step)) (err error) {
	s := &m.plan.Steps[at]
	o := m.describe(at)
	labelled := pprof.WithLabels(ctx, pprof.Labels("kernel", o.Name, "line", o.Line))
	begin := time.Now()
	func() {
		pprof.SetGoroutineLabels(labelled)
		parallel.SetLabels(labelled)
		defer pprof.SetGoroutineLabels(context.Background())
		defer parallel.ClearLabels()
		err = runWork(ctx, m.limiter, &s.Payload)
	}()
	o.Duration = time.Since(begin)
	fn(o)
	return err
}

// title is what a trace calls a step.
type title struct{ name, line string }

// title returns the ops and the line of a step, as describe does; m.mu is held.
func (m *model) title(at int) (name, line string) {
	if m.titles == nil {
		m.titles = make([]title, len(m.plan.Steps))
	}
	t := &m.titles[at]
	if t.name == "" {
		o := m.describe(at)
		*t = title{o.Name, o.Line}
	}
	return t.name, t.line
}

// describe returns what is known of a step without running it.
func (m *model) describe(at int) Step {
	s := &m.plan.Steps[at]
	o := Step{Program: m.name, Index: at, Name: "copy"}
	ops := s.Ops
	if len(ops) == 0 && s.Instr != nil {
		ops = []*graph.Instr{s.Instr}
	}
	if len(ops) > 0 {
		names := make([]string, len(ops))
		for i, in := range ops {
			names[i] = in.Op.String()
			o.FLOP += flop(m.program, in)
		}
		o.Name = strings.Join(names, "+")
		if s.Payload.wait != nil {
			o.Name = "wait " + o.Name
		}
		o.Line = ir.FormatLine(ops[0].Line)
	}
	var written int64
	for _, w := range distinct(s.Writes) {
		if b := &m.plan.Buffers[w]; b.First != at || b.Last != at { // else it is scratch memory
			written += int64(b.Bytes)
		}
	}
	o.Bytes = written
	for _, r := range distinct(s.Reads) {
		n := int64(m.plan.Buffers[r].Bytes)
		if len(ops) == 0 || ops[0].Op.Spec().Category == ir.Indexing || ops[0].Op.Spec().Category == ir.View {
			n = min(n, written) // what picks elements does not read the others
		}
		o.Bytes += n
	}
	return o
}

func distinct(bufs []int) []int {
	out := slices.Clone(bufs)
	slices.Sort(out)
	return slices.Compact(out)
}

// flop counts the arithmetic of one use of an op, a function such as exp as one.
func flop(p *graph.Program, in *graph.Instr) int64 {
	out := int64(p.Shape(in.Out).Numel())
	dim := func(arg, i int) int64 {
		s := p.Shape(in.Args[arg])
		return int64(s.Dim((i + s.Rank()) % s.Rank()))
	}
	switch in.Op.String() {
	case "matmul", "linear":
		return 2 * out * dim(0, -1)
	case "convolution":
		// Each result is a sum over a filter, or, transposed, each element of the
		// input is spread over one.
		if p.Args(in).Bool("transposed") {
			return 2 * int64(p.Shape(in.Args[0]).Numel()) * int64(p.Shape(in.Args[1]).Numel()) / max(dim(1, 0), 1)
		}
		return 2 * out * int64(p.Shape(in.Args[1]).Numel()) / max(dim(1, 0), 1)
	case "scan":
		loop := graph.LoopOf(p.Args(in))
		var each int64
		for i := range loop.Body.Instrs {
			each += flop(loop.Body, &loop.Body.Instrs[i])
		}
		return each * int64(loop.Length)
	case "scaled_dot_product_attention":
		return 2 * out / max(dim(2, -1), 1) * dim(1, -2) * (dim(0, -1) + dim(2, -1))
	case "_scaled_dot_product_attention_backward":
		// The scores and the gradients of query and key, and of value and probabilities.
		queries := int64(p.Shape(in.Args[1]).Numel()) / max(dim(4, -1), 1)
		return 2 * queries * dim(3, -2) * (3*dim(2, -1) + 2*dim(4, -1))
	}
	switch in.Op.Spec().Category {
	case ir.View, ir.Creation, ir.Indexing:
		return 0
	case ir.Reduction, ir.Scan:
		return int64(p.Shape(in.Args[0]).Numel())
	}
	return out
}
