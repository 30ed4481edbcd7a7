package torchexport

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// recurrentOps are layers over sequences.
var recurrentOps = map[string]func(c *call) []any{
	"aten.lstm.input":    lstm,
	"aten.lstm.data":     unsupportedArgs("a packed sequence"),
	"aten.gru.data":      unsupportedArgs("a packed sequence"),
	"aten.rnn_tanh.data": unsupportedArgs("a packed sequence"),
	"aten.rnn_relu.data": unsupportedArgs("a packed sequence"),
}

// lstm is the row of the name, but where the hidden state is a projection (proj_size): there each layer
// and direction has one more weight, and is a loop.
func lstm(c *call) []any {
	params, hx := c.tensors("params"), c.tensors("hx")
	biased, layers, ways := c.boolOr("has_biases", true), c.intOr("num_layers", 1), 1
	if c.boolOr("bidirectional", false) {
		ways = 2
	}
	each := 3
	if biased {
		each = 5
	}
	if layers < 1 || len(params)/each < layers || len(params) != layers*ways*each {
		row, _ := ir.Lookup("lstm")
		return generic(row)(c)
	}
	if len(hx) != 2 || hx[0].Rank() != 3 || hx[1].Rank() != 3 || hx[0].Dim(0) != layers*ways || hx[1].Dim(0) != layers*ways {
		panic(misuse(c.n.target, "states for %d layers of %d directions", layers, ways))
	}
	if c.boolOr("train", false) && c.floatOr("dropout", 0) != 0 {
		panic(misuse(c.n.target, "dropout between layers with projections is not supported"))
	}
	x := c.value("input")
	first := c.boolOr("batch_first", false)
	if first {
		x = x.Transpose(0, 1)
	}
	var hidden, cells []*loris.Tensor
	for layer := range layers {
		outs := make([]*loris.Tensor, ways)
		for way := range ways {
			i := layer*ways + way
			out, h, s := c.projected(x, c.do("select", hx[0], 0, i), c.do("select", hx[1], 0, i), params[i*each:][:each], way == 1)
			outs[way], hidden, cells = out, append(hidden, h), append(cells, s)
		}
		x = outs[0]
		if ways == 2 {
			x = c.do("cat", outs, -1)
		}
	}
	if first {
		x = x.Transpose(0, 1)
	}
	return many(x, c.do("stack", hidden, 0), c.do("stack", cells, 0))
}

// projected is one layer in one direction over [steps, batch, features].
func (c *call) projected(x, h, s *loris.Tensor, w []*loris.Tensor, reverse bool) (out, hidden, cell *loris.Tensor) {
	var inBias, hiddenBias any
	if len(w) == 5 {
		inBias, hiddenBias = w[2], w[3]
	}
	wide := s.Dim(-1)
	var opts []loris.ScanOption
	if reverse {
		opts = append(opts, loris.ScanReverse())
	}
	last, all := loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
		g := x[0].Add(c.do("linear", carry[0], w[1], hiddenBias)).Reshape(-1, 4, wide).Unbind(loris.Dim(1))
		s := g[1].Sigmoid().Mul(carry[1]).Add(g[0].Sigmoid().Mul(g[2].Tanh()))
		h := c.do("linear", g[3].Sigmoid().Mul(s.Tanh()), w[len(w)-1])
		return []*loris.Tensor{h, s}, []*loris.Tensor{h}
	}, []*loris.Tensor{h, s}, []*loris.Tensor{c.do("linear", x, w[0], inBias)}, opts...)
	return all[0], last[0], last[1]
}
