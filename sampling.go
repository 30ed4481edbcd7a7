package loris

import (
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// Multinomial draws n of the last dimension's indices for each row of probs [*, classes], floating
// and not negative, with probability proportional to the elements, and returns them as i64[*, n].
// Without replacement an index is drawn once at most, and n is at most the number of classes; where
// fewer elements are positive, what is drawn after them is arbitrary, as it is in rows without
// any. As torch.multinomial.
func Multinomial(probs *Tensor, n int, replacement bool) *Tensor {
	const op = "multinomial"
	probs.session(op)
	if probs.Rank() == 0 || !probs.DType().IsFloat() || n < 1 || !replacement && n > probs.Dim(-1) || probs.Dim(-1) < 1 {
		panic(ir.NewOpError(op, ErrArg, nil, "%d samples, replacement %v, of %v, which must be floating [*, classes]", n, replacement, probs.Shape()))
	}
	m := probs.like()
	if m.dtype != F64 {
		m.dtype = F32
	}
	probs = probs.Cast(m.dtype)
	if !replacement {
		// The first of exponential clocks, which go at the rates of the elements.
		clocks := m.Rand(probs.Dims()...).Neg().Log1p().Neg().Maximum(0x1p-126)
		_, indices := probs.Div(clocks).Topk(n)
		return indices
	}
	dims := probs.Dims()
	dims[len(dims)-1] = n
	sums := probs.Cumsum(-1)
	total := sums.Narrow(-1, probs.Dim(-1)-1, 1)
	places := Searchsorted(sums, m.Rand(dims...).Mul(total), SearchRight(true))
	return places.Minimum(probs.Dim(-1) - 1) // a product may round up to the total
}

// CategoricalOption changes the distribution that Categorical draws from.
type CategoricalOption func(*categorical)

type categorical struct {
	temperature any
	topK        int
	topP        any
}

// Temperature divides the logits by v, a number or a *Tensor: below 1 likely classes become likelier.
// The number 0 takes the likeliest. Another number never recompiles.
func Temperature(v any) CategoricalOption { return func(c *categorical) { c.temperature = v } }

// TopK draws from the k likeliest classes only.
func TopK(k int) CategoricalOption { return func(c *categorical) { c.topK = k } }

// TopP draws from the fewest likeliest classes only whose probabilities, after TopK, sum to p, a number
// or a *Tensor, or more. Another number never recompiles.
func TopP(p any) CategoricalOption { return func(c *categorical) { c.topP = p } }

// Categorical draws a class for each row of logits [*, classes], floating, with the probabilities of
// their softmax, and returns it as i64[*]. It records random numbers of the session's seed.
func Categorical(logits *Tensor, opts ...CategoricalOption) *Tensor {
	const op = "categorical"
	logits.session(op)
	var c categorical
	for _, o := range opts {
		o(&c)
	}
	if logits.Rank() == 0 || !logits.DType().IsFloat() || c.topK < 0 || logits.Dim(-1) < 1 {
		panic(ir.NewOpError(op, ErrArg, nil, "TopK %d of logits %v, which must be floating [*, classes]", c.topK, logits.Shape()))
	}
	if logits.DType() != F64 {
		logits = logits.Cast(F32)
	}
	if c.temperature == 0 || c.temperature == 0.0 {
		return logits.Argmax(Dim(-1))
	}
	if c.temperature != nil {
		logits = logits.Div(c.temperature)
	}
	var classes *Tensor // nil: all in order
	switch {
	case c.topK > 0 && c.topK < logits.Dim(-1):
		logits, classes = logits.Topk(c.topK)
	case c.topP != nil:
		logits, classes = logits.Sort(Descending(true))
	}
	if c.topP != nil {
		probs := logits.Softmax(-1)
		before := probs.Cumsum(-1).Sub(probs)
		logits = logits.MaskedFill(before.Ge(c.topP).LogicalAnd(before.Gt(0)), math.Inf(-1))
	}
	// The largest of the logits plus Gumbel noise is distributed as their softmax.
	noise := logits.RandLike().Neg().Log1p().Neg().Maximum(0x1p-126).Log().Neg()
	drawn := logits.Add(noise).Argmax(Dim(-1))
	if classes == nil {
		return drawn
	}
	return classes.Gather(-1, drawn.Unsqueeze(-1)).Squeeze(Dim(-1))
}

// Quantile returns the q-quantiles of t, floating, along dim, for each of q in [0, 1], stacked in a new
// first dimension: elements of the sorted lines, with those between two interpolated. A line with NaN
// gives NaN. As torch.quantile.
func Quantile(t *Tensor, q []float64, dim int) *Tensor {
	const op = "quantile"
	t.session(op)
	if t.Rank() == 0 || !t.DType().IsFloat() || t.Dim(dim) == 0 || len(q) == 0 {
		panic(ir.NewOpError(op, ErrArg, nil, "%d quantiles of %v, which must be floating and not empty along dimension %d", len(q), t.Shape(), dim))
	}
	sorted, _ := t.Sort(Dim(dim))
	last := t.Dim(dim) - 1
	nan := sorted.Select(dim, last).IsNaN()
	out := make([]*Tensor, len(q))
	for i, p := range q {
		if !(p >= 0 && p <= 1) {
			panic(ir.NewOpError(op, ErrArg, nil, "q is %v, must be in [0, 1]", p))
		}
		at := p * float64(last)
		low := int(at)
		y := sorted.Select(dim, low)
		if low < last {
			y = y.Lerp(sorted.Select(dim, low+1), at-float64(low))
		}
		out[i] = y.MaskedFill(nan, math.NaN())
	}
	return Stack(out)
}
