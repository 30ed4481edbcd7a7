package ir

// Recurrent layers, step by step.

// cell is one kind of recurrent cell.
type cell struct {
	gates int
	// step returns the next hidden state, and for an LSTM the next cell state, from the products of
	// the input and of the hidden state h with the weights, [batch, gates·hidden].
	step func(b *Builder, input, hidden, h, c Value) (Value, Value)
}

var (
	lstmKind = cell{4, func(b *Builder, input, hidden, _, c Value) (Value, Value) {
		next, c, _ := lstmStep(b, b.Add(input, hidden), c)
		return next, c
	}}
	gruKind = cell{3, func(b *Builder, input, hidden, h, _ Value) (Value, Value) {
		i, g := gatesOf(b, input, 3), gatesOf(b, hidden, 3)
		reset, update := b.sigmoid(b.Add(i[0], g[0])), b.sigmoid(b.Add(i[1], g[1]))
		candidate := b.tanh(b.Add(i[2], b.Mul(reset, g[2])))
		return b.Add(b.Mul(b.Sub(h, candidate), update), candidate), Value{}
	}}
	rnnTanhKind = cell{1, func(b *Builder, input, hidden, _, _ Value) (Value, Value) {
		return b.tanh(b.Add(input, hidden)), Value{}
	}}
	rnnReluKind = cell{1, func(b *Builder, input, hidden, _, _ Value) (Value, Value) {
		return b.relu(b.Add(input, hidden)), Value{}
	}}
)

func init() {
	const weights = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
	const layers = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
	const layerDoc = " over input [time, batch, features], [batch, time, features] if batch_first says so, or [time, features]. " +
		"params has for each layer, and in it for each direction, the weights of the input [gates·hidden, features] and of the hidden state [gates·hidden, hidden] " +
		"and, if has_biases says so, a bias [gates·hidden] of each. hx is [layers·directions, batch, hidden]. Returns all hidden states of the last layer and the last ones of all. " +
		"dropout must be 0 in training. As torch.nn."
	for _, r := range []struct {
		name, layer, cellName, torch, doc string
		kind                              cell
	}{
		{"gru", "GRU", "GRUCell", "GRU", "Gated recurrent units", gruKind},
		{"rnn_tanh", "RNNTanh", "RNNTanhCell", "RNN", "Recurrent layers with tanh", rnnTanhKind},
		{"rnn_relu", "RNNReLU", "RNNReLUCell", "RNN", "Recurrent layers with relu", rnnReluKind},
	} {
		register(r.name+"(Tensor input, Tensor hx, "+layers+") -> (Tensor output, Tensor hidden)", Spec{
			GoName: r.layer, Doc: r.doc + layerDoc + r.torch + ".", Category: Neural,
			Decompose: func(b *Builder, a Args) []Value { return recurrentLayers(b, a, r.kind, a.Tensor("hx"), Value{})[:2] },
		})
		register(r.name+"_cell(Tensor input, Tensor hx, "+weights+") -> Tensor", Spec{
			GoName: r.cellName, Doc: "One step of " + r.name + ": the next of the hidden states hx [batch, hidden] for input [batch, features]. As torch.nn." + r.torch + "Cell.", Category: Neural,
			Decompose: func(b *Builder, a Args) []Value { return recurrentCell(b, a, r.kind, a.Tensor("hx"), Value{})[:1] },
		})
	}
	register("lstm(Tensor input, Tensor[] hx, "+layers+") -> (Tensor output, Tensor hidden, Tensor cell)", Spec{
		GoName: "LSTM", Doc: "Long short-term memory" + layerDoc + "LSTM, whose states hx are the hidden ones and the cells'.", Category: Neural,
		Decompose: func(b *Builder, a Args) []Value {
			h, c := lstmStates(a)
			return recurrentLayers(b, a, lstmKind, h, c)
		},
	})
	register("lstm_cell(Tensor input, Tensor[] hx, "+weights+") -> (Tensor hidden, Tensor cell)", Spec{
		GoName: "LSTMCell", Doc: "One step of lstm: the next of the hidden and of the cell states hx, each [batch, hidden], for input [batch, features]. As torch.nn.LSTMCell.", Category: Neural,
		Decompose: func(b *Builder, a Args) []Value {
			h, c := lstmStates(a)
			return recurrentCell(b, a, lstmKind, h, c)
		},
	})
	register("_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor hidden, Tensor cell, Tensor workspace)", Spec{
		Doc:      "lstm_cell from the products with the weights. The workspace are the gates after their activations. As at::_thnn_fused_lstm_cell.",
		Category: Neural, Unlisted: true, Decompose: fusedLSTMCell,
	})
}

func lstmStates(a Args) (h, c Value) {
	states := a.Tensors("hx")
	if len(states) != 2 {
		a.Fail(ErrArg, "hx must be the hidden and the cell states, got %d tensors", len(states))
	}
	return states[0], states[1]
}

