package ir_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// data is a test operand: f64 (differentiated), i64 or bool elements.
type data struct {
	dtype ir.DType
	dims  []int
	vals  []float64
}

func fs(dims []int, vals ...float64) data  { return data{ir.F64, dims, vals} }
func is(dims []int, vals ...float64) data  { return data{ir.I64, dims, vals} }
func vec(vals ...float64) data             { return fs([]int{len(vals)}, vals...) }
func ivec(vals ...float64) data            { return is([]int{len(vals)}, vals...) }
func bools(dims []int, v ...float64) data  { return data{ir.Bool, dims, v} }
func rnd(rng *rand.Rand, dims ...int) data { return random(rng, ir.MakeShape(ir.F64, dims...)) }

func random(rng *rand.Rand, s ir.Shape) data {
	d := data{s.DType(), s.Dims(), make([]float64, s.Numel())}
	for i := range d.vals {
		d.vals[i] = rng.NormFloat64()
	}
	return d
}

func (d data) bytes() []byte {
	var b []byte
	for _, v := range d.vals {
		switch d.dtype {
		case ir.F64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case ir.I64:
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(v)))
		default:
			b = append(b, byte(v))
		}
	}
	return b
}

// opCall is one use of an op on data: args are data, []data,
// attributes, or either by name.
type opCall struct {
	build func(b *ir.Builder, vals []ir.Value) []ir.Value // in the place of op on args
	op    string
	args  []any
}

func call(op string, args ...any) opCall { return opCall{op: op, args: args} }

// operands lists the call's data in order.
func (c opCall) operands() []data {
	var ds []data
	for _, a := range c.args {
		switch a := a.(type) {
		case data:
			ds = append(ds, a)
		case []data:
			ds = append(ds, a...)
		case ir.Named:
			if d, ok := a.Value.(data); ok {
				ds = append(ds, d)
			}
		}
	}
	return ds
}

// record makes the call on the values that stand for its operands.
func (c opCall) record(b *ir.Builder, vals []ir.Value) []ir.Value {
	if c.build != nil {
		return c.build(b, vals)
	}
	op, ok := ir.Lookup(c.op)
	if !ok {
		panic("no op " + c.op)
	}
	var pos []any
	var named []ir.Named
	for _, a := range c.args {
		switch a := a.(type) {
		case data:
			pos, vals = append(pos, vals[0]), vals[1:]
		case []data:
			pos, vals = append(pos, append([]ir.Value{}, vals[:len(a)]...)), vals[len(a):]
		case ir.Named:
			if _, ok := a.Value.(data); ok {
				a.Value, vals = vals[0], vals[1:]
			}
			named = append(named, a)
		default:
			pos = append(pos, a)
		}
	}
	return b.Call(op, pos, named...)
}

func params(ds []data) []graph.Param {
	ps := make([]graph.Param, len(ds))
	for i, d := range ds {
		ps[i] = graph.Param{Name: fmt.Sprintf("x%d", i), Shape: ir.MakeShape(d.dtype, d.dims...)}
	}
	return ps
}

func rawBytes(ds []data) [][]byte {
	raw := make([][]byte, len(ds))
	for i, d := range ds {
		raw[i] = d.bytes()
	}
	return raw
}

func evalError(p *graph.Program, ds []data) error {
	_, err := ref.Eval(p, rawBytes(ds))
	return err
}

func eval(t testing.TB, p *graph.Program, ds []data) [][]float64 {
	t.Helper()
	outs, err := ref.Eval(p, rawBytes(ds))
	if err != nil {
		t.Fatal(err)
	}
	vals := make([][]float64, len(outs))
	for i, o := range outs {
		s := p.Shape(p.Returns[i])
		vals[i] = make([]float64, s.Numel())
		for j := range vals[i] {
			switch s.DType() {
			case ir.F64:
				vals[i][j] = math.Float64frombits(binary.LittleEndian.Uint64(o[8*j:]))
			case ir.I64:
				vals[i][j] = float64(int64(binary.LittleEndian.Uint64(o[8*j:])))
			default:
				vals[i][j] = float64(o[j])
			}
		}
	}
	return vals
}

func lowered(p *graph.Program) *graph.Program {
	p, _ = graph.Optimize(p, graph.Options{NoRules: true})
	return p
}

// gradients is the Program that checks one call: from the operands, then
// cotangents c of the float outputs, then directions v for the float operands,
// it returns L = Σ out·c, H = Σ dL/dx·v, then each dL/dx, then each dH/dx.
type gradients struct {
	p      *graph.Program
	inputs []data
	wrt    []int // the operands that are differentiated
}

func newGradients(c opCall, rng *rand.Rand) gradients {
	g := gradients{inputs: c.operands()}
	n := len(g.inputs)
	probe := c.record(&ir.Builder{}, graph.NewParams(params(g.inputs)))
	for _, o := range probe {
		if o.DType() == ir.F64 {
			g.inputs = append(g.inputs, random(rng, o.Shape()))
		}
	}
	for i, d := range g.inputs[:n] {
		if d.dtype == ir.F64 {
			g.wrt = append(g.wrt, i)
			g.inputs = append(g.inputs, random(rng, ir.MakeShape(ir.F64, d.dims...)))
		}
	}
	var b ir.Builder
	var w graph.Walker
	w.Walk(nil) // the Program's own walk below must not take this one's marks for its own
	vals := graph.NewParams(params(g.inputs))
	rest := vals[n:]
	dot := func(x, y ir.Value) ir.Value { return b.Sum(b.Mul(x, y), nil, false) }
	var outs, cots, wrt []ir.Value
	l, h := b.Const(0, ir.F64), b.Const(0, ir.F64)
	for _, o := range c.record(&b, vals) {
		if o.DType() == ir.F64 {
			outs, cots = append(outs, o), append(cots, rest[0])
			l, rest = b.Add(l, dot(o, rest[0])), rest[1:]
		}
	}
	for _, i := range g.wrt {
		wrt = append(wrt, vals[i])
	}
	first := graph.Grad(&b, &w, outs, cots, wrt)
	for i, gx := range first {
		h = b.Add(h, dot(gx, rest[i]))
	}
	second := graph.Grad(&b, &w, []ir.Value{h}, nil, wrt)
	g.p = lowered(graph.FromValues(c.op, vals, append(append([]ir.Value{l, h}, first...), second...)))
	return g
}

// check compares gradients (order 1) or also those of gradients (order 2) with
// central differences.
func (g gradients) check(t *testing.T, order int) {
	t.Helper()
	const h, tol = 1e-5, 1e-6
	at := eval(t, g.p, g.inputs)
	moved := func(i, j int, by float64) (l, h float64) {
		ds := append([]data(nil), g.inputs...)
		ds[i].vals = append([]float64(nil), ds[i].vals...)
		ds[i].vals[j] += by
		out := eval(t, g.p, ds)
		return out[0][0], out[1][0]
	}
	for k, i := range g.wrt {
		for j := range g.inputs[i].vals {
			l1, h1 := moved(i, j, h)
			l0, h0 := moved(i, j, -h)
			want := []float64{(l1 - l0) / (2 * h), (h1 - h0) / (2 * h)}
			got := []float64{at[2+k][j], at[2+len(g.wrt)+k][j]}
			for o := range order {
				if !(math.Abs(got[o]-want[o]) <= tol*max(1, math.Abs(want[o]))*float64(1+99*o)) {
					t.Errorf("order %d, operand %d, element %d: gradient %v, differences say %v", o+1, i, j, got[o], want[o])
				}
			}
		}
	}
}
