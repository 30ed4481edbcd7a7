package cpu_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// compileFor builds a Program over the given parameters, optimizes it as the
// executor does, and returns its model and zero inputs.
func compileFor(tb testing.TB, shapes []ir.Shape, aliases []backend.Alias, f func(b *ir.Builder, in []ir.Value) []ir.Value) (backend.Model, []backend.Buffer) {
	tb.Helper()
	ctx := context.Background()
	params := make([]graph.Param, len(shapes))
	for i, s := range shapes {
		params[i] = graph.Param{Name: fmt.Sprintf("p%d", i), Shape: s}
	}
	in := graph.NewParams(params)
	b := &ir.Builder{}
	be := cpu.New()
	p, _ := graph.Optimize(graph.FromValues("bench", in, f(b, in)), graph.Options{Supports: be.Supports})
	m, err := be.Compile(ctx, p, cpu.Device, backend.CompileOptions{Aliases: aliases})
	if err != nil {
		tb.Fatal(err)
	}
	bufs := make([]backend.Buffer, len(shapes))
	for i, s := range shapes {
		data := make([]byte, s.Bytes())
		if bufs[i], err = be.Upload(ctx, s, cpu.Device, data); err != nil {
			tb.Fatal(err)
		}
	}
	return m, bufs
}

func benchRun(b *testing.B, m backend.Model, in []backend.Buffer) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		outs, err := m.Run(ctx, in, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range outs {
			o.Release()
		}
	}
}

func call(b *ir.Builder, name string, args ...any) ir.Value {
	op, ok := ir.Lookup(name)
	if !ok {
		panic(name)
	}
	return b.Call1(op, args)
}

// mlpStep is one step of gradient descent with momentum of a classifier with
// two hidden layers: parameters and their velocities, then the loss and both
// updated.
func mlpStep(b *ir.Builder, in []ir.Value) []ir.Value {
	const layers = 3
	x, y, params, velocities := in[0], in[1], in[2:2+2*layers], in[2+2*layers:]
	h := x
	for i := range layers {
		if i > 0 {
			h = b.Unary(aten.Relu, h)
		}
		h = b.Add(b.MatMul(h, params[2*i]), params[2*i+1])
	}
	loss := call(b, "cross_entropy", h, y)
	var w graph.Walker
	grads := graph.Grad(b, &w, []ir.Value{loss}, []ir.Value{b.Full(nil, 1.0, loss.DType())}, params)
	outs := []ir.Value{loss}
	for i, g := range grads {
		v := b.Add(b.Mul(velocities[i], b.Const(0.9, ir.F32)), g)
		outs = append(outs, b.Sub(params[i], b.Mul(v, b.Const(0.1, ir.F32))), v)
	}
	return outs
}

func mlpShapes(batch int) []ir.Shape {
	shapes := []ir.Shape{ir.MakeShape(ir.F32, batch, 784), ir.MakeShape(ir.I64, batch)}
	for range 2 { // parameters and velocities
		for _, d := range [][2]int{{784, 512}, {512, 512}, {512, 10}} {
			shapes = append(shapes, ir.MakeShape(ir.F32, d[0], d[1]), ir.MakeShape(ir.F32, d[1]))
		}
	}
	return shapes
}

func BenchmarkMLPStep(b *testing.B) {
	for _, batch := range []int{1, 128} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			m, in := compileFor(b, mlpShapes(batch), nil, mlpStep)
			defer m.Close()
			benchRun(b, m, in)
		})
	}
}

// BenchmarkChain is tanh(x·w+b)·sigmoid(x)+relu(x−w), which runs as one kernel.
func BenchmarkChain(b *testing.B) {
	for _, n := range []int{1 << 20, 1 << 24} {
		b.Run(fmt.Sprint(n>>20, "M"), func(b *testing.B) {
			s := ir.MakeShape(ir.F32, n)
			m, in := compileFor(b, []ir.Shape{s, s, s}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
				x, w, c := in[0], in[1], in[2]
				return []ir.Value{b.Add(b.Mul(b.Unary(aten.Tanh, b.Add(b.Mul(x, w), c)), b.Unary(aten.Sigmoid, x)), b.Unary(aten.Relu, b.Sub(x, w)))}
			})
			defer m.Close()
			b.SetBytes(int64(s.Bytes()))
			benchRun(b, m, in)
		})
	}
}

// BenchmarkRows is what works on rows of a [4096, 1024] matrix.
func BenchmarkRows(b *testing.B) {
	x, w := ir.MakeShape(ir.F32, 4096, 1024), ir.MakeShape(ir.F32, 1024)
	for _, c := range []struct {
		name string
		f    func(b *ir.Builder, in []ir.Value) ir.Value
	}{
		{"softmax", func(b *ir.Builder, in []ir.Value) ir.Value { return call(b, "softmax", in[0], -1) }},
		{"layer norm", func(b *ir.Builder, in []ir.Value) ir.Value {
			return call(b, "layer_norm", in[0], []int{1024}, in[1], in[2])
		}},
		{"sum of rows", func(b *ir.Builder, in []ir.Value) ir.Value { return call(b, "sum", in[0], []int{1}) }},
		{"sum of columns", func(b *ir.Builder, in []ir.Value) ir.Value { return call(b, "sum", in[0], []int{0}) }},
		{"sum of all", func(b *ir.Builder, in []ir.Value) ir.Value { return call(b, "sum", in[0], nil) }},
		{"add", func(b *ir.Builder, in []ir.Value) ir.Value { return b.Add(in[0], in[1]) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			m, in := compileFor(b, []ir.Shape{x, w, w}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{c.f(b, in)}
			})
			defer m.Close()
			b.SetBytes(int64(x.Bytes()))
			benchRun(b, m, in)
		})
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, n := range []int{64, 512, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := ir.MakeShape(ir.F32, n, n)
			m, in := compileFor(b, []ir.Shape{s, s}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{b.MatMul(in[0], in[1])}
			})
			defer m.Close()
			benchRun(b, m, in)
			b.ReportMetric(2*float64(n*n*n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}

func BenchmarkConv(b *testing.B) {
	m, in := compileFor(b, []ir.Shape{ir.MakeShape(ir.F32, 8, 32, 28, 28), ir.MakeShape(ir.F32, 64, 32, 3, 3)}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{b.Call1(aten.Convolution, []any{in[0], in[1], nil, []int{1, 1}, []int{1, 1}, []int{1, 1}, false, []int{0, 0}, 1})}
	})
	defer m.Close()
	benchRun(b, m, in)
	b.ReportMetric(2*8*64*784*288*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
