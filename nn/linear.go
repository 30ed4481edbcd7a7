package nn

import (
	"github.com/loris-ml/loris"
)

// Linear is x·weightᵀ + bias, as torch.nn.Linear.
type Linear struct {
	Base
	Weight *loris.Variable // [out, in]
	Bias   *loris.Variable // [out], nil without one
}

// NewLinear returns a linear layer from in to out features, with weight and bias
// uniform in ±1/√in. Options: With, NoBias, InitWeight.
func NewLinear(in, out int, opts ...Option) *Linear {
	positive("Linear", in, out)
	return newLinear(newConfig("Linear", opts, "NoBias", "InitWeight"), in, out)
}

func newLinear(c *config, in, out int) *Linear {
	l := &Linear{}
	l.Weight = l.Param("weight", c.newWeight(defaultWeight, out, in))
	if !c.noBias {
		l.Bias = l.Param("bias", c.newVariable(biasFor(in), out))
	}
	return l
}

// Forward maps x [*, in] to [*, out].
func (l *Linear) Forward(x *loris.Tensor) *loris.Tensor {
	return x.Linear(value(l.Weight, x), loris.Bias(value(l.Bias, x)))
}

// Embedding is a table of vectors, as torch.nn.Embedding.
type Embedding struct {
	Base
	Weight     *loris.Variable // [n, dim]
	paddingIdx int
}

// NewEmbedding returns a table of n vectors of dim elements from the standard
// normal distribution. Options: With, PaddingIdx, InitWeight.
func NewEmbedding(n, dim int, opts ...Option) *Embedding {
	positive("Embedding", n, dim)
	c := newConfig("Embedding", opts, "PaddingIdx", "InitWeight")
	e := &Embedding{paddingIdx: c.paddingIdx}
	e.Weight = e.Param("weight", c.newTable("Embedding", n, dim))
	return e
}

// newTable makes the rows of an embedding.
func (c *config) newTable(name string, n, dim int) *loris.Variable {
	if c.paddingIdx >= n {
		panic(misuse(name, "PaddingIdx %d is not among %d rows", c.paddingIdx, n))
	}
	init := Init(Normal(0, 1))
	if c.weight != nil {
		init = c.weight
	}
	if p := c.paddingIdx; p >= 0 {
		init = zeroRow(init, p)
	}
	return c.newVariable(init, n, dim)
}

// zeroRow is init with row p set to zero.
func zeroRow(init Init, p int) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor {
		rows := m.With(loris.As(loris.I64)).Arange(0, dims[0], 1).Unsqueeze(1)
		return init(m, dims...).Mul(rows.Ne(p))
	}
}

// Forward maps indices x [*], i64 or i32, to the rows [*, dim]. An index out of range is
// an error when the graph runs.
func (e *Embedding) Forward(x *loris.Tensor) *loris.Tensor {
	return loris.Embedding(value(e.Weight, x), x, loris.PaddingIdx(e.paddingIdx))
}
