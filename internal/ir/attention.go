package ir

import "math"

// The ops of attention. They are composites for which backends may have kernels that store no scores.
var (
	opAttention             = declare("scaled_dot_product_attention")
	opAttentionBackward     = declare("_scaled_dot_product_attention_backward")
	opAttentionMaskBackward = declare("_scaled_dot_product_attention_mask_backward")
)

func init() {
	register("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor", Spec{
		Doc:      "softmax(query @ keyᵀ·scale + mask) @ value for query [*, L, E], key [*, S, E] and value [*, S, V]; scale is 1/√E unless given. attn_mask broadcasts to [*, L, S]: bool chooses what takes part, another is added; is_causal lets row i see columns up to i. A row that sees nothing is 0. enable_gqa repeats the heads, dimension -3, of key and value to query's. f16 and bf16 compute in f32. As torch.nn.functional.scaled_dot_product_attention without dropout.",
		Category: Neural, Decompose: attention, VJP: vjpAttention,
	})
	const operands = "(Tensor grad, Tensor out, Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)"
	register("_scaled_dot_product_attention_backward"+operands+" -> (Tensor, Tensor, Tensor)", Spec{
		Doc:      "The gradients of scaled_dot_product_attention with respect to query, key and value. out is its result.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value { return attentionGradients(b, a)[:3] },
	})
	register("_scaled_dot_product_attention_mask_backward"+operands+" -> Tensor", Spec{
		Doc:      "The gradient of scaled_dot_product_attention with respect to a floating attn_mask.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value { return attentionGradients(b, a)[3:] },
	})
}

func attention(b *Builder, a Args) []Value {
	q, k, v := a.Tensor("query"), a.Tensor("key"), a.Tensor("value")
	mask, causal := a.Tensor("attn_mask"), a.Bool("is_causal")
	d := q.DType()
	if !d.IsFloat() || k.DType() != d || v.DType() != d {
		a.Fail(ErrDType, "query, key and value must have one floating dtype, got %v, %v and %v", d, k.DType(), v.DType())
	}
	if q.Rank() < 2 || k.Rank() < 2 || v.Rank() < 2 {
		a.Fail(ErrShape, "query, key and value need at least 2 dimensions")
	}
	if causal && !mask.IsNil() {
		a.Fail(ErrArg, "attn_mask and is_causal exclude each other")
	}
	scale, ok := a.OptFloat("scale")
	if !ok {
		scale = 1 / math.Sqrt(float64(q.Dim(-1)))
	}
	q, k, v = b.widen(q), b.widen(k), b.widen(v)
	if a.Bool("enable_gqa") {
		k, v = repeatHeads(b, a, k, q), repeatHeads(b, a, v, q)
	}
	s := b.MatMul(b.Mul(q, b.Const(scale, q.DType())), b.Transpose(k, -2, -1))
	var p Value
	switch {
	case causal:
		p = b.callNamed("softmax", []any{b.Where(causalMask(b, s), s, b.Const(math.Inf(-1), s.DType())), -1})
	case !mask.IsNil():
		p = maskedSoftmax(b, a, s, mask)
	default:
		p = b.callNamed("softmax", []any{s, -1})
	}
	return []Value{b.Cast(b.MatMul(p, v), d)}
}

// vjpAttention records the gradients as two ops: one for query, key and value, which a kernel computes
// together, and one for the mask. Kernels use out to save a pass over the keys; the decompositions
// ignore it.
func vjpAttention(b *Builder, a Args, out, grad []Value) []Value {
	in := append([]Value{grad[0], out[0]}, a.In...)
	grads := append([]Value{}, b.Emit(opAttentionBackward, a.Attr, in...)...)
	if mask := a.Tensor("attn_mask"); !mask.IsNil() && mask.DType().IsFloat() {
		grads = append(grads, b.Emit(opAttentionMaskBackward, a.Attr, in...)...)
	}
	return grads
}

// attentionGradients differentiates the decomposition: query, key, value and mask.
func attentionGradients(b *Builder, a Args) []Value {
	forward := Args{Spec: opAttention.Spec(), Attr: a.Attr, In: a.In[2:]}
	grads := b.pullBackOf(forward, a.In[:1])
	for i, g := range grads {
		if g.IsNil() && forward.In[i].DType().IsFloat() {
			grads[i] = b.fullLike(forward.In[i], 0)
		}
	}
	return grads
}

// causalMask is true on and below the diagonal of the last two dimensions.
func causalMask(b *Builder, s Value) Value {
	row := b.Reshape(b.Iota(s.Dim(-2), I64), s.Dim(-2), 1)
	return b.ge(row, b.Iota(s.Dim(-1), I64))
}

// maskedSoftmax applies the mask. A row in which every score is -inf would give
// NaN in the result and in the gradients: its scores are replaced by 0 before
// the softmax, and its probabilities after.
func maskedSoftmax(b *Builder, a Args, s, mask Value) Value {
	d := s.DType()
	never, zero := b.Const(math.Inf(-1), d), b.Const(0.0, d)
	before := s.Shape()
	switch md := mask.DType(); {
	case md == Bool:
		s = b.Where(mask, s, never)
	case md.IsFloat():
		s = b.Add(s, b.Cast(mask, d))
	default:
		a.Fail(ErrDType, "attn_mask must be bool or floating, got %v", md)
	}
	if !s.Shape().SameDims(before) {
		a.Fail(ErrShape, "attn_mask %v does not broadcast to the scores %v", mask.Shape(), before)
	}
	if before.Numel() == 0 {
		return s
	}
	dead := b.eq(b.Amax(s, []int{-1}, true), never)
	p := b.callNamed("softmax", []any{b.Where(dead, zero, s), -1})
	return b.Where(dead, zero, p)
}

// repeatHeads repeats each head of key or value, dimension -3, in place until
// there are as many as query has.
func repeatHeads(b *Builder, a Args, x, q Value) Value {
	if q.Rank() < 3 || x.Rank() < 3 {
		a.Fail(ErrShape, "enable_gqa needs a dimension of heads")
	}
	have, want := x.Dim(-3), q.Dim(-3)
	if have == 0 || want%have != 0 {
		a.Fail(ErrShape, "%d heads of query are no multiple of %d heads of key or value", want, have)
	}
	if have == want {
		return x
	}
	dims := x.Shape().Dims()
	n := len(dims)
	wide := append(append([]int{}, dims[:n-2]...), want/have, dims[n-2], dims[n-1])
	dims[n-3] = want
	return b.Reshape(b.Expand(b.Unsqueeze(x, -3), wide...), dims...)
}
