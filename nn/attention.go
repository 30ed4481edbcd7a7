package nn

import (
	"math"

	"github.com/loris-ml/loris"
)

// MultiheadAttention projects queries, keys and values, lets each head of the
// queries attend to the keys, and projects the result, as
// torch.nn.MultiheadAttention with batch_first, or, with
// KVHeads, with groups of query heads that share a head of key and value.
type MultiheadAttention struct {
	Base
	// InProjWeight stacks the projections of query, key and value:
	// [dim + 2·kv·size, dim] with kv heads of size features. It is nil if key or
	// value has features of its own (KVDims), in which case QProjWeight
	// [dim, dim], KProjWeight and VProjWeight are separate.
	InProjWeight                          *loris.Variable
	QProjWeight, KProjWeight, VProjWeight *loris.Variable
	// InProjBias has a number for each row of the projections; nil without one.
	InProjBias *loris.Variable
	// OutProj maps the heads' results to the output.
	OutProj *Linear

	heads, kvHeads, size int
	causal               bool
	dropout, rotary      float64
}

// NewMultiheadAttention returns an attention of dim features in the given number
// of heads. The projections of the inputs are Xavier uniform, that of the output
// is a Linear's, biases are 0. Options: With, NoBias, KVHeads, KVDims, Causal,
// DropoutP of the attention's weights in training, Rotary, InitWeight, which is for the
// projections of the inputs.
func NewMultiheadAttention(dim, heads int, opts ...Option) *MultiheadAttention {
	const name = "MultiheadAttention"
	c := newConfig(name, opts, "NoBias", "KVHeads", "KVDims", "Causal", "DropoutP", "Rotary", "InitWeight")
	c.checkDropout(name)
	positive(name, dim, heads)
	l := &MultiheadAttention{heads: heads, kvHeads: heads, causal: c.causal, dropout: c.dropout, rotary: c.rotary}
	if c.kvHeads != 0 {
		l.kvHeads = c.kvHeads
	}
	positive(name, l.kvHeads)
	if dim%heads != 0 || heads%l.kvHeads != 0 {
		panic(misuse(name, "%d features do not make %d heads in %d groups", dim, heads, l.kvHeads))
	}
	l.size = dim / heads
	if c.rotary != 0 && (!(c.rotary > 0) || l.size%2 != 0) {
		panic(misuse(name, "Rotary %v of heads of %d features: it must be positive and they even", c.rotary, l.size))
	}
	l.projections(c, dim)
	l.OutProj = newLinear(&config{maker: c.maker, noBias: true}, dim, dim)
	if !c.noBias {
		l.OutProj.Bias = l.OutProj.Param("bias", c.newVariable(Zeros, dim))
	}
	l.Add("out_proj", l.OutProj)
	return l
}

// projections makes the variables that project the inputs.
func (l *MultiheadAttention) projections(c *config, dim int) {
	kv := l.kvHeads * l.size
	xavier := XavierUniform(1)
	if c.kDim == 0 && c.vDim == 0 || c.kDim == dim && c.vDim == dim {
		l.InProjWeight = l.Param("in_proj_weight", c.newWeight(xavier, dim+2*kv, dim))
	} else {
		positive("MultiheadAttention", c.kDim, c.vDim)
		l.QProjWeight = l.Param("q_proj_weight", c.newWeight(xavier, dim, dim))
		l.KProjWeight = l.Param("k_proj_weight", c.newWeight(xavier, kv, c.kDim))
		l.VProjWeight = l.Param("v_proj_weight", c.newWeight(xavier, kv, c.vDim))
	}
	if !c.noBias {
		l.InProjBias = l.Param("in_proj_bias", c.newVariable(Zeros, dim+2*kv))
	}
}

// Forward is the self-attention of x [*, L, dim]. With KVDims, which leaves no
// self-attention, it panics with a *loris.OpError.
func (l *MultiheadAttention) Forward(x *loris.Tensor) *loris.Tensor { return l.Attend(x, x, x, nil) }

