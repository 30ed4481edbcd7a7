package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/backend/ref"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// programs runs random Programs: chains of ops of all families, in which a
// backend may fuse, reorder and reuse memory. Each is a function of its number.
func (s *suite) programs(t *testing.T) {
	n := uint64(400)
	if testing.Short() {
		n = 60
	}
	for i := range n {
		p, inputs := RandomProgram(i, 5+int(i%30))
		want, err := ref.Eval(p, inputs)
		if err != nil {
			t.Fatalf("program %d: %v", i, err)
		}
		got, err := s.run(context.Background(), p, inputs)
		if err != nil {
			t.Errorf("program %d: %v", i, err)
			continue
		}
		c := comparison{rtol: 1e-3, atol: 1e-3}
		if msg := c.diff(p, got, want); msg != "" {
			t.Errorf("program %d: %s\n%s", i, msg, listing(p))
		}
	}
}

// listing names the instructions of a Program, for messages.
func listing(p *graph.Program) string {
	var out []byte
	for i, q := range p.Params {
		out = fmt.Appendf(out, "\t%%%d = parameter : %v\n", i, q.Shape)
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		out = fmt.Appendf(out, "\t%%%d = %v(%v) attributes %q : %v\n", in.Out, in.Op, in.Args, in.Attr, p.Outs(in))
	}
	return string(fmt.Appendf(out, "\treturn %v\n", p.Returns))
}

// writer grows a random Program. All its float values stay within about ±10,
// and no value that a rounding error can change decides anything: conditions
// and indices come from integers.
type writer struct {
	b      ir.Builder
	rng    *rand.Rand
	floats []ir.Value // f32 or f64
	ints   []ir.Value // i64 or i32, small
}

// RandomProgram returns a Program of about the given number of ops, with
// inputs, which is a function of seed. It is well-conditioned: backends that
// meet ref's accuracy op by op agree with it to 1e-3.
func RandomProgram(seed uint64, ops int) (*graph.Program, [][]byte) {
	w := &writer{rng: rand.New(rand.NewPCG(seed, 99))}
	w.b.Lines = ir.LinesOff
	var params []graph.Param
	var inputs [][]byte
	dtypes := []ir.DType{ir.F32, ir.F32, ir.F64, ir.I64, ir.I32}
	for i, d := range dtypes {
		x := random(w.rng, d, w.dims()...)
		params = append(params, graph.Param{Name: fmt.Sprintf("in%d", i), Shape: x.shape})
		inputs = append(inputs, x.data)
	}
	leaves := graph.NewParams(params)
	w.floats, w.ints = leaves[:3:3], leaves[3:5:5]
	for range ops {
		w.step()
	}
	roots := []ir.Value{w.floats[len(w.floats)-1], w.ints[len(w.ints)-1], w.pick(w.floats)}
	return graph.FromValues(fmt.Sprintf("random%d", seed), leaves, roots), inputs
}

func (w *writer) dims() []int {
	out := make([]int, w.rng.IntN(4))
	for i := range out {
		out[i] = 1 + w.rng.IntN(6)
	}
	if w.rng.IntN(12) == 0 {
		out = append(out, 100+w.rng.IntN(60))
	}
	return out
}

// pick returns a value, later ones more often, so that chains get long.
func (w *writer) pick(vs []ir.Value) ir.Value {
	return vs[max(w.rng.IntN(len(vs)), w.rng.IntN(len(vs)))]
}

// tame keeps a float value in range; half of the time it is small already.
func (w *writer) tame(x ir.Value) ir.Value {
	if w.rng.IntN(2) == 0 {
		return w.b.Mul(w.b.Tanh(x), w.b.Const(3.0, x.DType()))
	}
	ten := w.b.Const(10.0, x.DType())
	return w.b.Maximum(w.b.Minimum(x, ten), w.b.Neg(ten))
}

func (w *writer) step() {
	x := w.pick(w.floats)
	var y ir.Value
	switch w.rng.IntN(8) {
	case 0:
		w.ints = append(w.ints, w.integer())
		return
	case 1, 2:
		y = w.unary(x)
	case 3, 4:
		y = w.binary(x)
	case 5, 6:
		y = w.move(x)
	default:
		y = w.contract(x)
	}
	w.floats = append(w.floats, y)
}

func (w *writer) unary(x ir.Value) ir.Value {
	b := &w.b
	switch w.rng.IntN(8) {
	case 0:
		return b.Neg(x)
	case 1:
		return b.Relu(x)
	case 2:
		return b.Sin(x)
	case 3:
		return b.Sigmoid(x)
	case 4:
		return b.Exp(b.Neg(b.Abs(x)))
	case 5:
		return b.Log1p(b.Abs(x))
	case 6:
		return b.Cast(x, []ir.DType{ir.F32, ir.F64}[w.rng.IntN(2)])
	}
	return b.Tanh(x)
}

