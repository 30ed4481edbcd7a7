package onnx

import (
	"math"

	"github.com/loris-ml/loris"
)

// attentionRows are the ops of transformers, of opset 23 on.
var attentionRows = map[string]*row{
	"Attention":       many(3, 7, attention),
	"RotaryEmbedding": one(3, 4, rotaryEmbedding),
}

// heads splits the last of three dimensions into heads: [N, T, heads·E] becomes [N, heads, T, E].
func (c *call) heads(t *loris.Tensor, name string) *loris.Tensor {
	switch n := c.int(name, 0); {
	case t.Rank() == 4:
		return t
	case t.Rank() != 3 || n < 1 || t.Dim(2)%n != 0:
		c.fail("%v does not have %d heads (%s)", t.Shape(), n, name)
		return nil
	default:
		return t.Reshape(t.Dim(0), t.Dim(1), n, t.Dim(2)/n).Transpose(1, 2)
	}
}

func attention(c *call, in []*value) []*value {
	e := in[0].elem
	q := c.heads(c.tensor(in[0]), "q_num_heads")
	k, v := c.heads(c.tensor(in[1]), "kv_num_heads"), c.heads(c.tensor(in[2]), "kv_num_heads")
	past := 0
	if p := c.maybe(opt(in, 4)); p != nil {
		past = p.Dim(2)
		k = loris.Cat([]*loris.Tensor{p, k}, loris.Dim(2))
	}
	if p := c.maybe(opt(in, 5)); p != nil {
		v = loris.Cat([]*loris.Tensor{p, v}, loris.Dim(2))
	}
	outs := []*value{nil, out(in[1].elem, k), out(in[2].elem, v), nil}
	scale := c.float("scale", 1/math.Sqrt(float64(max(q.Dim(3), 1))))
	groups := q.Dim(1) / max(k.Dim(1), 1)
	if k.Dim(1) == 0 || q.Dim(1)%k.Dim(1) != 0 {
		c.fail("%d heads of queries cannot share %d of keys", q.Dim(1), k.Dim(1))
	}
	bias := c.attentionBias(q, k, opt(in, 3), opt(in, 6), past)
	var y *loris.Tensor
	if c.float("softcap", 0) == 0 && !c.node.wants(3) && !c.has("softmax_precision") {
		opts := []loris.ScaledDotProductAttentionOption{loris.Scale(scale), loris.EnableGQA(groups > 1)}
		if bias != nil {
			opts = append(opts, loris.AttnMask(bias))
		}
		y = loris.ScaledDotProductAttention(q, k, v, opts...)
	} else {
		if groups > 1 {
			k, v = k.RepeatInterleave(groups, loris.Dim(1)), v.RepeatInterleave(groups, loris.Dim(1))
		}
		var scores *loris.Tensor
		y, scores = c.plainAttention(q, k, v, bias, scale)
		outs[3] = out(e, scores)
	}
	if in[0].rank() == 3 {
		y = y.Transpose(1, 2).Reshape(q.Dim(0), q.Dim(2), y.Dim(1)*y.Dim(3))
	}
	outs[0] = out(e, y.Cast(q.DType()))
	return outs
}

// attentionBias is what is added to the scores: the mask, the causal order, and which keys are
// padding. It is nil where there is nothing to add.
func (c *call) attentionBias(q, k *loris.Tensor, mask, lengths *value, past int) *loris.Tensor {
	rows, cols := q.Dim(2), k.Dim(2)
	m := c.run.make
	low := math.Inf(-1)
	zero := m.With(loris.As(q.DType())).Zeros(rows, cols)
	var bias *loris.Tensor
	if mask != nil && !mask.empty {
		t := c.tensor(mask)
		if more := cols - t.Dim(-1); more > 0 {
			fill := any(low)
			if mask.elem == tBool {
				t, fill = t.Cast(loris.U8), 0
			}
			t = t.ConstantPadNd([]int{0, more}, fill)
		}
		if mask.elem == tBool {
			t = loris.Where(t.Ne(0), zero, zero.FullLike(low))
		}
		bias = t
	}
	hide := func(seen *loris.Tensor) {
		b := loris.Where(seen, zero, zero.FullLike(low))
		if bias != nil {
			b = bias.Add(b)
		}
		bias = b
	}
	key := m.Arange(0, cols, 1)
	if c.bool("is_causal", false) {
		hide(key.Le(m.Arange(0, rows, 1).Add(past).Reshape(rows, 1)))
	}
	if lengths != nil && !lengths.empty {
		hide(key.Lt(c.tensor(lengths).Cast(loris.I64).Reshape(lengths.numel(), 1, 1, 1)))
	}
	return bias
}

