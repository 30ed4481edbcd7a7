package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// programs runs random Programs: chains of ops of all families, in which a
// backend may fuse, reorder and reuse memory. Each is a function of its number.
func (s *suite) programs(t *testing.T) {
	n := uint64(400)
	if !longtest.Enabled() {
		n = 60
	}
	for i := range n {
		if err := CheckProgram(i, 5+int(i%30), s.d, s.b); err != nil {
			t.Errorf("program %d: %v", i, err)
		}
	}
}

// CheckProgram runs the random Program of a seed, of about the given number of ops,
// on device d of each backend, and returns an error that says where the results of
// one are not ref's.
func CheckProgram(seed uint64, ops int, d ir.Device, backends ...backend.Backend) error {
	p, inputs := RandomProgram(seed, ops)
	want, err := ref.Eval(p, inputs)
	if err != nil {
		return fmt.Errorf("ref: %w\n%s", err, p)
	}
	for i, b := range backends {
		s := suite{b: b, d: d}
		got, err := s.run(context.Background(), p, inputs)
		if err != nil {
			return fmt.Errorf("backend %d: %w\n%s", i, err, p)
		}
		c := comparison{rtol: 1e-3, atol: 1e-3}
		if msg := c.diff(p, got, want); msg != "" {
			return fmt.Errorf("backend %d: %s\n%s", i, msg, p)
		}
	}
	return nil
}

// gradients runs the gradients of random Programs: the graphs that training
// makes. Where ref itself moves when the inputs move by a rounding error (at a
// kink of relu or a tie of a maximum), a Program is left out.
func (s *suite) gradients(t *testing.T) {
	n := uint64(150)
	if !longtest.Enabled() {
		n = 30
	}
	used := uint64(0)
	for i := range n {
		p, inputs := RandomGradient(1000+i, 4+int(i%12))
		want, err := ref.Eval(p, inputs)
		if err != nil {
			t.Fatalf("gradient %d: %v", i, err)
		}
		moved, err := ref.Eval(p, perturbed(i, p, inputs))
		if err != nil {
			t.Fatalf("gradient %d: %v", i, err)
		}
		if (&comparison{rtol: 1e-3, atol: 1e-3}).diff(p, moved, want) != "" {
			continue
		}
		used++
		got, err := s.run(context.Background(), p, inputs)
		if err != nil {
			t.Errorf("gradient %d: %v\n%s", i, err, p)
			continue
		}
		c := comparison{rtol: 5e-3, atol: 5e-3}
		if msg := c.diff(p, got, want); msg != "" {
			t.Errorf("gradient %d: %s\n%s", i, msg, p)
		}
	}
	if used < n/2 {
		t.Errorf("only %d of %d gradients are well-conditioned", used, n)
	}
}

// perturbed returns the inputs with each float moved by about an f32 rounding.
func perturbed(seed uint64, p *graph.Program, inputs [][]byte) [][]byte {
	rng := rand.New(rand.NewPCG(seed, 3))
	out := make([][]byte, len(inputs))
	for i, raw := range inputs {
		out[i] = raw
		if d := p.Params[i].Shape.DType(); d.IsFloat() {
			v := elements.DecodeFloats(d, raw)
			for k := range v {
				v[k] *= 1 + (rng.Float64()-0.5)*1e-6
			}
			out[i] = elements.EncodeFloats(d, v)
		}
	}
	return out
}

// writer grows a random Program. All its float values stay within about ±10,
// and no value that a rounding error can change decides anything: conditions
// and indices come from integers.
type writer struct {
	b      ir.Builder
	rng    *rand.Rand
	floats []ir.Value // f32 or f64
	ints   []ir.Value // i64 or i32, small
	params []ir.Value
	inputs [][]byte // of the params
}

// RandomProgram returns a Program of about the given number of ops, with
// inputs, which is a function of seed. It is well-conditioned: backends that
// meet ref's accuracy op by op agree with it to 1e-3.
func RandomProgram(seed uint64, ops int) (*graph.Program, [][]byte) {
	w := write(seed, ops)
	roots := []ir.Value{w.floats[len(w.floats)-1], w.ints[len(w.ints)-1], w.pick(w.floats)}
	return graph.FromValues(fmt.Sprintf("random%d", seed), w.params, roots), w.inputs
}

// RandomGradient returns the Program of the gradients of a RandomProgram's sum
// of squares with respect to its float parameters.
func RandomGradient(seed uint64, ops int) (*graph.Program, [][]byte) {
	w := write(seed, ops)
	y := w.b.Unary(aten.Tanh, w.b.Cast(w.floats[len(w.floats)-1], ir.F32))
	loss := w.b.Mean(w.b.Mul(y, y), nil, false)
	var walker graph.Walker
	grads := graph.Grad(&w.b, &walker, []ir.Value{loss}, nil, w.params[:3])
	return graph.FromValues(fmt.Sprintf("gradient%d", seed), w.params, append(grads, loss)), w.inputs
}

