package onnx

import "github.com/loris-ml/loris"

// recurrentRows are the recurrent layers. Their steps are one loop, however long the sequence is.
var recurrentRows = map[string]*row{
	"RNN": many(3, 6, func(c *call, in []*value) []*value { return c.recurrent(in, 1, []string{"Tanh"}, (*layer).rnn) }),
	"GRU": many(3, 6, func(c *call, in []*value) []*value {
		return c.recurrent(in, 3, []string{"Sigmoid", "Tanh"}, (*layer).gru)
	}),
	"LSTM": many(3, 8, func(c *call, in []*value) []*value {
		return c.recurrent(in, 4, []string{"Sigmoid", "Tanh", "Tanh"}, (*layer).lstm)
	}),
}

// layer is one direction of a recurrent layer.
type layer struct {
	c      *call
	hidden int
	acts   []func(x *loris.Tensor) *loris.Tensor
	// The weights of the input and of the state, transposed: [features, gates·hidden]; biases are nil
	// where there are none.
	wT, wBias, rT, rBias *loris.Tensor
	peep                 *loris.Tensor
	clip                 float64
}

// A step gets the state, the cell (nil but for LSTM) and the projected input, and returns the next ones.
type stepFunc func(l *layer, h, cell, x *loris.Tensor) (nextH, nextCell *loris.Tensor)

// clipped holds what enters an activation to the node's bound.
func (l *layer) clipped(x *loris.Tensor) *loris.Tensor {
	if l.clip > 0 {
		return x.Clamp(-l.clip, l.clip)
	}
	return x
}

func (l *layer) act(i int, x *loris.Tensor) *loris.Tensor { return l.acts[i](l.clipped(x)) }

// gate returns part i of the gates along the last dimension.
func (l *layer) gate(t *loris.Tensor, i int) *loris.Tensor {
	return t.Narrow(t.Rank()-1, i*l.hidden, l.hidden)
}

func (l *layer) state(h *loris.Tensor) *loris.Tensor {
	y := h.MatMul(l.rT)
	if l.rBias != nil {
		y = y.Add(l.rBias)
	}
	return y
}

func (l *layer) rnn(h, _, x *loris.Tensor) (*loris.Tensor, *loris.Tensor) {
	return l.act(0, x.Add(l.state(h))), nil
}

// gru has its gates in the order update, reset, hidden.
func (l *layer) gru(h, _, x *loris.Tensor) (*loris.Tensor, *loris.Tensor) {
	s := l.state(h)
	z := l.act(0, l.gate(x, 0).Add(l.gate(s, 0)))
	r := l.act(0, l.gate(x, 1).Add(l.gate(s, 1)))
	var n *loris.Tensor
	if l.c.bool("linear_before_reset", false) {
		n = r.Mul(l.gate(s, 2))
	} else {
		n = r.Mul(h).MatMul(l.gate(l.rT, 2))
		if l.rBias != nil {
			n = n.Add(l.gate(l.rBias, 2))
		}
	}
	n = l.act(1, l.gate(x, 2).Add(n))
	return z.Neg().Add(1).Mul(n).Add(z.Mul(h)), nil
}

// lstm has its gates in the order input, output, forget, cell, and peepholes for the first three.
func (l *layer) lstm(h, cell, x *loris.Tensor) (*loris.Tensor, *loris.Tensor) {
	g := x.Add(l.state(h))
	i, o, f := l.gate(g, 0), l.gate(g, 1), l.gate(g, 2)
	if l.peep != nil {
		i, f = i.Add(l.gate(l.peep, 0).Mul(cell)), f.Add(l.gate(l.peep, 2).Mul(cell))
	}
	i = l.act(0, i)
	if l.c.bool("input_forget", false) {
		f = i.Neg().Add(1)
	} else {
		f = l.act(0, f)
	}
	next := f.Mul(cell).Add(i.Mul(l.act(1, l.gate(g, 3))))
	if l.peep != nil {
		o = o.Add(l.gate(l.peep, 1).Mul(next))
	}
	return l.act(0, o).Mul(l.acts[2](next)), next
}