// fitting returns y, or something made of it, that broadcasts with x.
func (w *writer) fitting(x, y ir.Value) ir.Value {
	if _, ok := ir.BroadcastDims(x.Shape(), y.Shape()); ok {
		return y
	}
	if w.rng.IntN(2) == 0 {
		return w.b.Mean(w.b.Cast(y, ir.F32), nil, false)
	}
	return x
}

func (w *writer) binary(x ir.Value) ir.Value {
	b := &w.b
	y := w.fitting(x, w.pick(w.floats))
	switch w.rng.IntN(7) {
	case 0:
		return w.tame(b.Add(x, y))
	case 1:
		return w.tame(b.Sub(x, y))
	case 2:
		return w.tame(b.Mul(x, y))
	case 3:
		return b.Maximum(x, y)
	case 4:
		return b.Div(x, b.Add(b.Mul(y, y), b.Const(1.0, y.DType())))
	case 5:
		n := w.pick(w.ints)
		if _, ok := ir.BroadcastDims(x.Shape(), n.Shape()); ok {
			return w.tame(b.Add(x, n))
		}
		return b.Minimum(x, y)
	}
	return b.Where(w.condition(x, y), x, y)
}

// condition returns a bool, made of integers, that broadcasts with x and y.
func (w *writer) condition(x, y ir.Value) ir.Value {
	n := w.pick(w.ints)
	c := w.b.Gt(n, w.b.Const(0, n.DType()))
	both, _ := ir.BroadcastDims(x.Shape(), y.Shape())
	if _, ok := ir.BroadcastDims(both, c.Shape()); ok {
		return c
	}
	return w.b.Call1(ir.OpAny, []any{c})
}

func (w *writer) move(x ir.Value) ir.Value {
	b := &w.b
	r := x.Rank()
	if r == 0 {
		return b.Expand(x, 1+w.rng.IntN(5))
	}
	d := w.rng.IntN(r)
	n := x.Dim(d)
	switch w.rng.IntN(8) {
	case 0:
		return b.Permute(x, w.rng.Perm(r)...)
	case 1:
		return b.Reshape(x, x.Shape().Numel())
	case 2:
		start := w.rng.IntN(n)
		return b.Slice(x, d, start, n, 1+w.rng.IntN(2))
	case 3:
		return b.Flip(x, d)
	case 4:
		if x.Shape().Numel() < 2000 {
			return b.Cat([]ir.Value{x, b.Neg(x)}, d)
		}
		return x
	case 5:
		return b.PadConst(x, []int{w.rng.IntN(3), w.rng.IntN(2)}, b.Const(0.5, x.DType()))
	case 6:
		i := b.Remainder(b.Iota(1+w.rng.IntN(6), ir.I64), b.Const(n, ir.I64))
		return b.IndexSelect(x, d, i)
	}
	if r < 6 {
		return b.Unsqueeze(x, w.rng.IntN(r+1))
	}
	return b.Reshape(x, -1)
}

// contract reduces or multiplies.
func (w *writer) contract(x ir.Value) ir.Value {
	b := &w.b
	r := x.Rank()
	if r == 0 {
		return b.Cos(x)
	}
	d := w.rng.IntN(r)
	switch w.rng.IntN(6) {
	case 0:
		return b.Mean(x, []int{d}, w.rng.IntN(2) == 0)
	case 1:
		return b.Amax(x, []int{d}, w.rng.IntN(2) == 0)
	case 2:
		return w.tame(b.Sum(x, nil, false))
	case 3:
		return b.Tanh(b.Cumsum(x, d))
	case 4:
		values, _ := b.Sort(x, d, w.rng.IntN(2) == 0)
		return values
	}
	if r >= 2 {
		return b.Tanh(b.MatMul(x, b.Transpose(x, -2, -1)))
	}
	return b.Tanh(b.MatMul(x, x))
}

func (w *writer) integer() ir.Value {
	b := &w.b
	x := w.pick(w.ints)
	seven := b.Const(7, x.DType())
	switch w.rng.IntN(7) {
	case 0:
		return b.Remainder(b.Add(b.Mul(x, x), b.Const(3, x.DType())), seven)
	case 1:
		return b.Maximum(b.Neg(x), x)
	case 2:
		return b.BitwiseXor(x, b.Const(5, x.DType()))
	case 3:
		return b.Cast(b.Sub(x, b.Const(1, x.DType())), []ir.DType{ir.I64, ir.I32}[w.rng.IntN(2)])
	case 4:
		return b.Remainder(b.Sum(x, nil, false), b.Const(7, ir.I64))
	case 5:
		if x.Rank() > 0 {
			return b.Flip(x, 0)
		}
		return b.Expand(x, 3)
	}
	return b.Cast(b.Lt(x, seven), ir.I64)
}
