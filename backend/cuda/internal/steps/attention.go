package steps

import (
	"math"
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	lowerings[aten.Attention] = attention
	lowerings[aten.AttentionBackward] = attentionBackward
}

// decomposed returns the Program with its composites decomposed where no kernel
// takes them.
func decomposed(p *graph.Program, o *Options) *graph.Program {
	takes := func(a ir.Args) bool {
		switch a.Spec.Op {
		case aten.ScaledMM, aten.IntMM:
			return true
		}
		h := geometry(a)
		if h == nil {
			return false
		}
		g := h.kernel(a)
		if a.Spec.Op == aten.AttentionBackward {
			return h.own && (&emit.AttentionGradient{Attention: *g}).Takes(o.Limits)
		}
		return g.Takes(o.Limits)
	}
	for i := range p.Instrs {
		if in := &p.Instrs[i]; in.Op.Spec().Composite() && !takes(p.Args(in)) {
			p, _ = graph.Optimize(p, graph.Options{Supports: Supports, Takes: takes})
			break
		}
	}
	return p
}

// heads is the geometry of an attention. Heads of query that share those of key and
// value are a dimension of their own at the end of the batch.
type heads struct {
	lead   []int // the dimensions of the result before the last two
	shared int   // that many heads of query to one of key
	own    bool  // nothing else is broadcast
}

// geometry returns nil for operands that kernels know no geometry of.
func geometry(a ir.Args) *heads {
	q, k, v := a.Tensor("query").Shape(), a.Tensor("key").Shape(), a.Tensor("value").Shape()
	h := &heads{shared: 1, own: true}
	before := func(s ir.Shape) []int { return s.Dims()[:s.Rank()-2] }
	dims := [][]int{before(q), before(k), before(v)}
	if a.Bool("enable_gqa") {
		all := q.Dim(-3)
		if h.shared = all / k.Dim(-3); v.Dim(-3) != k.Dim(-3) {
			return nil
		}
		for _, d := range dims[1:] {
			d[len(d)-1] = all
		}
	}
	lead := q.WithDims()
	for _, d := range dims {
		lead, _ = ir.BroadcastDims(lead, q.WithDims(d...)) // Infer has checked that they do
	}
	h.lead = lead.Dims()
	for _, d := range dims {
		h.own = h.own && slices.Equal(d, h.lead)
	}
	return h
}

// kernel returns what is known of a kernel by shapes.
func (h *heads) kernel(a ir.Args) *emit.Attention {
	q, k, v := a.Tensor("query").Shape(), a.Tensor("key").Shape(), a.Tensor("value").Shape()
	g := &emit.Attention{
		DType: q.DType(), Batch: h.split(h.lead), Queries: q.Dim(-2), Keys: k.Dim(-2), Dim: q.Dim(-1), ValueDim: v.Dim(-1), Causal: a.Bool("is_causal"),
	}
	var ok bool
	if g.Scale, ok = a.OptFloat("scale"); !ok {
		g.Scale = 1 / math.Sqrt(float64(g.Dim))
	}
	if m := a.Tensor("attn_mask"); !m.IsNil() {
		g.Mask = m.DType()
	}
	return g
}

// split splits the heads in a list of the dimensions of a batch.
func (h *heads) split(lead []int) []int {
	if h.shared == 1 {
		return lead
	}
	n := len(lead) - 1
	return append(slices.Clone(lead[:n]), lead[n]/h.shared, h.shared)
}

// lie returns how an operand lies, which is broadcast to the lead. few says that it
// has a head for several.
func (h *heads) lie(v plan.Value, few bool) emit.Lie {
	lead := slices.Clone(h.lead)
	if few && h.shared > 1 {
		lead[len(lead)-1] /= h.shared
	}
	v = spread(v, lead)
	n := len(lead)
	l := emit.Lie{Row: v.View.Strides[n], Col: v.View.Strides[n+1], Batch: slices.Clone(v.View.Strides[:n])}
	switch {
	case h.shared > 1 && few:
		l.Batch = append(l.Batch, 0)
	case h.shared > 1:
		step := l.Batch[n-1]
		l.Batch = append(l.Batch[:n-1], step*h.shared, step)
	}
	return l
}

