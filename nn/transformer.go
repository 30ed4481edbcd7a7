package nn

import (
	"github.com/loris-ml/loris"
)

// TransformerEncoderLayer is self-attention and a perceptron of two layers, each added to what it is
// given and normalised, as torch.nn.TransformerEncoderLayer with batch_first. With Causal it is the
// block of a decoder that has no memory, such as GPT's.
type TransformerEncoderLayer struct {
	Base
	SelfAttn         *MultiheadAttention
	Linear1, Linear2 *Linear
	Norm1, Norm2     *LayerNorm

	activation func(x *loris.Tensor) *loris.Tensor
	normFirst  bool
	dropout    float64
}

// NewTransformerEncoderLayer returns a layer of dim features, heads of attention and hidden features
// within the perceptron. Options: With, NormFirst, Activation, Eps of the norms, NoBias, DropoutP (of the
// attention's weights, within the perceptron, and of what is added) and those of the attention: KVHeads,
// Causal, Rotary.
func NewTransformerEncoderLayer(dim, heads, hidden int, opts ...Option) *TransformerEncoderLayer {
	const name = "TransformerEncoderLayer"
	c := newConfig(name, opts, "NormFirst", "Activation", "Eps", "NoBias", "DropoutP", "KVHeads", "Causal", "Rotary")
	c.checkDropout(name)
	positive(name, dim, heads, hidden)
	attention, norm, linear := []Option{DropoutP(c.dropout), Rotary(c.rotary)}, []Option{}, []Option{}
	for _, o := range opts {
		switch o.name {
		case "With", "NoBias":
			attention, norm, linear = append(attention, o), append(norm, o), append(linear, o)
		case "KVHeads", "Causal":
			attention = append(attention, o)
		case "Eps":
			norm = append(norm, o)
		}
	}
	l := &TransformerEncoderLayer{
		SelfAttn: NewMultiheadAttention(dim, heads, attention...),
		Linear1:  NewLinear(dim, hidden, linear...),
		Linear2:  NewLinear(hidden, dim, linear...),
		Norm1:    NewLayerNorm([]int{dim}, norm...),
		Norm2:    NewLayerNorm([]int{dim}, norm...),

		activation: c.activation, normFirst: c.normFirst, dropout: c.dropout,
	}
	if l.activation == nil {
		l.activation = ReLU
	}
	l.Add("self_attn", l.SelfAttn)
	l.Add("linear1", l.Linear1)
	l.Add("linear2", l.Linear2)
	l.Add("norm1", l.Norm1)
	l.Add("norm2", l.Norm2)
	return l
}

// Forward maps x [*, L, dim] to the same shape.
func (l *TransformerEncoderLayer) Forward(x *loris.Tensor) *loris.Tensor {
	return l.apply(x, l.SelfAttn.Forward)
}

// Decode is Forward of the next tokens x [batch, L, dim] of sequences that the cache holds, which
// SelfAttn.NewKVCache makes. Each attends to itself and to those before, as MultiheadAttention.Decode says.
func (l *TransformerEncoderLayer) Decode(x *loris.Tensor, c *KVCache) *loris.Tensor {
	return l.apply(x, func(x *loris.Tensor) *loris.Tensor { return l.SelfAttn.Decode(x, c) })
}

func (l *TransformerEncoderLayer) apply(x *loris.Tensor, attend func(*loris.Tensor) *loris.Tensor) *loris.Tensor {
	perceptron := func(x *loris.Tensor) *loris.Tensor {
		return l.drop(l.Linear2.Forward(l.drop(l.activation(l.Linear1.Forward(x)))))
	}
	if l.normFirst {
		x = x.Add(l.drop(attend(l.Norm1.Forward(x))))
		return x.Add(perceptron(l.Norm2.Forward(x)))
	}
	x = l.Norm1.Forward(x.Add(l.drop(attend(x))))
	return l.Norm2.Forward(x.Add(perceptron(x)))
}

func (l *TransformerEncoderLayer) drop(x *loris.Tensor) *loris.Tensor {
	if l.dropout == 0 || !l.Training() {
		return x
	}
	return x.Dropout(l.dropout)
}
