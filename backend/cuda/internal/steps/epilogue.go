package steps

import (
	"cmp"
	"math"
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/check"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// epilogueRule says what of the ops after an instruction can be done with it. The
// library adds a vector to each row of a product, adds another result, and has two
// of the activations; kernels can do all.
func (l *lowering) epilogueRule(in *graph.Instr) (fuse.Rule, bool) {
	out := l.p.Shape(in.Out)
	d := out.DType()
	if !d.IsFloat() || out.Numel() == 0 {
		return fuse.Rule{}, false
	}
	switch in.Op {
	case ir.OpConvolution:
		return fuse.Rule{Channel: 1, Affine: d == loop.ComputeDType(d)}, true
	case ir.OpMatMul:
		// A product with a vector has its results along what are rows to the library.
		if l.p.Shape(in.Args[1]).Rank() < 2 || l.p.Shape(in.Args[0]).Dim(-1) == 0 {
			return fuse.Rule{}, false
		}
		if l.opt.Product == nil {
			return fuse.Rule{Channel: out.Rank() - 1, Affine: d == loop.ComputeDType(d)}, true
		}
		return fuse.Rule{Channel: out.Rank() - 1, Factor: l.isNumber, Acts: []fuse.Activation{fuse.ReLU, fuse.GELUTanh}}, d != ir.F64
	}
	return fuse.Rule{}, false
}

// withEpilogue emits a product or convolution and what follows it as one step.
func (l *lowering) withEpilogue(e *fuse.Epilogue) (err error) {
	defer check.Recover(&err)
	in, last := &l.p.Instrs[e.Anchor], slices.MaxFunc(e.Ops, byOutput)
	c := &call{l: l, instr: in, Args: l.p.Args(in), outs: l.p.Outs(last), post: e}
	for _, id := range in.Args {
		c.in = append(c.in, l.val(id))
	}
	lowerings[in.Op](c)
	l.vals[last.Out] = c.out[0]
	return nil
}

func byOutput(x, y *graph.Instr) int { return cmp.Compare(x.Out, y.Out) }

// isNumber reports whether a value is a number that the Program has, and by which
// the library multiplies. A factor of 0 would keep it from reading its operands.
func (l *lowering) isNumber(id graph.ID) bool {
	v := l.numbers[id]
	return v != 0 && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// numbersOf returns the numbers that a Program has, by the values that they fill.
func numbersOf(p *graph.Program) map[graph.ID]float64 {
	all := map[graph.ID]float64{}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if in.Op != ir.OpFull || !p.Shape(in.Out).DType().IsFloat() {
			continue
		}
		v, ok := p.Args(in).Get("fill_value").(float64)
		if n, isInt := p.Args(in).Get("fill_value").(int64); isInt {
			v, ok = float64(n), true
		}
		if ok {
			all[in.Out] = ir.RoundFloat(p.Shape(in.Out).DType(), v)
		}
	}
	return all
}

// finish describes an epilogue to the library and returns its operands: the bias
// and the other addend, as far as there are any.
func (c *call) finish(p *Product) (operands []value) {
	if c.post == nil {
		return nil
	}
	for _, k := range c.post.Links { // factors, then one vector at most
		switch k.Op {
		case ir.OpMul:
			p.Alpha = cmp.Or(p.Alpha, 1) * c.l.numbers[k.ID]
		case ir.OpDiv:
			p.Alpha = cmp.Or(p.Alpha, 1) / c.l.numbers[k.ID]
		default:
			p.Bias = true
			operands = append(operands, c.toAligned(c.dense(c.l.val(k.ID))))
		}
	}
	if c.post.Residual != fuse.NoValue {
		p.Addend = true
		operands = append(operands, c.toAligned(c.dense(c.l.val(c.post.Residual))))
	}
	p.Act = c.post.Act
	return operands
}

// toAligned returns a dense value at an address that the library takes.
func (c *call) toAligned(v value) value {
	if at(v).off%productAlign != 0 {
		return c.copied(v)
	}
	return v
}

// activations are the names that kernels have for what fuse finds.
var activations = [...]emit.Activation{
	fuse.Identity: emit.Identity, fuse.ReLU: emit.ReLU, fuse.GELU: emit.GELU, fuse.GELUTanh: emit.GELUTanh, fuse.SiLU: emit.SiLU,
	fuse.Sigmoid: emit.Sigmoid, fuse.Tanh: emit.Tanh,
}

// withPost emits the kernels of a product or convolution on some operands. post is
// what it has by itself; the call's epilogue comes after it.
func (c *call) withPost(post *emit.Post, operands []value, plan func() *emit.Plan) {
	residual := -1
	if c.post != nil {
		for _, k := range c.post.Links {
			v := c.dense(c.l.val(k.ID))
			post.Links = append(post.Links, emit.Link{Op: k.Op, Vector: v.shape.Numel() > 1})
			operands = append(operands, v)
		}
		if c.post.Residual != fuse.NoValue {
			post.Addend, residual = true, len(operands)
			operands = append(operands, c.dense(c.l.val(c.post.Residual)))
		}
		post.Act = activations[c.post.Act]
	}
	out := c.result()
	s := planned{Step: Step{Kernels: plan()}, operands: places(append([]value{out}, operands...)...), writes: 1}
	if residual >= 0 {
		s.replaces(residual + 1)
	}
	c.emit(s)
}

// replaces says that the result may be written over a dense operand of its
// dimensions, if nothing else is read from there.
func (s *planned) replaces(operand int) {
	r := s.operands[operand]
	for i, o := range s.operands {
		if i != operand && o.buf == r.buf {
			return
		}
	}
	if r.off == 0 {
		s.inPlace = []plan.Pair{{Write: s.operands[0].buf, Read: r.buf}}
	}
}
