package nn

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris"
)

// Recurrent is a stack of recurrent layers, as torch.nn.RNN, GRU and LSTM, with PyTorch's
// names of the weights: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, for the second
// direction with the suffix _reverse. Where a step takes no gradients of them, the CPU computes a
// stack as one kernel, else as loops over time.
type Recurrent struct {
	Base
	// Weights has for each layer, and in it for each direction, the weights of the input
	// [gates·hidden, features] and of the hidden state [gates·hidden, hidden] and, unless
	// NoBias is given, a bias [gates·hidden] of each.
	Weights []*loris.Variable

	kind           *recurrentKind
	hidden, layers int
	directions     int
	bias           bool
	batchFirst     bool
	dropout        float64
}

// recurrentKind is what differs between recurrent layers.
type recurrentKind struct {
	name   string
	gates  int
	states int
	op     func(r *Recurrent, x *loris.Tensor, states, weights []*loris.Tensor, layers int) (*loris.Tensor, []*loris.Tensor)
}

// singleState is the op of a layer whose only state is the hidden one.
type singleState func(x, hx *loris.Tensor, params []*loris.Tensor, biases bool, layers int, dropout float64, train, bidirectional, batchFirst bool) (output, hidden *loris.Tensor)

func oneState(op singleState) func(*Recurrent, *loris.Tensor, []*loris.Tensor, []*loris.Tensor, int) (*loris.Tensor, []*loris.Tensor) {
	return func(r *Recurrent, x *loris.Tensor, states, weights []*loris.Tensor, layers int) (*loris.Tensor, []*loris.Tensor) {
		y, h := op(x, states[0], weights, r.bias, layers, 0, r.Training(), r.directions == 2, r.batchFirst)
		return y, []*loris.Tensor{h}
	}
}

var (
	rnnTanhKind = recurrentKind{"RNN", 1, 1, oneState(loris.RNNTanh)}
	rnnReLUKind = recurrentKind{"RNN", 1, 1, oneState(loris.RNNReLU)}
	gruKind     = recurrentKind{"GRU", 3, 1, oneState(loris.GRU)}
	lstmKind    = recurrentKind{"LSTM", 4, 2, func(r *Recurrent, x *loris.Tensor, states, weights []*loris.Tensor, layers int) (*loris.Tensor, []*loris.Tensor) {
		y, h, c := loris.LSTM(x, states, weights, r.bias, layers, 0, r.Training(), r.directions == 2, r.batchFirst)
		return y, []*loris.Tensor{h, c}
	}}
)

// NewRNN returns recurrent layers of input features and hidden elements,
// h' = tanh(w_ih·x + b_ih + w_hh·h + b_hh). All weights are uniform in ±1/√hidden.
// Options: With, Layers, Bidirectional, BatchFirst, NoBias, DropoutP between layers,
// InitWeight, ReLUCell.
func NewRNN(input, hidden int, opts ...Option) *Recurrent {
	return newRecurrent(&rnnTanhKind, input, hidden, opts, "ReLUCell")
}

// NewGRU returns gated recurrent units of input features and hidden elements. All weights
// are uniform in ±1/√hidden. Options are those of NewRNN but ReLUCell.
func NewGRU(input, hidden int, opts ...Option) *Recurrent {
	return newRecurrent(&gruKind, input, hidden, opts)
}

// NewLSTM returns layers of long short-term memory of input features and hidden elements.
// All weights are uniform in ±1/√hidden. Options are those of NewRNN but ReLUCell.
func NewLSTM(input, hidden int, opts ...Option) *Recurrent {
	return newRecurrent(&lstmKind, input, hidden, opts)
}

