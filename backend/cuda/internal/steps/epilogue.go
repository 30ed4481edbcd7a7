package steps

import (
	"cmp"
	"math"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// Epilogue says what of the ops after an instruction can be done with it. The
// library adds a vector to each row of a product, adds another result, and has two
// of the activations; kernels can do all.
func (l *lowering) Epilogue(in *graph.Instr) (fuse.Rule, bool) {
	out := l.Program.Shape(in.Out)
	d := out.DType()
	if !d.IsFloat() || out.Numel() == 0 {
		return fuse.Rule{}, false
	}
	switch in.Op {
	case aten.Convolution:
		return fuse.Rule{Channel: 1, Affine: d == loop.ComputeDType(d)}, true
	case aten.MatMul:
		// A product with a vector has its results along what are rows to the library.
		if l.Program.Shape(in.Args[1]).Rank() < 2 || l.Program.Shape(in.Args[0]).Dim(-1) == 0 {
			return fuse.Rule{}, false
		}
		if l.opt.Ahead {
			return fuse.Rule{Channel: out.Rank() - 1, Vector: true}, true
		}
		if l.opt.Product == nil {
			return fuse.Rule{Channel: out.Rank() - 1, Affine: d == loop.ComputeDType(d)}, true
		}
		return fuse.Rule{Channel: out.Rank() - 1, Factor: l.isNumber, Acts: []fuse.Activation{fuse.ReLU, fuse.GELUTanh}}, d != ir.F64
	}
	return fuse.Rule{}, false
}

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
		if in.Op != aten.Full || !p.Shape(in.Out).DType().IsFloat() {
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
func (c *call) finish(p *Product) (operands []plan.Value) {
	if c.Epilogue == nil {
		return nil
	}
	for _, k := range c.Epilogue.Links { // factors, then one vector at most
		switch k.Op {
		case aten.Mul:
			p.Alpha = cmp.Or(p.Alpha, 1) * c.l.numbers[k.ID]
		case aten.Div:
			p.Alpha = cmp.Or(p.Alpha, 1) / c.l.numbers[k.ID]
		default:
			p.Bias = true
			operands = append(operands, c.toAligned(c.Dense(c.l.Computed(k.ID))))
		}
	}
	if c.Epilogue.Residual != fuse.NoValue {
		p.Addend = true
		operands = append(operands, c.toAligned(c.Dense(c.l.Computed(c.Epilogue.Residual))))
	}
	p.Act = c.Epilogue.Act
	return operands
}

// toAligned returns a dense value at an address that the library takes.
func (c *call) toAligned(v plan.Value) plan.Value {
	if at(v).off%productAlign != 0 {
		return c.Copied(v)
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
func (c *call) withPost(post *emit.Post, operands []plan.Value, kernels func() *emit.Plan) {
	residual := -1
	if c.Epilogue != nil {
		for _, k := range c.Epilogue.Links {
			v := c.Dense(c.l.Computed(k.ID))
			post.Links = append(post.Links, emit.Link{Op: k.Op, Vector: v.Shape.Numel() > 1})
			operands = append(operands, v)
		}
		if c.Epilogue.Residual != fuse.NoValue {
			post.Addend, residual = true, len(operands)
			operands = append(operands, c.Dense(c.l.Computed(c.Epilogue.Residual)))
		}
		post.Act = activations[c.Epilogue.Act]
	}
	out := c.Result()
	s := planned{Step: Step{Kernels: kernels()}, operands: places(append([]plan.Value{out}, operands...)...), writes: 1}
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