// recurrent records all directions of a layer.
func (c *call) recurrent(in []*value, gates int, acts []string, step stepFunc) []*value {
	x := c.tensor(in[0])
	batchFirst := c.bool("layout", false)
	if x.Rank() != 3 || in[1].rank() != 3 || in[2].rank() != 3 {
		c.fail("inputs %v, weights %v and %v", in[0], in[1], in[2])
	}
	if batchFirst {
		x = x.Transpose(0, 1)
	}
	dirs, hidden := in[1].dims[0], in[2].dims[2]
	if in[1].dims[1] != gates*hidden || in[2].dims[1] != gates*hidden || in[2].dims[0] != dirs {
		c.fail("weights %v and %v do not fit each other", in[1], in[2])
	}
	direction := c.text("direction", "forward")
	if want := map[string]int{"forward": 1, "reverse": 1, "bidirectional": 2}[direction]; want != dirs {
		c.fail("direction %q, weights %v", direction, in[1])
	}
	mask := c.stepMask(x, opt(in, 4))
	var ys, hs, cells []*loris.Tensor
	for d := range dirs {
		l := c.layerOf(in, d, dirs, gates, acts)
		y, h, cell := l.run(x, mask, c.initial(in, 5, d, x, hidden, batchFirst), c.initial(in, 6, d, x, hidden, batchFirst), step, gates == 4, direction == "reverse" || d == 1)
		ys, hs, cells = append(ys, y), append(hs, h), append(cells, cell)
	}
	first := 0
	if batchFirst {
		first = 1
		for i := range ys {
			ys[i] = ys[i].Transpose(0, 1)
		}
	}
	e := in[0].elem
	place := 1
	if batchFirst {
		place = 2
	}
	outs := []*value{out(e, loris.Stack(ys, loris.Dim(place))), out(e, loris.Stack(hs, loris.Dim(first)))}
	if gates == 4 {
		outs = append(outs, out(e, loris.Stack(cells, loris.Dim(first))))
	}
	return outs
}

// stepMask says which steps of which sequence are real, nil where all are: [steps, batch, 1].
func (c *call) stepMask(x *loris.Tensor, lengths *value) *loris.Tensor {
	if lengths == nil || lengths.empty {
		return nil
	}
	n := c.tensor(lengths).Cast(loris.I64).Reshape(1, x.Dim(1), 1)
	return c.run.make.Arange(0, x.Dim(0), 1).Reshape(x.Dim(0), 1, 1).Lt(n)
}

// initial is the first state of a direction: [batch, hidden].
func (c *call) initial(in []*value, i, d int, x *loris.Tensor, hidden int, batchFirst bool) *loris.Tensor {
	v := opt(in, i)
	if v == nil || v.empty {
		return c.run.make.With(loris.As(x.DType())).Zeros(x.Dim(1), hidden)
	}
	if batchFirst {
		return c.tensor(v).Select(1, d)
	}
	return c.tensor(v).Select(0, d)
}

// layerOf reads the weights and activations of a direction.
func (c *call) layerOf(in []*value, d, dirs, gates int, acts []string) *layer {
	hidden := in[2].dims[2]
	l := &layer{c: c, hidden: hidden, wT: c.tensor(in[1]).Select(0, d).Transpose(0, 1), rT: c.tensor(in[2]).Select(0, d).Transpose(0, 1), clip: c.float("clip", 0)}
	if b := c.maybe(opt(in, 3)); b != nil {
		l.wBias = b.Select(0, d).Narrow(0, 0, gates*hidden)
		l.rBias = b.Select(0, d).Narrow(0, gates*hidden, gates*hidden)
	}
	if p := c.maybe(opt(in, 7)); p != nil {
		l.peep = p.Select(0, d)
	}
	names := c.texts("activations")
	if names == nil {
		for range dirs {
			names = append(names, acts...)
		}
	}
	if len(names) != dirs*len(acts) {
		c.fail("activations %v, %d are expected", names, dirs*len(acts))
	}
	p := parameters{c.floatList("activation_alpha"), c.floatList("activation_beta")}
	for i, name := range names[:(d+1)*len(acts)] {
		if f := c.activation(name, &p); i >= d*len(acts) {
			l.acts = append(l.acts, f)
		}
	}
	return l
}