// plainAttention is attention whose scores are capped or returned, in the state that the node asks
// for.
func (c *call) plainAttention(q, k, v, bias *loris.Tensor, scale float64) (y, scores *loris.Tensor) {
	root := math.Sqrt(scale)
	s := q.Mul(root).MatMul(k.Mul(root).Transpose(2, 3))
	mode := c.int("qk_matmul_output_mode", 0)
	scores = s
	if bias != nil {
		s = s.Add(bias)
	}
	if mode == 1 {
		scores = s
	}
	if limit := c.float("softcap", 0); limit > 0 {
		s = s.Div(limit).Tanh().Mul(limit)
	}
	if mode == 2 {
		scores = s
	}
	if c.has("softmax_precision") {
		s = s.Cast(c.elemAttr("softmax_precision", tFloat).dtype())
	}
	s = s.Softmax(-1)
	if mode == 3 {
		scores = s
	}
	return s.Cast(v.DType()).MatMul(v), scores.Cast(q.DType())
}

func rotaryEmbedding(c *call, in []*value) *value {
	x := c.tensor(in[0])
	four := x.Rank() == 4
	if four {
		x = x.Transpose(1, 2)
	} else {
		n := c.int("num_heads", 0)
		if x.Rank() != 3 || n < 1 || x.Dim(2)%n != 0 {
			c.fail("%v does not have %d heads", in[0], n)
		}
		x = x.Reshape(x.Dim(0), x.Dim(1), n, x.Dim(2)/n)
	}
	size := c.int("rotary_embedding_dim", 0)
	if size == 0 {
		size = x.Dim(3)
	}
	if size < 2 || size%2 != 0 || size > x.Dim(3) {
		c.fail("%d of %d features are to be rotated", size, x.Dim(3))
	}
	cos, sin := c.tensor(in[1]), c.tensor(in[2])
	if p := opt(in, 3); p != nil && !p.empty {
		if in[1].rank() != 2 {
			c.fail("positions are given, and the cache is %v", in[1])
		}
		at := c.index(p, in[1].dims[0]).Reshape(p.numel())
		pick := func(t *loris.Tensor) *loris.Tensor {
			return t.IndexSelect(0, at).Reshape(append(append([]int{}, p.dims...), t.Dim(1))...)
		}
		cos, sin = pick(cos), pick(sin)
	}
	cos, sin = cos.Unsqueeze(2), sin.Unsqueeze(2)
	turned, rest := x.Narrow(3, 0, size), x.Narrow(3, size, x.Dim(3)-size)
	var y *loris.Tensor
	if c.bool("interleaved", false) {
		pairs := turned.Unflatten(3, size/2, 2)
		a, b := pairs.Select(4, 0), pairs.Select(4, 1)
		y = loris.Stack([]*loris.Tensor{a.Mul(cos).Sub(b.Mul(sin)), a.Mul(sin).Add(b.Mul(cos))}, loris.Dim(4)).Flatten(loris.StartDim(3))
	} else {
		a, b := turned.Narrow(3, 0, size/2), turned.Narrow(3, size/2, size/2)
		y = loris.Cat([]*loris.Tensor{a.Mul(cos).Sub(b.Mul(sin)), a.Mul(sin).Add(b.Mul(cos))}, loris.Dim(3))
	}
	if rest.Dim(3) > 0 {
		y = loris.Cat([]*loris.Tensor{y, rest}, loris.Dim(3))
	}
	if four {
		return out(in[0].elem, y.Transpose(1, 2))
	}
	return out(in[0].elem, y.Reshape(in[0].dims...))
}