// gatesOf splits the last dimension of x [batch, n·hidden].
func gatesOf(b *Builder, x Value, n int) []Value {
	size := x.Dim(1) / n
	out := make([]Value, n)
	for i := range out {
		out[i] = b.Slice(x, 1, i*size, (i+1)*size, 1)
	}
	return out
}

// lstmStep returns both states and the gates after their activations.
func lstmStep(b *Builder, sum, c Value) (h, next, gates Value) {
	g := gatesOf(b, sum, 4)
	for i := range g {
		if i == 2 {
			g[i] = b.tanh(g[i])
		} else {
			g[i] = b.sigmoid(g[i])
		}
	}
	next = b.Add(b.Mul(g[1], c), b.Mul(g[0], g[2]))
	return b.Mul(g[3], b.tanh(next)), next, b.Cat(g, 1)
}

func fusedLSTMCell(b *Builder, a Args) []Value {
	x, c := a.Tensor("input_gates"), a.Tensor("cx")
	if x.Rank() != 2 || x.Dim(1)%4 != 0 || c.Shape() != x.Shape().WithDims(x.Dim(0), x.Dim(1)/4) || a.Tensor("hidden_gates").Shape() != x.Shape() {
		a.Fail(ErrShape, "gates %v and %v for the cells %v", x.Shape(), a.Tensor("hidden_gates").Shape(), c.Shape())
	}
	sum := b.Add(b.widen(x), b.widen(a.Tensor("hidden_gates")))
	for _, name := range []string{"input_bias", "hidden_bias"} {
		if bias := a.Tensor(name); !bias.IsNil() {
			sum = b.Add(sum, b.widen(bias))
		}
	}
	h, c, gates := lstmStep(b, sum, b.widen(c))
	d := x.DType()
	return []Value{b.Cast(h, d), b.Cast(c, d), b.Cast(gates, d)}
}

// cellWeights are those of one layer in one direction.
type cellWeights struct{ input, hidden, inputBias, hiddenBias Value }

// check fails unless the weights are of a layer of features and hidden elements.
func (w *cellWeights) check(a Args, kind cell, d DType, features, hidden int) {
	n := kind.gates * hidden
	if w.input.Shape() != MakeShape(d, n, features) || w.hidden.Shape() != MakeShape(d, n, hidden) {
		a.Fail(ErrShape, "weights %v and %v of a layer of %d features and %d hidden elements", w.input.Shape(), w.hidden.Shape(), features, hidden)
	}
	for _, bias := range []Value{w.inputBias, w.hiddenBias} {
		if !bias.IsNil() && bias.Shape() != MakeShape(d, n) {
			a.Fail(ErrShape, "a bias must be %v, got %v", MakeShape(d, n), bias.Shape())
		}
	}
}

// product is x times weights [n, k], plus a bias if there is one.
func (b *Builder) product(x, w, bias Value) Value {
	y := b.MatMul(x, b.Transpose(b.widen(w), 0, 1))
	if bias.IsNil() {
		return y
	}
	return b.Add(y, b.widen(bias))
}

func recurrentCell(b *Builder, a Args, kind cell, h, c Value) []Value {
	x := a.Tensor("input")
	w := cellWeights{a.Tensor("w_ih"), a.Tensor("w_hh"), a.Tensor("b_ih"), a.Tensor("b_hh")}
	d := x.DType()
	if !d.IsFloat() || x.Rank() != 2 || h.Rank() != 2 || h.Shape() != MakeShape(d, x.Dim(0), h.Dim(1)) || !c.IsNil() && c.Shape() != h.Shape() {
		a.Fail(ErrShape, "input must be floating [batch, features] and states [batch, hidden], got %v and %v", x.Shape(), h.Shape())
	}
	w.check(a, kind, d, x.Dim(1), h.Dim(1))
	h = b.widen(h)
	if !c.IsNil() {
		c = b.widen(c)
	}
	h, c = kind.step(b, b.product(b.widen(x), w.input, w.inputBias), b.product(h, w.hidden, w.hiddenBias), h, c)
	if c.IsNil() {
		return []Value{b.Cast(h, d)}
	}
	return []Value{b.Cast(h, d), b.Cast(c, d)}
}

