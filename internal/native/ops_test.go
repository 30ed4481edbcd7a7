package native

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// functions returns the functions of one float that have native code for d on an instruction set.
func functions(isa ISA, d ir.DType) (ops []ir.Op) {
	for _, sp := range ir.Ops() {
		if sp.Category != ir.Pointwise || sp.ULPs == 0 || len(sp.Schema.Params) != 1 {
			continue
		}
		if _, err := Compile(kernelOf(sp, d, loop.Unit, loop.Unit), isa); err == nil {
			ops = append(ops, sp.Op)
		}
	}
	return ops
}

// kernelOf makes a kernel of one op on operands with the strides.
func kernelOf(sp *ir.Spec, d ir.DType, in, out loop.Stride) *loop.Kernel {
	b := looptest.New(loop.None)
	n := len(sp.Schema.Params)
	var x []loop.Value
	for i := range n {
		stride := in
		if i == 1 && in == loop.Fixed {
			stride = loop.Unit // one of two is broadcast
		}
		x = append(x, b.Load(b.Arg(d, stride, false)))
	}
	result := d
	if sp.Predicate {
		result = ir.Bool
	}
	b.Store(b.Arg(result, out, true), b.Op(sp.Op, x...))
	return &b.Kernel
}

// TestOps runs every op that is native on every dtype, on all strides and lengths.
func TestOps(t *testing.T) {
	for _, isa := range Available() {
		n := 0
		for _, sp := range ir.Ops() {
			if sp.Category != ir.Pointwise || sp.Composite() || sp.Op == aten.Cast || sp.Op == aten.Where {
				continue
			}
			for _, d := range looptest.Stored {
				if !looptest.Defined(sp, d) {
					continue
				}
				n += testOp(t, isa, sp, d)
			}
		}
		if n < 150 {
			t.Errorf("%v: only %d ops are native", isa, n)
		}
	}
}

func testOp(t *testing.T, isa ISA, sp *ir.Spec, d ir.DType) int {
	k := kernelOf(sp, d, loop.Unit, loop.Unit)
	c, err := Compile(k, isa)
	if errors.Is(err, ErrUnsupported) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	ulps := sp.Tolerance(d)
	r := rand.New(rand.NewPCG(uint64(sp.Op), uint64(d)))
	fill := looptest.Elements
	if sp.Divides {
		fill = divisors
	}
	for _, cols := range lengths() {
		compareRun(t, k, c, looptest.NewGrid(r, k, 2, cols, c.SpillBytes(), fill), ulps)
	}
	compareRun(t, k, c, looptest.NewGrid(r, k, 1, 531, c.SpillBytes(), fill), ulps)
	for _, s := range [][2]loop.Stride{{loop.Free, loop.Unit}, {loop.Unit, loop.Free}, {loop.Fixed, loop.Unit}} {
		k := kernelOf(sp, d, s[0], s[1])
		c, err := Compile(k, isa)
		if err != nil {
			t.Fatal(err)
		}
		compareRun(t, k, c, looptest.NewGrid(r, k, 3, 37, c.SpillBytes(), fill), ulps)
	}
	return 1
}

func TestCasts(t *testing.T) {
	for _, isa := range Available() {
		for _, from := range looptest.Stored {
			for _, to := range looptest.Stored {
				b := looptest.New(loop.None)
				x := b.Load(b.Arg(from, loop.Unit, false))
				b.Store(b.Arg(to, loop.Unit, true), b.Cast(x, loop.ComputeDType(to)))
				for _, cols := range []int{1, 7, 8, 15, 16, 17, 67, 531} {
					check(t, &b.Kernel, isa, 2, cols, 0, uint64(from)*16+uint64(to))
				}
			}
		}
	}
}

func TestWhereAndConst(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range looptest.Computed {
			b := looptest.New(loop.None)
			c, x := b.Load(b.Arg(ir.Bool, loop.Unit, false)), b.Load(b.Arg(d, loop.Unit, false))
			k := b.Add(loop.Instr{Code: loop.Const, DType: d, Bits: 1})
			b.Store(b.Arg(d, loop.Unit, true), b.Op(aten.Where, c, x, k))
			check(t, &b.Kernel, isa, 2, 77, 0, 3)
		}
	}
}

func TestRound(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range []ir.DType{ir.F16, ir.BF16} {
			b := looptest.New(loop.None)
			x := b.Load(b.Arg(ir.F32, loop.Unit, false))
			b.Store(b.Arg(ir.F32, loop.Unit, true), b.Add(loop.Instr{Code: loop.Round, DType: d, In: [3]loop.Value{x}, N: 1}))
			check(t, &b.Kernel, isa, 2, 1077, 0, 3)
		}
	}
}

func TestIndex(t *testing.T) {
	for _, isa := range Available() {
		b := looptest.New(loop.None)
		i := b.Add(loop.Instr{Code: loop.Index, DType: ir.I64})
		b.Store(b.Arg(ir.I64, loop.Unit, true), i)
		b.Store(b.Arg(ir.F32, loop.Unit, true), b.Cast(i, ir.F32))
		check(t, &b.Kernel, isa, 3, 77, 0, 3)
	}
}

// TestManyOperands has more operands than there are registers for pointers.
func TestManyOperands(t *testing.T) {
	for _, isa := range Available() {
		b := looptest.New(loop.None)
		var sum loop.Value
		for i := range 20 {
			s := []loop.Stride{loop.Unit, loop.Fixed, loop.Free}[i%3]
			x := b.Load(b.Arg(ir.F32, s, false))
			if i == 0 {
				sum = x
			} else {
				sum = b.Op(aten.Add, sum, x)
			}
		}
		b.Store(b.Arg(ir.F32, loop.Unit, true), sum)
		b.Store(b.Arg(ir.F32, loop.Free, true), sum)
		check(t, &b.Kernel, isa, 3, 77, 0, 3)
	}
}

// TestSpills keeps more values than there are registers.
func TestSpills(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.I64} {
			b := looptest.New(loop.None)
			x := b.Load(b.Arg(d, loop.Unit, false))
			y := b.Load(b.Arg(d, loop.Fixed, false))
			all := []loop.Value{x}
			var masks []loop.Value
			for i := range 40 {
				all = append(all, b.Op(aten.Add, all[i], y))
				masks = append(masks, b.Op(aten.Lt, all[i], y))
			}
			sum := all[0]
			for i := range masks {
				sum = b.Op(aten.Where, masks[i], b.Op(aten.Maximum, sum, all[40-i]), b.Op(aten.Sub, all[i], sum))
			}
			b.Store(b.Arg(d, loop.Unit, true), sum)
			check(t, &b.Kernel, isa, 3, 77, 0, 3)
		}
	}
}
