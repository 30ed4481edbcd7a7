package native

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// sumBeside sums up an operand, beside so many functions of each element that are reduced, too.
func sumBeside(axis loop.Axis, d ir.DType, bits uint64, functions int) *loop.Kernel {
	b := looptest.New(axis)
	x := b.Load(b.Arg(d, loop.Unit, false))
	compute := loop.ComputeDType(d)
	v := b.Add(loop.Instr{Code: loop.Reduce, Op: aten.Sum, DType: compute, In: [3]loop.Value{x}, N: 1, Bits: bits})
	b.Final(b.StoreOf(b.Arg(compute, loop.Unit, true), v))
	for range functions {
		y := b.Op(aten.Exp, b.Op(aten.Sin, b.Op(aten.Neg, x)))
		b.Final(b.StoreOf(b.Arg(compute, loop.Unit, true), b.Reduce(aten.Amax, compute, y)))
	}
	return &b.Kernel
}

// TestSumsAreOfTheirOwn holds that sums have the same bits whatever else is in their kernel, which decides how
// often its body is repeated, and that those of narrow floats are of f32s.
func TestSumsAreOfTheirOwn(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
			bits := uint64(0)
			if d.Size() == 2 {
				bits = loop.NarrowSum
			}
			for _, axis := range axes {
				alone := sumBeside(axis, d, bits, 0)
				c, err := Compile(alone, isa)
				if err != nil {
					t.Fatal(err)
				}
				for _, functions := range []int{1, 4} {
					k := sumBeside(axis, d, bits, functions)
					beside, err := Compile(k, isa)
					if err != nil {
						t.Fatal(err)
					}
					for cols := 1; cols < 150; cols += 1 + cols/9 {
						rows := 1 + cols%7
						x, y := looptest.NewGrid(rand.New(rand.NewPCG(1, 1)), alone, rows, cols, c.SpillBytes(), narrowNumbers), looptest.NewGrid(rand.New(rand.NewPCG(1, 1)), k, rows, cols, beside.SpillBytes(), narrowNumbers)
						compareRun(t, alone, c, x, 1000)
						compareRun(t, k, beside, y, 1000)
						sameSums(t, x, y, alone, k)
					}
				}
			}
		}
	}
}

// narrowNumbers writes numbers of any sign with few bits, of which f32s lose some when they are summed up.
func narrowNumbers(r *rand.Rand, _ int, d ir.DType, b []byte) {
	x := (r.Float64() + 0.25) * float64(1+r.IntN(300))
	switch d {
	case ir.F16:
		binary.LittleEndian.PutUint16(b, half.F64ToF16(x))
	case ir.BF16:
		binary.LittleEndian.PutUint16(b, half.F64ToBF16(x))
	case ir.F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(x)))
	default:
		binary.LittleEndian.PutUint64(b, math.Float64bits(x))
	}
}

// sameSums holds that the first results of two runs are equal.
func sameSums(t *testing.T, x, y *looptest.Grid, k, l *loop.Kernel) {
	t.Helper()
	lines := x.Rows
	if k.Axis == loop.Rows {
		lines = x.Cols
	}
	if k.Axis == loop.Both {
		lines = 1
	}
	size := k.Args[1].DType.Size()
	for i := range lines {
		at, to := i*x.Frame[0].Row[1], i*y.Frame[0].Row[1]
		if k.Axis == loop.Rows {
			at, to = i*size, i*size
		}
		if a, b := x.Data[0][1][at:at+size], y.Data[0][1][to:to+size]; !bytes.Equal(a, b) {
			t.Fatalf("%d×%d: sum %d is %x alone and %x beside others\n%v", x.Rows, x.Cols, i, a, b, l)
		}
	}
}
