package native

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

var axes = []loop.Axis{loop.Columns, loop.Rows, loop.Both}

func reduceKernel(axis loop.Axis, op ir.Op, in, out ir.DType, s loop.Stride) *loop.Kernel {
	b := looptest.New(axis)
	x := b.Load(b.Arg(in, s, false))
	v := b.Reduce(op, out, x)
	dst := loop.Unit
	if axis == loop.Rows {
		dst = s
	}
	b.Final(b.StoreOf(b.Arg(out, dst, true), v))
	return &b.Kernel
}

var reduceResults = map[ir.Op]func(d ir.DType) ir.DType{
	aten.Sum:    sumResult,
	aten.Prod:   sumResult,
	aten.Amax:   func(d ir.DType) ir.DType { return d },
	aten.Amin:   func(d ir.DType) ir.DType { return d },
	aten.Argmax: func(ir.DType) ir.DType { return ir.I64 },
	aten.Argmin: func(ir.DType) ir.DType { return ir.I64 },
	aten.Any:    func(ir.DType) ir.DType { return ir.Bool },
	aten.All:    func(ir.DType) ir.DType { return ir.Bool },
}

func sumResult(d ir.DType) ir.DType {
	if d.IsFloat() {
		return d
	}
	return ir.I64
}

func TestReductions(t *testing.T) {
	for _, isa := range Available() {
		for op, result := range reduceResults {
			for _, d := range looptest.Computed {
				for _, axis := range axes {
					testReduction(t, isa, op, d, result(d), axis)
				}
			}
		}
	}
}

func testReduction(t *testing.T, isa ISA, op ir.Op, in, out ir.DType, axis loop.Axis) {
	k := reduceKernel(axis, op, in, out, loop.Unit)
	c, err := Compile(k, isa)
	if errors.Is(err, ErrUnsupported) {
		t.Errorf("%v of %v along %v: %v", op, in, axis, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	fill, ulps := looptest.Elements, 0.0
	if op == aten.Sum || op == aten.Prod {
		fill, ulps = looptest.Moderate, 4
		if in == ir.F64 {
			ulps = 300 // Eval rounds after each element too
		}
	}
	r := rand.New(rand.NewPCG(uint64(op), uint64(in)))
	for _, cols := range lengths() {
		compareRun(t, k, c, looptest.NewGrid(r, k, 1+cols%5, cols, c.SpillBytes(), fill), ulps)
	}
	compareRun(t, k, c, looptest.NewGrid(r, k, 40, 3, c.SpillBytes(), fill), ulps)
	compareRun(t, k, c, looptest.NewGrid(r, k, 2, 131, c.SpillBytes(), fill), ulps)
	free := reduceKernel(axis, op, in, out, loop.Free)
	c, err = Compile(free, isa)
	if err != nil {
		t.Fatal(err)
	}
	compareRun(t, free, c, looptest.NewGrid(r, free, 3, 37, c.SpillBytes(), fill), ulps)
}

// centred is (x - mean)·weight with the mean of each line: two passes, a Final,
// operands that are the same for a line.
func centred(axis loop.Axis, d ir.DType) *loop.Kernel {
	b := looptest.New(axis)
	x := b.Arg(d, loop.Unit, false)
	scale := b.Arg(d, loop.Fixed, false)
	w := b.Arg(d, loop.Unit, false)
	y := b.Arg(d, loop.Unit, true)
	sum := b.Reduce(aten.Sum, d, b.Load(x))
	mean := b.Final(b.ApplyOf(aten.Mul, d, sum, b.Final(b.LoadOf(scale))))
	b.Passes = append(b.Passes, loop.Pass{})
	z := b.Op(aten.Mul, b.Op(aten.Sub, b.Load(x), mean), b.Op(aten.Mul, b.Load(w), b.Op(aten.Abs, b.Load(scale))))
	b.Store(y, z)
	top := b.Reduce(aten.Amax, d, z)
	at := b.Reduce(aten.Argmax, ir.I64, z)
	bottom := b.Reduce(aten.Amin, d, z)
	stride := loop.Unit
	b.Final(b.StoreOf(b.Arg(d, stride, true), b.Final(b.ApplyOf(aten.Sub, d, top, bottom))))
	b.Final(b.StoreOf(b.Arg(ir.I64, stride, true), at))
	return &b.Kernel
}

func TestTwoPasses(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range []ir.DType{ir.F32, ir.F64} {
			for _, axis := range axes {
				k := centred(axis, d)
				k.Args[0].Ahead, k.Args[2].Ahead = true, d == ir.F32
				c, err := Compile(k, isa)
				if err != nil {
					t.Fatal(err)
				}
				// Small integers, so that nothing is rounded.
				fill := func(r *rand.Rand, _ int, d ir.DType, b []byte) {
					x := float64(r.IntN(64) - 32)
					if d == ir.F32 {
						*(*float32)(unsafe.Pointer(&b[0])) = float32(x)
					} else if d == ir.F64 {
						*(*float64)(unsafe.Pointer(&b[0])) = x
					}
				}
				r := rand.New(rand.NewPCG(1, 1))
				for _, cols := range lengths() {
					compareRun(t, k, c, looptest.NewGrid(r, k, 3, cols, c.SpillBytes(), fill), 0)
				}
				compareRun(t, k, c, looptest.NewGrid(r, k, 33, 133, c.SpillBytes(), fill), 0)
			}
		}
	}
}