// Attend maps query [*, L, dim], key [*, S, kdim] and value [*, S, vdim] to [*, L, dim].
// The mask is nil or broadcasts to [*, heads, L, S]; it is bool, true for keys that take
// part, or floating and added to the scores. With Causal it must be nil. The result of a
// query without keys is the output's bias.
func (l *MultiheadAttention) Attend(query, key, value, mask *loris.Tensor) *loris.Tensor {
	q, k, v := l.project(query, key, value)
	q, k, v = l.split(q, l.heads), l.split(k, l.kvHeads), l.split(v, l.kvHeads)
	if l.rotary != 0 {
		q, k = rotate(q, arange(q, q.Dim(-2)), l.rotary), rotate(k, arange(k, k.Dim(-2)), l.rotary)
	}
	return l.merge(l.weigh(q, k, v, mask, l.causal))
}

// weigh lets each head of q attend to its head of k and v.
func (l *MultiheadAttention) weigh(q, k, v, mask *loris.Tensor, causal bool) *loris.Tensor {
	if l.dropout != 0 && l.Training() {
		return l.weighDropping(q, k, v, mask, causal)
	}
	opts := []loris.ScaledDotProductAttentionOption{loris.IsCausal(causal), loris.EnableGQA(l.kvHeads != l.heads)}
	if mask != nil {
		opts = append(opts, loris.AttnMask(mask))
	}
	return loris.ScaledDotProductAttention(q, k, v, opts...)
}

// weighDropping is weigh with dropout of the weights.
func (l *MultiheadAttention) weighDropping(q, k, v, mask *loris.Tensor, causal bool) *loris.Tensor {
	if n := l.heads / l.kvHeads; n > 1 {
		k, v = k.RepeatInterleave(n, loris.Dim(-3)), v.RepeatInterleave(n, loris.Dim(-3))
	}
	if causal {
		if mask != nil {
			panic(misuse("MultiheadAttention", "Causal and a mask are given"))
		}
		mask = arange(q, q.Dim(-2)).Unsqueeze(1).Ge(arange(q, k.Dim(-2)))
	}
	scores := q.MatMul(k.Transpose(-1, -2)).Mul(1 / math.Sqrt(float64(l.size)))
	if mask != nil && mask.DType() == loris.Bool {
		scores = loris.Where(mask, scores, math.Inf(-1))
	} else if mask != nil {
		scores = scores.Add(mask)
	}
	// A query without keys has weights 0, not NaN.
	none := scores.Amax(loris.Dim(-1), loris.Keepdim(true)).Eq(math.Inf(-1))
	w := loris.Where(none, 0.0, scores).Softmax(-1)
	return loris.Where(none, 0.0, w).Dropout(l.dropout).MatMul(v)
}

// merge joins the heads of y [*, heads, L, size] and projects them.
func (l *MultiheadAttention) merge(y *loris.Tensor) *loris.Tensor {
	y = y.Transpose(-3, -2)
	dims := y.Dims()
	n := len(dims)
	return l.OutProj.Forward(y.Reshape(append(dims[:n-2], dims[n-2]*dims[n-1])...))
}

// split turns [*, L, heads·size] into [*, heads, L, size].
func (l *MultiheadAttention) split(x *loris.Tensor, heads int) *loris.Tensor {
	return x.Unflatten(-1, heads, l.size).Transpose(-3, -2)
}

// project applies the projections of the inputs, in one product if all are the
// same tensor.
func (l *MultiheadAttention) project(query, key, val *loris.Tensor) (q, k, v *loris.Tensor) {
	sizes := []int{l.heads * l.size, l.kvHeads * l.size, l.kvHeads * l.size}
	bias := value(l.InProjBias, query)
	if l.InProjWeight != nil && query == key && key == val {
		parts := query.Linear(value(l.InProjWeight, query), loris.Bias(bias)).SplitWithSizes(sizes, loris.Dim(-1))
		return parts[0], parts[1], parts[2]
	}
	var w []*loris.Tensor
	if l.InProjWeight != nil {
		w = value(l.InProjWeight, query).SplitWithSizes(sizes, loris.Dim(0))
	} else {
		w = []*loris.Tensor{value(l.QProjWeight, query), value(l.KProjWeight, query), value(l.VProjWeight, query)}
	}
	b := make([]*loris.Tensor, 3)
	if bias != nil {
		b = bias.SplitWithSizes(sizes, loris.Dim(0))
	}
	return query.Linear(w[0], loris.Bias(b[0])), key.Linear(w[1], loris.Bias(b[1])), val.Linear(w[2], loris.Bias(b[2]))
}