// mostElements bounds each value of a random Program and mostProducts the
// multiplications of each of its matrix products: chains of broadcasts and of
// products with a value's own transpose would grow until ref takes minutes.
const (
	mostElements = 1 << 15
	mostProducts = 1 << 20
)

// write makes the parameters, with data, and the ops of a random Program.
func write(seed uint64, ops int) *writer {
	w := &writer{rng: rand.New(rand.NewPCG(seed, 99))}
	w.b.Lines = ir.LinesOff
	var params []graph.Param
	for i, d := range []ir.DType{ir.F32, ir.F32, ir.F64, ir.I64, ir.I32} {
		x := random(w.rng, d, w.dims()...)
		params = append(params, graph.Param{Name: fmt.Sprintf("in%d", i), Shape: x.shape})
		w.inputs = append(w.inputs, x.data)
	}
	w.params = graph.NewParams(params)
	w.floats, w.ints = w.params[:3:3], w.params[3:5:5]
	for range ops {
		w.step()
	}
	return w
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
		return w.b.Mul(w.b.Unary(aten.Tanh, x), w.b.Const(3.0, x.DType()))
	}
	ten := w.b.Const(10.0, x.DType())
	return w.b.Binary(aten.Maximum, w.b.Binary(aten.Minimum, x, ten), w.b.Neg(ten))
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
	if y.Shape().Numel() > mostElements {
		y = w.b.Unary(aten.Cos, x)
	}
	w.floats = append(w.floats, y)
}

func (w *writer) unary(x ir.Value) ir.Value {
	b := &w.b
	switch w.rng.IntN(8) {
	case 0:
		return b.Neg(x)
	case 1:
		return b.Unary(aten.Relu, x)
	case 2:
		return b.Unary(aten.Sin, x)
	case 3:
		return b.Unary(aten.Sigmoid, x)
	case 4:
		return b.Exp(b.Neg(b.Unary(aten.Abs, x)))
	case 5:
		return b.Unary(aten.Log1p, b.Unary(aten.Abs, x))
	case 6:
		return b.Cast(x, []ir.DType{ir.F32, ir.F64}[w.rng.IntN(2)])
	}
	return b.Unary(aten.Tanh, x)
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
		return b.Binary(aten.Maximum, x, y)
	case 4:
		return b.Div(x, b.Add(b.Mul(y, y), b.Const(1.0, y.DType())))
	case 5:
		n := w.pick(w.ints)
		if _, ok := ir.BroadcastDims(x.Shape(), n.Shape()); ok {
			return w.tame(b.Add(x, n))
		}
		return b.Binary(aten.Minimum, x, y)
	}
	return b.Where(w.condition(x, y), x, y)
}

// condition returns a bool, made of integers, that broadcasts with x and y.
func (w *writer) condition(x, y ir.Value) ir.Value {
	n := w.pick(w.ints)
	c := w.b.Binary(aten.Gt, n, w.b.Const(0, n.DType()))
	both, _ := ir.BroadcastDims(x.Shape(), y.Shape())
	if _, ok := ir.BroadcastDims(both, c.Shape()); ok {
		return c
	}
	return w.b.Call1(aten.Any, []any{c})
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
		i := b.Binary(aten.Remainder, b.Iota(1+w.rng.IntN(6), ir.I64), b.Const(n, ir.I64))
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
		return b.Unary(aten.Cos, x)
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
		return b.Unary(aten.Tanh, b.Cumsum(x, d))
	case 4:
		values, _ := b.Sort(x, d, w.rng.IntN(2) == 0)
		return values
	}
	if r >= 2 {
		if x.Shape().Numel()*x.Dim(-2) > mostProducts {
			return b.Unary(aten.Cos, x)
		}
		return b.Unary(aten.Tanh, b.MatMul(x, b.Transpose(x, -2, -1)))
	}
	return b.Unary(aten.Tanh, b.MatMul(x, x))
}

func (w *writer) integer() ir.Value {
	b := &w.b
	x := w.pick(w.ints)
	seven := b.Const(7, x.DType())
	switch w.rng.IntN(7) {
	case 0:
		return b.Binary(aten.Remainder, b.Add(b.Mul(x, x), b.Const(3, x.DType())), seven)
	case 1:
		return b.Binary(aten.Maximum, b.Neg(x), x)
	case 2:
		return b.Binary(aten.BitwiseXor, x, b.Const(5, x.DType()))
	case 3:
		return b.Cast(b.Sub(x, b.Const(1, x.DType())), []ir.DType{ir.I64, ir.I32}[w.rng.IntN(2)])
	case 4:
		return b.Binary(aten.Remainder, b.Sum(x, nil, false), b.Const(7, ir.I64))
	case 5:
		if x.Rank() > 0 {
			return b.Flip(x, 0)
		}
		return b.Expand(x, 3)
	}
	return b.Cast(b.Binary(aten.Lt, x, seven), ir.I64)
}