// packed reports whether rows of operands can be moved 16 bytes at a time.
func packed(values ...plan.Value) bool {
	for _, v := range values {
		const bytes = 16
		r, n := v.View.Rank, v.Size()
		if v.View.Strides[r-1] != 1 || at(v).off%bytes != 0 || v.View.Dims[r-1]*n%bytes != 0 {
			return false
		}
		for d, s := range v.View.Strides[:r-1] {
			if v.View.Dims[d] > 1 && s*n%bytes != 0 {
				return false
			}
		}
	}
	return true
}

// heads makes the next result. Where what follows has the heads beside each other,
// as the projection behind attention, it lies so.
func (c *call) heads() plan.Value {
	r := c.Shapes[len(c.Results)].Rank()
	if r < 3 || !c.l.Transposed(c.Instr.Out+graph.ID(len(c.Results)), r-3, r-2) {
		return c.Result()
	}
	return c.ResultTransposed(r-3, r-2)
}

// attention is a kernel in the flash form. It keeps its sums for the gradients, if
// they are computed in this Program.
func attention(c *call) {
	u, p := c.attended(), c.l.Program
	if slices.ContainsFunc(p.Instrs, func(in graph.Instr) bool { return in.Op == aten.AttentionBackward && follows(c.Instr, &in) }) {
		if c.l.attentions == nil {
			c.l.attentions = map[graph.ID]savedAttention{}
		}
		c.l.attentions[c.Instr.Out] = savedAttention{c.Instr, u.run(c, c.heads(), true)}
		return
	}
	u.run(c, c.heads(), false)
}

// savedAttention is an attention whose kernel keeps its sums for the gradients.
type savedAttention struct {
	instr *graph.Instr
	sums  plan.Value
}

// follows reports whether an instruction is the gradients of an attention.
func follows(in, gradients *graph.Instr) bool {
	return gradients.Args[1] == in.Out && gradients.Attr == in.Attr && slices.Equal(gradients.Args[2:], in.Args)
}

// attentionBackward is a kernel, too. Where the attention was computed elsewhere it
// is computed again, for its sums.
func attentionBackward(c *call) {
	u := c.attended()
	before := c.l.attentions[c.Instr.Args[1]]
	sums := before.sums
	if before.instr == nil || !follows(before.instr, c.Instr) {
		sums = u.run(c, c.l.NewValue(c.Operands[1].Shape), true)
	}
	grad, out := c.operand("grad"), c.operand("out")
	dq, dk, dv := c.heads(), c.heads(), c.heads()
	g := emit.AttentionGradient{
		Attention: *u.Attention, Shared: u.shared,
		Grad: u.lie(grad, false), DQuery: u.lie(dq, false), DKey: u.lie(dk, true), DValue: u.lie(dv, true),
	}
	g.Out = u.lie(out, false)
	g.Packed = g.Packed && packed(grad)
	c.kernels(g.Plan(c.l.opt.Limits), 3, append([]plan.Value{dq, dk, dv, grad, out, sums}, u.operands...)...)
}

// attended is attention on operands that are computed.
type attended struct {
	*heads
	*emit.Attention
	operands []plan.Value // query, key, value, and the mask if there is one
}

func (c *call) attended() *attended {
	h := geometry(c.Args)
	u := &attended{heads: h, Attention: h.kernel(c.Args)}
	u.TF32 = c.l.opt.TF32
	q, k, v := c.operand("query"), c.operand("key"), c.operand("value")
	u.Query, u.Key, u.Value = h.lie(q, false), h.lie(k, true), h.lie(v, true)
	u.Packed = packed(q, k, v)
	u.operands = []plan.Value{q, k, v}
	if u.Mask != ir.Invalid {
		m, dims := c.operand("attn_mask"), append(slices.Clone(h.lead), u.Queries, u.Keys)
		m = m.As(m.Shape.WithDims(dims...), m.View.Expand(dims))
		u.MaskAt = h.lie(m, false)
		u.operands = append(u.operands, m)
	}
	return u
}

// run emits the kernel. It returns the sums if they are wanted.
func (u *attended) run(c *call, out plan.Value, wanted bool) (sums plan.Value) {
	g := *u.Attention
	g.Out, g.Sums = u.lie(out, false), wanted
	results := []plan.Value{out}
	if wanted {
		sums = c.l.NewValue(ir.MakeShape(ir.F32, append(slices.Clone(u.lead), u.Queries)...))
		results = append(results, sums)
	}
	c.kernels(g.Plan(c.l.opt.Limits), len(results), append(results, u.operands...)...)
	return sums
}
