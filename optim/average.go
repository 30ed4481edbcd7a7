package optim

import (
	"iter"

	"github.com/loris-ml/loris"
)

// EMA keeps the exponential moving average of variables, such as a model's parameters and buffers.
type EMA struct {
	decay  float64
	vars   []namedVar
	shadow []*loris.Variable
}

type namedVar struct {
	name string
	v    *loris.Variable
}

func collect(vars iter.Seq2[string, *loris.Variable]) (out []namedVar) {
	for name, v := range vars {
		out = append(out, namedVar{name, v})
	}
	return out
}

// NewEMA records averages that begin with the variables' present values. decay, in [0, 1), is the
// weight of the old average, 0.999 say.
func NewEMA(vars iter.Seq2[string, *loris.Variable], decay float64) *EMA {
	check("EMA", decay >= 0 && decay < 1, "the decay is %v, must be in [0, 1)", decay)
	e := &EMA{decay: decay, vars: collect(vars)}
	for _, n := range e.vars {
		e.shadow = append(e.shadow, loris.NewVariable(n.v.Value()))
	}
	return e
}

// Update records the next averages: decay·average + (1-decay)·value, for integers the value. Call
// it after the optimiser's Step.
func (e *EMA) Update() {
	for i, n := range e.vars {
		v := n.v.Value()
		if v.DType().IsFloat() {
			old := e.shadow[i].ValueIn(v.Session())
			v = cast(old.Add(v.Sub(old).Mul(1-e.decay)), v.DType())
		}
		e.shadow[i].Assign(v)
	}
}

// Swap exchanges the variables' values and their averages: before an evaluation, and again after it.
func (e *EMA) Swap() {
	for i, n := range e.vars {
		v, average := n.v.Value(), e.shadow[i].ValueIn(n.v.Session())
		n.v.Assign(average)
		e.shadow[i].Assign(v)
	}
}

// State yields the averages under the names of the variables.
func (e *EMA) State() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		for i, n := range e.vars {
			if !yield(n.name, e.shadow[i]) {
				return
			}
		}
	}
}

// Accumulator sums up gradients of several batches for one step of an optimiser.
type Accumulator struct{ sums []namedVar }

// NewAccumulator records sums of zero for an optimiser's gradients, in f32 for narrow parameters.
func NewAccumulator(o *Optimizer) *Accumulator {
	a := &Accumulator{}
	for _, p := range o.params {
		m := p.v.Session().With(loris.On(p.v.Value().Device()), loris.As(computeDType(p.v)))
		a.sums = append(a.sums, namedVar{p.name, loris.NewVariable(m.Zeros(p.v.Shape().Dims()...).Discard())})
	}
	return a
}

// Add records the addition of gradients, weighted: by 1/n for the mean of n batches of equal size.
// A nil gradient adds nothing.
func (a *Accumulator) Add(grads []*loris.Tensor, weight float64) {
	check("Accumulator", len(grads) == len(a.sums), "%d gradients are given for %d parameters", len(grads), len(a.sums))
	for i, g := range grads {
		if g != nil {
			v := a.sums[i].v
			v.Assign(v.ValueIn(g.Session()).Add(cast(g, v.Shape().DType()).Mul(weight)))
		}
	}
}

// Take returns the sums, for Step, and records sums of zero.
func (a *Accumulator) Take() []*loris.Tensor {
	out := make([]*loris.Tensor, len(a.sums))
	for i, n := range a.sums {
		out[i] = n.v.Value()
		n.v.Assign(out[i].ZerosLike())
	}
	return out
}

// State yields the sums under the names of the parameters.
func (a *Accumulator) State() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		for _, n := range a.sums {
			if !yield(n.name, n.v) {
				return
			}
		}
	}
}
