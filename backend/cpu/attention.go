package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/attention"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/loop"
)

// composites are the composite ops that have kernels of their own, whose
// lowerings check the shapes of their results themselves.
var composites = map[ir.Op]bool{}

func init() {
	composites[aten.Attention], composites[aten.AttentionBackward], composites[aten.AttentionMaskBackward] = true, true, true
	lowerings[aten.Attention] = func(c *call) { c.attention(attentions) }
	lowerings[aten.AttentionBackward] = func(c *call) { c.attention(attentionGradients) }
	lowerings[aten.AttentionMaskBackward] = func(c *call) { c.attention(maskGradients) }
}

var attentions = byType[lowerFunc]{
	ir.F32: attend[float32, float32], ir.F64: attend[float64, float64],
	ir.BF16: attend[gemm.BF16, float32], ir.F16: attend[gemm.F16, float32],
}

// attention lowers attention or its gradients by the kernels of a dtype, or converts operands of other
// dtypes, and masks of another dtype than the rest, to the dtype that kernels compute in. Gradients that
// are summed over what operands are repeated for are summed in that, too.
func (c *call) attention(kernels byType[lowerFunc]) {
	d := c.Operands[0].DType()
	mask, masked := c.Operand("attn_mask")
	if f, ok := kernels[d]; ok && (!masked || mask.DType() == d || mask.DType() == ir.Bool) && (c.Instr.Op == aten.Attention || !c.repeatsHeads()) {
		f(c)
		return
	}
	d = loop.ComputeDType(d)
	wide := &call{c.Inner(nil, nil), c.l}
	for _, v := range c.Operands {
		if v.DType() != ir.Bool {
			v = c.l.cast(c.Instr, v, d)
		}
		wide.Operands = append(wide.Operands, v)
	}
	for _, s := range c.Shapes {
		wide.Shapes = append(wide.Shapes, s.WithDType(d))
	}
	kernels.of(d)(wide)
	for i, s := range c.Shapes {
		c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[i], s.DType()))
	}
}

func attend[T attention.Element, A attention.Float](c *call) {
	u := attended[T, A](c, c.Operands, c.Shapes[0])
	dst, swapped := c.resultFor([2]int{3, 2})
	u.call.Out = attention.Dense[T](nil, u.call.Heads, u.call.Queries, u.call.ValueDim)
	if swapped { // heads beside each other, as projections take them
		u.call.Out.Strides[1], u.call.Out.Strides[2] = u.call.ValueDim, u.call.Heads*u.call.ValueDim
	}
	var sums []operand
	if c.meetsGradient() {
		sums = append(sums, u.newSums())
		c.l.keepSums(c.Instr, sums[0])
	}
	u.emit(append([]operand{dst}, sums...), func(m *memory) {
		u.call.Out.Data = elements[T](m, dst)
		if len(sums) > 0 {
			u.call.LogSumExp = elements[A](m, sums[0])
		}
		u.call.Run()
	})
}

// attentionRun is a run of attention on operands that are computed.
type attentionRun[T attention.Element, A attention.Float] struct {
	c            *call
	call         *attention.Call[T, A]
	lead, shared []int // the dimensions before the last two, of queries and of keys and values
	// Four dimensions each. The mask chooses what takes part if its dtype is bool.
	queries, keys, values, mask plan.Value
	masked                      bool
}

// attended returns a run on query, key, value and perhaps a mask, for a result of the given shape.
func attended[T attention.Element, A attention.Float](c *call, operands []plan.Value, out ir.Shape) *attentionRun[T, A] {
	q, k, v := operands[0], operands[1], operands[2]
	run := &attention.Call[T, A]{
		Queries: q.Shape.Dim(-2), Keys: k.Shape.Dim(-2), Dim: q.Shape.Dim(-1), ValueDim: v.Shape.Dim(-1), Causal: c.Bool("is_causal"),
		Limiter: c.l.limiter, Workers: c.l.workers,
	}
	if k.Shape.Dim(-1) != run.Dim || v.Shape.Dim(-2) != run.Keys || out.Dim(-2) != run.Queries || out.Dim(-1) != run.ValueDim {
		panic(fmt.Errorf("%w: attention of %v, %v and %v to %v", ir.ErrShape, q.Shape, k.Shape, v.Shape, out))
	}
	scale, ok := c.OptFloat("scale")
	if !ok {
		scale = 1 / math.Sqrt(float64(run.Dim))
	}
	run.Scale = scale
	u := &attentionRun[T, A]{c: c, call: run, lead: out.Dims()[:out.Rank()-2]}
	run.Batch, run.Heads = batchAndHeads(u.lead)
	u.shared, run.KVHeads = u.lead, run.Heads
	if c.Bool("enable_gqa") && len(u.lead) > 0 {
		if h := k.Shape.Dim(-3); v.Shape.Dim(-3) == h {
			u.shared, run.KVHeads = slices.Clone(u.lead), h
			u.shared[len(u.shared)-1] = h
		} else {
			k, v = c.repeated(k, u.lead), c.repeated(v, u.lead)
		}
	}
	u.queries, u.keys, u.values = c.heads(q, u.lead), c.heads(k, u.shared), c.heads(v, u.shared)
	if u.masked = len(operands) > 3; u.masked {
		u.mask = c.heads(c.broadcast(operands[3], append(slices.Clone(u.lead), run.Queries, run.Keys)), u.lead)
	}
	return u
}