func newRecurrent(kind *recurrentKind, input, hidden int, opts []Option, more ...string) *Recurrent {
	c := newConfig(kind.name, opts, append(more, "Layers", "Bidirectional", "BatchFirst", "NoBias", "DropoutP", "InitWeight")...)
	positive(kind.name, input, hidden, c.layers)
	c.checkDropout(kind.name)
	if c.relu {
		kind = &rnnReLUKind
	}
	r := &Recurrent{kind: kind, hidden: hidden, layers: c.layers, directions: 1, bias: !c.noBias, batchFirst: c.batchFirst, dropout: c.dropout}
	if c.bidirectional {
		r.directions = 2
	}
	bound := 1 / math.Sqrt(float64(hidden))
	init := Uniform(-bound, bound)
	for l := range c.layers {
		features := input
		if l > 0 {
			features = hidden * r.directions
		}
		for d := range r.directions {
			suffix := fmt.Sprintf("_l%d%s", l, []string{"", "_reverse"}[d])
			add := func(name string, v *loris.Variable) { r.Weights = append(r.Weights, r.Param(name+suffix, v)) }
			add("weight_ih", c.newWeight(init, kind.gates*hidden, features))
			add("weight_hh", c.newWeight(init, kind.gates*hidden, hidden))
			if r.bias {
				add("bias_ih", c.newVariable(init, kind.gates*hidden))
				add("bias_hh", c.newVariable(init, kind.gates*hidden))
			}
		}
	}
	return r
}

// checkDropout panics unless DropoutP is a probability.
func (c *config) checkDropout(name string) {
	if !(c.dropout >= 0 && c.dropout <= 1) {
		panic(misuse(name, "DropoutP is %v, must be in [0, 1]", c.dropout))
	}
}

// Forward is the output of Run from states of zeros.
func (r *Recurrent) Forward(x *loris.Tensor) *loris.Tensor {
	y, states := r.Run(x)
	discard(states...)
	return y
}

// Run maps x [time, batch, features], with BatchFirst [batch, time, features], or unbatched
// [time, features], to the last layer's hidden states of all times, with hidden elements for
// each direction in place of the features, and the last states of all layers,
// [layers·directions, batch, hidden] or unbatched [layers·directions, hidden]: of an LSTM
// the hidden ones and the cells', else the hidden ones. states are those to begin with; none
// means zeros.
func (r *Recurrent) Run(x *loris.Tensor, states ...*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	if x.Rank() != 2 && x.Rank() != 3 {
		panic(misshapen(r.kind.name, x, "the input has the wrong number of dimensions"))
	}
	if len(states) == 0 {
		states = r.zeros(x)
	}
	if len(states) != r.kind.states {
		panic(misuse(r.kind.name, "%d states are given, must be %d", len(states), r.kind.states))
	}
	weights := make([]*loris.Tensor, len(r.Weights))
	for i, w := range r.Weights {
		weights[i] = value(w, x)
	}
	if r.dropout == 0 || !r.Training() || r.layers == 1 {
		return r.kind.op(r, x, states, weights, r.layers)
	}
	return r.dropping(x, states, weights)
}

// zeros returns the states to begin with.
func (r *Recurrent) zeros(x *loris.Tensor) []*loris.Tensor {
	dims := []int{r.layers * r.directions, r.hidden}
	if x.Rank() == 3 {
		batch := x.Dim(1)
		if r.batchFirst {
			batch = x.Dim(0)
		}
		dims = []int{dims[0], batch, r.hidden}
	}
	zero := x.Session().With(loris.On(x.Device()), loris.As(x.DType())).Zeros(dims...)
	out := make([]*loris.Tensor, r.kind.states)
	for i := range out {
		out[i] = zero
	}
	return out
}

// dropping runs layer by layer, with dropout between.
func (r *Recurrent) dropping(x *loris.Tensor, states, weights []*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	last := make([][]*loris.Tensor, r.kind.states) // by state, then by layer
	each := len(weights) / r.layers
	for l := range r.layers {
		own := make([]*loris.Tensor, len(states))
		for i, s := range states {
			own[i] = s.Narrow(0, l*r.directions, r.directions)
		}
		y, next := r.kind.op(r, x, own, weights[l*each:][:each], 1)
		for i, s := range next {
			last[i] = append(last[i], s)
		}
		if x = y; l < r.layers-1 {
			x = x.Dropout(r.dropout)
		}
	}
	out := make([]*loris.Tensor, len(last))
	for i, parts := range last {
		out[i] = loris.Cat(parts, loris.Dim(0))
	}
	return x, out
}
