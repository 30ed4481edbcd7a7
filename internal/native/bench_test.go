package native

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
	"github.com/loris-ml/loris/ir"
)

// workload is tanh(x·w+b)·sigmoid(x) + relu(x-w).
func workload() *loop.Kernel {
	b := looptest.New(loop.None)
	x, w, c := b.Load(b.Arg(ir.F32, loop.Unit, false)), b.Load(b.Arg(ir.F32, loop.Unit, false)), b.Load(b.Arg(ir.F32, loop.Unit, false))
	t := b.Op(ir.OpTanh, b.Op(ir.OpAdd, b.Op(ir.OpMul, x, w), c))
	y := b.Op(ir.OpAdd, b.Op(ir.OpMul, t, b.Op(ir.OpSigmoid, x)), b.Op(ir.OpRelu, b.Op(ir.OpSub, x, w)))
	b.Store(b.Arg(ir.F32, loop.Unit, true), y)
	return &b.Kernel
}

func addition() *loop.Kernel {
	b := looptest.New(loop.None)
	x, y := b.Load(b.Arg(ir.F32, loop.Unit, false)), b.Load(b.Arg(ir.F32, loop.Unit, false))
	b.Store(b.Arg(ir.F32, loop.Unit, true), b.Op(ir.OpAdd, x, y))
	return &b.Kernel
}

// softmax has the three passes of the package comment of loop.
func softmax() *loop.Kernel {
	b := looptest.New(loop.Columns)
	x, y := b.Arg(ir.F32, loop.Unit, false), b.Arg(ir.F32, loop.Unit, true)
	top := b.Reduce(ir.OpAmax, ir.F32, b.Load(x))
	b.Passes = append(b.Passes, loop.Pass{})
	e := b.Op(ir.OpExp, b.Op(ir.OpSub, b.Load(x), top))
	b.Store(y, e)
	sum := b.Reduce(ir.OpSum, ir.F32, e)
	inverse := b.Final(b.ApplyOf(ir.OpReciprocal, ir.F32, sum))
	b.Passes = append(b.Passes, loop.Pass{})
	b.Store(y, b.Op(ir.OpMul, b.Load(y), inverse))
	return &b.Kernel
}

func unaryF32(op ir.Op) *loop.Kernel {
	b := looptest.New(loop.None)
	b.Store(b.Arg(ir.F32, loop.Unit, true), b.Op(op, b.Load(b.Arg(ir.F32, loop.Unit, false))))
	return &b.Kernel
}

func sumOf(axis loop.Axis) *loop.Kernel {
	return reduceKernel(axis, ir.OpSum, ir.F32, ir.F32, loop.Unit)
}

// BenchmarkRun reports the time of kernels on 64 × 1024 elements, which stay in
// the cache.
func BenchmarkRun(b *testing.B) {
	for _, bench := range []struct {
		name string
		k    *loop.Kernel
	}{
		{"workload", workload()}, {"add", addition()}, {"softmax", softmax()}, {"exp", unaryF32(ir.OpExp)}, {"tanh", unaryF32(ir.OpTanh)},
		{"sigmoid", unaryF32(ir.OpSigmoid)}, {"log", unaryF32(ir.OpLog)}, {"erf", unaryF32(ir.OpErf)},
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
	ops := []ir.Op{ir.OpAdd, ir.OpMul, ir.OpTanh, ir.OpSub, ir.OpMaximum, ir.OpExp}
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