// recurrentLayers runs all layers; c is absent but for an LSTM.
func recurrentLayers(b *Builder, a Args, kind cell, h, c Value) []Value {
	x, d := a.Tensor("input"), a.Tensor("input").DType()
	layers, directions, each := a.Int("num_layers"), 1, 2
	if a.Bool("bidirectional") {
		directions = 2
	}
	if a.Bool("has_biases") {
		each = 4
	}
	params := a.Tensors("params")
	switch {
	case a.Bool("train") && a.float("dropout") != 0:
		a.Fail(ErrArg, "dropout between recurrent layers is not supported: call a layer at a time, with the op dropout between them")
	case layers < 1 || len(params) != layers*directions*each:
		a.Fail(ErrArg, "%d layers of %d directions have %d weights, got %d", layers, directions, layers*directions*each, len(params))
	case !d.IsFloat() || x.Rank() < 2 || x.Rank() > 3 || h.Rank() != x.Rank():
		a.Fail(ErrShape, "input must be floating of 2 or 3 dimensions, and the states too, got %v and %v", x.Shape(), h.Shape())
	}
	unbatched := x.Rank() == 2
	if unbatched {
		x, h = b.Unsqueeze(x, 1), b.Unsqueeze(h, 1)
		if !c.IsNil() {
			c = b.Unsqueeze(c, 1)
		}
	} else if a.Bool("batch_first") {
		x = b.Transpose(x, 0, 1)
	}
	hidden := h.Dim(2)
	if h.Shape() != MakeShape(d, layers*directions, x.Dim(1), hidden) || !c.IsNil() && c.Shape() != h.Shape() || x.Dim(0) < 1 {
		a.Fail(ErrShape, "the states must be [%d, %d, hidden] and the input not empty, got %v and %v", layers*directions, x.Dim(1), h.Shape(), x.Shape())
	}
	x = b.widen(x)
	var lastH, lastC []Value
	for l := range layers {
		outs := make([]Value, directions)
		for dir := range directions {
			i := l*directions + dir
			p := params[i*each:][:each]
			w := cellWeights{input: p[0], hidden: p[1]}
			if each == 4 {
				w.inputBias, w.hiddenBias = p[2], p[3]
			}
			w.check(a, kind, d, x.Dim(2), hidden)
			state := func(s Value) Value {
				if s.IsNil() {
					return s
				}
				return b.Reshape(b.widen(b.Slice(s, 0, i, i+1, 1)), s.Dim(1), hidden)
			}
			var hn, cn Value
			outs[dir], hn, cn = b.recur(x, state(h), state(c), &w, kind, dir == 1)
			lastH, lastC = append(lastH, b.Unsqueeze(hn, 0)), append(lastC, cn)
		}
		if x = outs[0]; directions == 2 {
			x = b.Cat(outs, 2)
		}
	}
	results := []Value{x, b.Cat(lastH, 0)}
	if !c.IsNil() {
		for i := range lastC {
			lastC[i] = b.Unsqueeze(lastC[i], 0)
		}
		results = append(results, b.Cat(lastC, 0))
	}
	if !unbatched && a.Bool("batch_first") {
		results[0] = b.Transpose(results[0], 0, 1)
	}
	for i, r := range results {
		if unbatched {
			dims := r.Shape().Dims()
			r = b.Reshape(r, dims[0], dims[2])
		}
		results[i] = b.Cast(r, d)
	}
	return results
}

// unrolledSteps is how many steps of a recurrent layer are recorded one by one; more are a loop, which
// is compiled once.
const unrolledSteps = 4

// recur runs one layer in one direction over x [time, batch, features]. It returns the hidden
// states of all times and the last states.
func (b *Builder) recur(x, h, c Value, w *cellWeights, kind cell, backwards bool) (out, hn, cn Value) {
	inputs := b.product(x, w.input, w.inputBias)
	if x.Dim(0) > unrolledSteps {
		return b.recurLoop(inputs, h, c, w, kind, backwards)
	}
	steps, batch := x.Dim(0), x.Dim(1)
	states := make([]Value, steps)
	for i := range steps {
		t := i
		if backwards {
			t = steps - 1 - i
		}
		input := b.Reshape(b.Slice(inputs, 0, t, t+1, 1), batch, inputs.Dim(2))
		h, c = kind.step(b, input, b.product(h, w.hidden, w.hiddenBias), h, c)
		states[t] = b.Unsqueeze(h, 0)
	}
	return b.Cat(states, 0), h, c
}

// recurLoop is recur as a loop over the products of the inputs.
func (b *Builder) recurLoop(inputs, h, c Value, w *cellWeights, kind cell, backwards bool) (out, hn, cn Value) {
	init := []Value{h}
	if !c.IsNil() {
		init = append(init, c)
	}
	consts := []Value{b.Transpose(b.widen(w.hidden), 0, 1)}
	if !w.hiddenBias.IsNil() {
		consts = append(consts, b.widen(w.hiddenBias))
	}
	last, states := b.loop(init, []Value{inputs}, consts, inputs.Dim(0), backwards, func(b *Builder, carry, x, consts []Value) ([]Value, []Value) {
		h, c := carry[0], Value{}
		if len(carry) == 2 {
			c = carry[1]
		}
		hidden := b.MatMul(h, consts[0])
		if len(consts) == 2 {
			hidden = b.Add(hidden, consts[1])
		}
		h, c = kind.step(b, x[0], hidden, h, c)
		return append([]Value{h}, c)[:len(carry)], []Value{h}
	})
	if c.IsNil() {
		return states[0], last[0], Value{}
	}
	return states[0], last[0], last[1]
}
