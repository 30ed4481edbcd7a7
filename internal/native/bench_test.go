package native

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// workload is tanh(x·w+b)·sigmoid(x) + relu(x-w).
func workload() *loop.Kernel {
	b := looptest.New(loop.None)
	x, w, c := b.Load(b.Arg(ir.F32, loop.Unit, false)), b.Load(b.Arg(ir.F32, loop.Unit, false)), b.Load(b.Arg(ir.F32, loop.Unit, false))
	t := b.Op(aten.Tanh, b.Op(aten.Add, b.Op(aten.Mul, x, w), c))
	y := b.Op(aten.Add, b.Op(aten.Mul, t, b.Op(aten.Sigmoid, x)), b.Op(aten.Relu, b.Op(aten.Sub, x, w)))
	b.Store(b.Arg(ir.F32, loop.Unit, true), y)
	return &b.Kernel
}

func addition() *loop.Kernel {
	b := looptest.New(loop.None)
	x, y := b.Load(b.Arg(ir.F32, loop.Unit, false)), b.Load(b.Arg(ir.F32, loop.Unit, false))
	b.Store(b.Arg(ir.F32, loop.Unit, true), b.Op(aten.Add, x, y))
	return &b.Kernel
}

// softmax has the three passes of the package comment of loop.
func softmax() *loop.Kernel {
	b := looptest.New(loop.Columns)
	x, y := b.Arg(ir.F32, loop.Unit, false), b.Arg(ir.F32, loop.Unit, true)
	top := b.Reduce(aten.Amax, ir.F32, b.Load(x))
	b.Passes = append(b.Passes, loop.Pass{})
	e := b.Op(aten.Exp, b.Op(aten.Sub, b.Load(x), top))
	b.Store(y, e)
	sum := b.Reduce(aten.Sum, ir.F32, e)
	inverse := b.Final(b.ApplyOf(aten.Reciprocal, ir.F32, sum))
	b.Passes = append(b.Passes, loop.Pass{})
	b.Store(y, b.Op(aten.Mul, b.Load(y), inverse))
	return &b.Kernel
}

func unaryF32(op ir.Op) *loop.Kernel {
	b := looptest.New(loop.None)
	b.Store(b.Arg(ir.F32, loop.Unit, true), b.Op(op, b.Load(b.Arg(ir.F32, loop.Unit, false))))
	return &b.Kernel
}

func sumOf(axis loop.Axis) *loop.Kernel {
	return reduceKernel(axis, aten.Sum, ir.F32, ir.F32, loop.Unit)
}

// BenchmarkRun reports the time of kernels on 64 × 1024 elements, which stay in
// the cache.
func BenchmarkRun(b *testing.B) {
	for _, bench := range []struct {
		name string
		k    *loop.Kernel
	}{
		{"workload", workload()}, {"add", addition()}, {"softmax", softmax()}, {"exp", unaryF32(aten.Exp)}, {"tanh", unaryF32(aten.Tanh)},
		{"sigmoid", unaryF32(aten.Sigmoid)}, {"log", unaryF32(aten.Log)}, {"erf", unaryF32(aten.Erf)},
		{"sum columns", sumOf(loop.Columns)}, {"sum rows", sumOf(loop.Rows)}, {"sum both", sumOf(loop.Both)},
	} {
		for _, isa := range Available() {
			b.Run(bench.name+"/"+isa.String(), func(b *testing.B) {
				c, err := Compile(bench.k, isa)
				if err != nil {
					b.Fatal(err)
				}
				const rows, cols = 64, 1024
				f := loop.Frame{Rows: rows, Cols: cols, Spill: looptest.Aligned(c.SpillBytes())}
				r := rand.New(rand.NewPCG(1, 1))
				for i := range bench.k.Args {
					data := make([]float32, rows*cols)
					for j := range data {
						data[j] = float32(r.NormFloat64())
					}
					f.Ptr[i], f.Row[i] = unsafe.Pointer(&data[0]), 4*cols
				}
				for b.Loop() {
					c.Run(&f)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*cols), "ns/element")
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	k := looptest.New(loop.None)
	x, y := k.Load(k.Arg(ir.F32, loop.Unit, false)), k.Load(k.Arg(ir.F32, loop.Unit, false))
	v := x
	ops := []ir.Op{aten.Add, aten.Mul, aten.Tanh, aten.Sub, aten.Maximum, aten.Exp}
	for i := range 30 {
		if op := ops[i%len(ops)]; len(op.Spec().Schema.Params) == 2 {
			v = k.Op(op, v, y)
		} else {
			v = k.Op(op, v)
		}
	}
	k.Store(k.Arg(ir.F32, loop.Unit, true), v)
	for _, bench := range []struct {
		name string
		k    *loop.Kernel
	}{{"30 ops", &k.Kernel}, {"workload", workload()}, {"add", addition()}, {"softmax", softmax()}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Compile(bench.k, Available()[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
