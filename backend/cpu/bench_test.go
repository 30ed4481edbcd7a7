package cpu_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
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

// mlpStep is one step of gradient descent of a 64-128-10 classifier.
func mlpStep(b *ir.Builder, in []ir.Value) []ir.Value {
	x, y, params := in[0], in[1], in[2:]
	h := b.Relu(b.Add(b.MatMul(x, params[0]), params[1]))
	loss := call(b, "cross_entropy", b.Add(b.MatMul(h, params[2]), params[3]), y)
	var w graph.Walker
	grads := graph.Grad(b, &w, []ir.Value{loss}, []ir.Value{b.FullLike(loss, 1.0)}, params)
	outs := []ir.Value{loss}
	for i, g := range grads {
		outs = append(outs, b.Sub(params[i], b.Mul(g, b.Const(0.1, ir.F32))))
	}
	return outs
}

func mlpShapes(batch int) []ir.Shape {
	return []ir.Shape{
		ir.MakeShape(ir.F32, batch, 64), ir.MakeShape(ir.I64, batch),
		ir.MakeShape(ir.F32, 64, 128), ir.MakeShape(ir.F32, 128), ir.MakeShape(ir.F32, 128, 10), ir.MakeShape(ir.F32, 10),
	}
}

func BenchmarkMLPStep(b *testing.B) {
	for _, batch := range []int{1, 32, 256} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			m, in := compileFor(b, mlpShapes(batch), nil, mlpStep)
			defer m.Close()
			benchRun(b, m, in)
		})
	}
}

// BenchmarkChain is ten arithmetic ops on a million elements, which run as one.
func BenchmarkChain(b *testing.B) {
	s := ir.MakeShape(ir.F32, 1000, 1000)
	m, in := compileFor(b, []ir.Shape{s, s, ir.MakeShape(ir.F32, 1000)}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
		x := in[0]
		for range 5 {
			x = b.Add(b.Mul(x, in[1]), in[2])
		}
		return []ir.Value{x}
	})
	defer m.Close()
	b.SetBytes(int64(s.Bytes()))
	benchRun(b, m, in)
}

func BenchmarkSoftmax(b *testing.B) {
	s := ir.MakeShape(ir.F32, 256, 1000)
	m, in := compileFor(b, []ir.Shape{s}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{call(b, "softmax", in[0], -1)}
	})
	defer m.Close()
	b.SetBytes(int64(s.Bytes()))
	benchRun(b, m, in)
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

func BenchmarkSum(b *testing.B) {
	for _, axis := range []any{nil, []int{0}, []int{1}} {
		b.Run(fmt.Sprint(axis), func(b *testing.B) {
			s := ir.MakeShape(ir.F32, 1000, 1000)
			m, in := compileFor(b, []ir.Shape{s}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
				return []ir.Value{call(b, "sum", in[0], axis)}
			})
			defer m.Close()
			b.SetBytes(int64(s.Bytes()))
			benchRun(b, m, in)
		})
	}
}

func BenchmarkConv(b *testing.B) {
	m, in := compileFor(b, []ir.Shape{ir.MakeShape(ir.F32, 8, 32, 28, 28), ir.MakeShape(ir.F32, 64, 32, 3, 3)}, nil, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{b.Call1(ir.OpConvolution, []any{in[0], in[1], nil, []int{1, 1}, []int{1, 1}, []int{1, 1}, false, []int{0, 0}, 1})}
	})
	defer m.Close()
	benchRun(b, m, in)
	b.ReportMetric(2*8*64*784*288*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