// emit adds a step that binds the operands and runs f.
func (u *attentionRun[T, A]) emit(writes []operand, f func(m *memory), more ...operand) {
	reads := append(more, operand{buf: u.queries.Buf}, operand{buf: u.keys.Buf}, operand{buf: u.values.Buf})
	if u.masked {
		reads = append(reads, operand{buf: u.mask.Buf})
	}
	m, run := u.c.l.mem, u.call
	u.c.emit(1, 1, writes, reads, func(_, _ int) {
		bindHeads(m, &run.Q, u.queries)
		bindHeads(m, &run.K, u.keys)
		bindHeads(m, &run.V, u.values)
		switch {
		case u.masked && u.mask.DType() == ir.Bool:
			bindHeads(m, &run.Keep, u.mask)
		case u.masked:
			bindHeads(m, &run.Mask, u.mask)
		}
		f(m)
		run.Q.Data, run.K.Data, run.V.Data, run.Out.Data, run.Mask.Data, run.Keep.Data, run.LogSumExp = nil, nil, nil, nil, nil, nil, nil
	})
}

// bindHeads binds an operand of attention to its memory.
func bindHeads[T any](m *memory, t *attention.Tensor[T], v plan.Value) {
	t.Data = as[T](m.bufs[v.Buf])[v.View.Offset:]
	t.Strides = [4]int(v.View.Strides[:4])
}

// batchAndHeads merges leading dimensions to two.
func batchAndHeads(lead []int) (batch, heads int) {
	batch, heads = 1, 1
	for i, n := range lead {
		if i == len(lead)-1 {
			heads = n
		} else {
			batch *= n
		}
	}
	return batch, heads
}

// heads broadcasts the leading dimensions of a value and makes them two: four
// dimensions in all, none of which goes backwards.
func (c *call) heads(v plan.Value, lead []int) plan.Value {
	rows, cols := v.Shape.Dim(-2), v.Shape.Dim(-1)
	v = c.upward(c.broadcast(v, append(append([]int(nil), lead...), rows, cols)))
	batch, heads := batchAndHeads(lead)
	return c.Reshape(v, v.Shape.WithDims(batch, heads, rows, cols))
}

// broadcast repeats a value to the given dimensions.
func (c *call) broadcast(v plan.Value, dims []int) plan.Value {
	view := align(v.View, len(dims))
	for d, n := range dims {
		if view.Dims[d] != n {
			if view.Dims[d] != 1 {
				panic(fmt.Errorf("%w: %v does not broadcast to %v", ir.ErrShape, v.Shape, dims))
			}
			view.Dims[d], view.Strides[d] = n, 0
		}
	}
	return v.As(v.Shape.WithDims(dims...), view)
}

// repeated repeats the heads of keys or values to the last of lead.
func (c *call) repeated(v plan.Value, lead []int) plan.Value {
	dims := v.Shape.Dims()
	r := len(dims)
	have, want := dims[r-3], lead[len(lead)-1]
	if have == want {
		return v
	}
	split := append(append([]int(nil), dims[:r-2]...), 1, dims[r-2], dims[r-1])
	wide := append(append([]int(nil), dims[:r-2]...), want/max(have, 1), dims[r-2], dims[r-1])
	dims[r-3] = want
	return c.Reshape(c.broadcast(c.Reshape(v, v.Shape.WithDims(split...)), wide), v.Shape.WithDims(dims...))
}
