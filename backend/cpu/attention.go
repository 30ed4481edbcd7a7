package cpu

import (
	"fmt"
	"math"

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
	composites[aten.Attention] = true
	lowerings[aten.Attention] = func(c *call) {
		d := c.Operands[0].DType()
		if f, ok := attentions[d]; ok && (len(c.Operands) < 4 || c.Operands[3].DType() == d || c.Operands[3].DType() == ir.Bool) {
			f(c)
			return
		}
		c.attendWide()
	}
}

var attentions = byType[lowerFunc]{
	ir.F32: attend[float32, float32], ir.F64: attend[float64, float64],
	ir.BF16: attend[gemm.BF16, float32], ir.F16: attend[gemm.F16, float32],
}

// attendWide converts operands of other dtypes, and masks of another dtype than
// the rest, to the dtype that kernels compute in.
func (c *call) attendWide() {
	d := loop.ComputeDType(c.Operands[0].DType())
	wide := &call{c.Inner(nil, []ir.Shape{c.Shapes[0].WithDType(d)}), c.l}
	for _, v := range c.Operands {
		if v.DType() != ir.Bool {
			v = c.l.cast(c.Instr, v, d)
		}
		wide.Operands = append(wide.Operands, v)
	}
	attentions.of(d)(wide)
	c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[0], c.Shapes[0].DType()))
}

func attend[T attention.Element, A attention.Float](c *call) {
	out := c.Shapes[0]
	lead := out.Dims()[:out.Rank()-2]
	q, k, v := c.Operands[0], c.Operands[1], c.Operands[2]
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
	run.Batch, run.Heads = batchAndHeads(lead)
	shared := lead
	run.KVHeads = run.Heads
	if c.Bool("enable_gqa") && len(lead) > 0 {
		shared = append([]int(nil), lead...)
		shared[len(shared)-1] = k.Shape.Dim(-3)
		run.KVHeads = k.Shape.Dim(-3)
		if h := v.Shape.Dim(-3); h != run.KVHeads {
			shared, run.KVHeads = lead, run.Heads
			k, v = c.repeated(k, lead), c.repeated(v, lead)
		}
	}
	queries := c.heads(q, lead)
	keys, values := c.heads(k, shared), c.heads(v, shared)
	reads := []operand{{buf: queries.Buf}, {buf: keys.Buf}, {buf: values.Buf}}
	var mask plan.Value
	masked := len(c.Operands) > 3
	if masked {
		mask = c.heads(c.broadcast(c.Operands[3], append(append([]int(nil), lead...), run.Queries, run.Keys)), lead)
		reads = append(reads, operand{buf: mask.Buf})
	}
	bits := masked && mask.DType() == ir.Bool
	dst, swapped := c.resultFor([2]int{3, 2})
	m := c.l.mem
	run.Out = attention.Dense[T](nil, run.Heads, run.Queries, run.ValueDim)
	if swapped { // heads beside each other, as projections take them
		run.Out.Strides[1], run.Out.Strides[2] = run.ValueDim, run.Heads*run.ValueDim
	}
	c.emit(1, 1, []operand{dst}, reads, func(_, _ int) {
		bindHeads(m, &run.Q, queries)
		bindHeads(m, &run.K, keys)
		bindHeads(m, &run.V, values)
		switch {
		case bits:
			bindHeads(m, &run.Keep, mask)
		case masked:
			bindHeads(m, &run.Mask, mask)
		}
		run.Out.Data = elements[T](m, dst)
		run.Run()
		run.Q.Data, run.K.Data, run.V.Data, run.Out.Data, run.Mask.Data, run.Keep.Data = nil, nil, nil, nil, nil, nil
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
