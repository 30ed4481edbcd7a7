package nn

import (
	"slices"

	"github.com/loris-ml/loris"
)

// EmbeddingBag sums, averages or takes the largest of rows of a table, as
// torch.nn.EmbeddingBag.
type EmbeddingBag struct {
	Base
	Weight     *loris.Variable // [n, dim]
	mode       string
	paddingIdx int
	lastOffset bool
}

// NewEmbeddingBag returns a table of n vectors of dim elements from the standard normal
// distribution. Options: With, BagMode, IncludeLastOffset, PaddingIdx, whose row counts for
// nothing, InitWeight.
func NewEmbeddingBag(n, dim int, opts ...Option) *EmbeddingBag {
	const name = "EmbeddingBag"
	positive(name, n, dim)
	c := newConfig(name, opts, "BagMode", "IncludeLastOffset", "PaddingIdx", "InitWeight")
	if !slices.Contains([]string{"sum", "mean", "max"}, c.bag) {
		panic(misuse(name, "BagMode is %q, must be sum, mean or max", c.bag))
	}
	l := &EmbeddingBag{mode: c.bag, paddingIdx: c.paddingIdx, lastOffset: c.lastOffset}
	l.Weight = l.Param("weight", c.newTable(name, n, dim))
	return l
}

// Forward maps indices [bags, each], i64 or i32, to [bags, dim]. An index out of range is an
// error when the graph runs.
func (l *EmbeddingBag) Forward(x *loris.Tensor) *loris.Tensor { return l.Bags(x, nil, nil) }

// Bags is Forward for indices x [bags, each] or, with the offsets i64[bags] at which bags
// begin, [n]. perSample is nil or scales each index's row, for the mode sum.
func (l *EmbeddingBag) Bags(x, offsets, perSample *loris.Tensor) *loris.Tensor {
	opts := []loris.EmbeddingBagOption{loris.BagMode(l.mode), loris.IncludeLastOffset(l.lastOffset && offsets != nil)}
	if offsets != nil {
		opts = append(opts, loris.Offsets(offsets))
	}
	if perSample != nil {
		opts = append(opts, loris.PerSampleWeights(perSample))
	}
	if l.paddingIdx >= 0 {
		opts = append(opts, loris.PaddingIdx(l.paddingIdx))
	}
	return loris.EmbeddingBag(x, value(l.Weight, x), opts...)
}