// parameters are what is left of those of activations: each takes the next ones, if it has any.
type parameters struct{ alphas, betas []float64 }

// activation returns a function by its name.
func (c *call) activation(name string, p *parameters) func(x *loris.Tensor) *loris.Tensor {
	next := func(list *[]float64, def float64) float64 {
		if len(*list) == 0 {
			return def
		}
		v := (*list)[0]
		*list = (*list)[1:]
		return v
	}
	switch name {
	case "Tanh":
		return loris.Tanh
	case "Sigmoid":
		return loris.Sigmoid
	case "Relu":
		return loris.Relu
	case "Softsign":
		return loris.Softsign
	case "Softplus":
		return softplus
	case "Affine":
		a, b := next(&p.alphas, 1), next(&p.betas, 0)
		return func(x *loris.Tensor) *loris.Tensor { return x.Mul(a).Add(b) }
	case "LeakyRelu":
		a := next(&p.alphas, 0.01)
		return func(x *loris.Tensor) *loris.Tensor { return x.LeakyRelu(loris.NegativeSlope(a)) }
	case "ThresholdedRelu":
		a := next(&p.alphas, 1)
		return func(x *loris.Tensor) *loris.Tensor { return loris.Where(x.Gt(a), x, x.ZerosLike()) }
	case "ScaledTanh":
		a, b := next(&p.alphas, 1), next(&p.betas, 1)
		return func(x *loris.Tensor) *loris.Tensor { return x.Mul(b).Tanh().Mul(a) }
	case "HardSigmoid":
		a, b := next(&p.alphas, 0.2), next(&p.betas, 0.5)
		return func(x *loris.Tensor) *loris.Tensor { return x.Mul(a).Add(b).Clamp(0, 1) }
	case "Elu":
		a := next(&p.alphas, 1)
		return func(x *loris.Tensor) *loris.Tensor { return x.Elu(loris.Alpha(a)) }
	}
	c.unsupported("the activation %q", name)
	return nil
}

// run records the steps of a direction and returns the states of all and the last.
func (l *layer) run(x, mask, h, cell *loris.Tensor, step stepFunc, hasCell, reverse bool) (ys, lastH, lastCell *loris.Tensor) {
	projected := x.MatMul(l.wT)
	if l.wBias != nil {
		projected = projected.Add(l.wBias)
	}
	init, xs := []*loris.Tensor{h}, []*loris.Tensor{projected}
	if hasCell {
		init = append(init, cell)
	}
	if mask != nil {
		xs = append(xs, mask)
	}
	body := func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
		var oldCell *loris.Tensor
		if hasCell {
			oldCell = carry[1]
		}
		nh, nc := step(l, carry[0], oldCell, x[0])
		y := nh
		if mask != nil {
			y = loris.Where(x[1], nh, nh.ZerosLike())
			nh = loris.Where(x[1], nh, carry[0])
			if hasCell {
				nc = loris.Where(x[1], nc, oldCell)
			}
		}
		next = []*loris.Tensor{nh}
		if hasCell {
			next = append(next, nc)
		}
		return next, []*loris.Tensor{y}
	}
	var opts []loris.ScanOption
	if reverse {
		opts = append(opts, loris.ScanReverse())
	}
	last, results := loris.Scan(body, init, xs, opts...)
	if hasCell {
		lastCell = last[1]
	}
	return results[0], last[0], lastCell
}
