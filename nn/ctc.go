package nn

import (
	"math"
	"slices"

	"github.com/loris-ml/loris"
)

// CTCLoss is connectionist temporal classification: the loss of a sequence of labels whose places
// in a longer sequence of log-probabilities are not known, as torch.nn.CTCLoss. The zero value is
// ready to use.
type CTCLoss struct {
	// Blank is the class that stands for no label.
	Blank int
	// Reduction is none, sum, or mean, for which "" stands too: over the batch, of each loss divided
	// by the number of its labels.
	Reduction string
	// ZeroInfinity has sequences that are too short for their labels count nothing. Otherwise their
	// loss is infinite.
	ZeroInfinity bool
}

// unlikely is the logarithm of a probability that is as good as none. It is finite, so that no
// gradient is.
const unlikely = -1e30

// Forward records the loss of log-probabilities [T, N, C], such as LogSoftmax makes, for labels i64
// [N, S], of which the first outputs[n] count, in the first inputs[n] places; both lengths are i64
// [N]. Labels that count and are not in [0, C) are an error when the graph runs. f16 and bf16 are
// computed in f32. It is one compilation for any T.
func (l CTCLoss) Forward(logProbs, labels, inputs, outputs *loris.Tensor) *loris.Tensor {
	l.check(logProbs, labels, inputs, outputs)
	x := logProbs
	if d := x.DType(); d != loris.F64 {
		x = x.Cast(loris.F32)
	}
	steps, batch := x.Dim(0), x.Dim(1)
	m := x.Session().With(loris.On(x.Device()), loris.As(loris.I64))
	ext := l.extended(m, labels, outputs)
	states := ext.Dim(1)
	// later moves values to later states; what comes in is fill.
	later := func(x *loris.Tensor, by int, fill any) *loris.Tensor {
		pad := x.Session().With(loris.On(x.Device()), loris.As(x.DType())).Full(fill, batch, by)
		return loris.Cat([]*loris.Tensor{pad, x}, loris.Dim(1)).Narrow(1, 0, states)
	}
	// Two states are passed at once where that skips a blank between different labels.
	skips := ext.Ne(l.Blank).LogicalAnd(ext.Ne(later(ext, 2, -1)))
	emitted := x.Gather(2, ext.Unsqueeze(0).Expand(steps, batch, states)).ClampMin(unlikely)
	active := m.Arange(0, steps, 1).Unsqueeze(1).Lt(inputs.Unsqueeze(0)).Unsqueeze(2)
	start := loris.Where(m.Arange(0, states, 1).Eq(0), m.With(loris.As(x.DType())).Zeros(batch, 1), unlikely)
	last, _ := loris.Scan(func(carry, at []*loris.Tensor) (next, results []*loris.Tensor) {
		a := carry[0]
		reached := a.Logaddexp(later(a, 1, unlikely)).Logaddexp(loris.Where(skips, later(a, 2, unlikely), unlikely))
		return []*loris.Tensor{loris.Where(at[1], reached.Add(at[0]), a)}, nil
	}, []*loris.Tensor{start}, []*loris.Tensor{emitted, active})
	end := outputs.Mul(2).Unsqueeze(1)
	blank, label := last[0].Gather(1, end), last[0].Gather(1, end.Sub(1).ClampMin(0))
	loss := blank.Logaddexp(loris.Where(end.Gt(0), label, unlikely)).Neg().Squeeze(loris.Dim(1))
	return l.reduce(loss, outputs).Cast(logProbs.DType())
}

// extended returns the states: the labels with a blank before, between and behind them. Labels that
// don't count are blanks.
func (l CTCLoss) extended(m loris.Maker, labels, outputs *loris.Tensor) *loris.Tensor {
	batch, most := labels.Dim(0), labels.Dim(1)
	counts := m.Arange(0, most, 1).Unsqueeze(0).Lt(outputs.Unsqueeze(1))
	labels = loris.Where(counts, labels, l.Blank)
	blanks := m.Full(l.Blank, batch, most+1)
	pairs := loris.Stack([]*loris.Tensor{blanks.Narrow(1, 0, most), labels}, loris.Dim(2)).Reshape(batch, 2*most)
	return loris.Cat([]*loris.Tensor{pairs, blanks.Narrow(1, most, 1)}, loris.Dim(1))
}

// reduce says what is infinite, and sums the losses up.
func (l CTCLoss) reduce(loss, outputs *loris.Tensor) *loris.Tensor {
	instead := math.Inf(1)
	if l.ZeroInfinity {
		instead = 0
	}
	loss = loss.MaskedFill(loss.Gt(-unlikely/2), instead)
	switch l.Reduction {
	case "none":
		return loss
	case "sum":
		return loss.Sum()
	}
	return loss.Div(outputs.ClampMin(1).Cast(loss.DType())).Mean()
}

// check panics for arguments that do not fit.
func (l CTCLoss) check(logProbs, labels, inputs, outputs *loris.Tensor) {
	const name = "CTCLoss"
	if !slices.Contains([]string{"", "none", "mean", "sum"}, l.Reduction) {
		panic(misuse(name, "the reduction is %q, must be none, mean or sum", l.Reduction))
	}
	if logProbs.Rank() != 3 || !logProbs.DType().IsFloat() {
		panic(misshapen(name, logProbs, "the log-probabilities must be floating [T, N, C]"))
	}
	n := logProbs.Dim(1)
	if l.Blank < 0 || l.Blank >= logProbs.Dim(2) {
		panic(misuse(name, "the blank is %d, must be one of %d classes", l.Blank, logProbs.Dim(2)))
	}
	if labels.Rank() != 2 || labels.Dim(0) != n || labels.DType() != loris.I64 {
		panic(misshapen(name, labels, "the labels must be i64 [%d, S]", n))
	}
	for _, lengths := range []*loris.Tensor{inputs, outputs} {
		if lengths.Rank() != 1 || lengths.Dim(0) != n || lengths.DType() != loris.I64 {
			panic(misshapen(name, lengths, "lengths must be i64 [%d]", n))
		}
	}
}
