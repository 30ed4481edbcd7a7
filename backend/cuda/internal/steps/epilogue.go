package steps

import (
	"cmp"
	"slices"

	"github.com/loris-ml/loris/backend/internal/check"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// epilogueRule says what of the ops after an instruction the library can do with
// it: add a vector to each row of a product, add another result, and two of the
// activations.
func (l *lowering) epilogueRule(in *graph.Instr) (fuse.Rule, bool) {
	d := l.p.Shape(in.Out).DType()
	if in.Op != ir.OpMatMul || l.opt.Product == nil || !d.IsFloat() || d == ir.F64 {
		return fuse.Rule{}, false
	}
	// A product with a vector has its results along what are rows to the library.
	out := l.p.Shape(in.Out)
	if l.p.Shape(in.Args[1]).Rank() < 2 || out.Numel() == 0 || l.p.Shape(in.Args[0]).Dim(-1) == 0 {
		return fuse.Rule{}, false
	}
	return fuse.Rule{Channel: out.Rank() - 1, NoFactors: true, Acts: []fuse.Activation{fuse.ReLU, fuse.GELUTanh}}, true
}

// withEpilogue emits a product and what follows it as one step, or one by one if
// the library cannot.
func (l *lowering) withEpilogue(e *fuse.Epilogue) (err error) {
	defer check.Recover(&err)
	in, last := &l.p.Instrs[e.Anchor], slices.MaxFunc(e.Ops, byOutput)
	c := &call{l: l, instr: in, Args: l.p.Args(in), outs: l.p.Outs(last), post: e}
	for _, id := range in.Args {
		c.in = append(c.in, l.val(id))
	}
	if c.libraryProduct(batchOf(c.in[0], c.in[1])) {
		l.vals[last.Out] = c.out[0]
		return nil
	}
	for _, op := range slices.SortedFunc(slices.Values(e.Ops), byOutput) {
		if err := l.alone(op); err != nil {
			return located(op, err)
		}
	}
	return nil
}

func byOutput(x, y *graph.Instr) int { return cmp.Compare(x.Out, y.Out) }

// finish describes an epilogue to the library and returns its operands: the bias
// and the other addend, as far as there are any.
func (c *call) finish(p *Product) (operands []value) {
	if c.post == nil {
		return nil
	}
	for _, k := range c.post.Links { // one at most
		p.Bias = true
		operands = append(operands, c.toAligned(c.dense(c.l.val(k.ID))))
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
