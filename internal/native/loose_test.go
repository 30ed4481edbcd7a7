package native

import (
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestLooseValues overflows narrow integers whose bits beyond the dtype's some users look at and others do not.
func TestLooseValues(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range []ir.DType{ir.U8, ir.I8, ir.I16} {
			for _, to := range []ir.DType{ir.U8, ir.I8, ir.I16, ir.I32, ir.I64, ir.F32, ir.Bool} {
				b := looptest.New(loop.None)
				x, y := b.Load(b.Arg(d, loop.Unit, false)), b.Load(b.Arg(d, loop.Unit, false))
				store := func(v loop.Value) { b.Store(b.Arg(b.Instrs[v].Result(), loop.Unit, true), v) }
				product := b.Op(aten.Mul, x, y)
				sum := b.Op(aten.Add, product, b.Op(aten.Neg, product))
				store(b.Op(aten.Sub, sum, product))
				store(b.Op(aten.BitwiseXor, product, sum))
				store(b.Op(aten.Maximum, b.Op(aten.Add, x, y), y))
				chosen := b.Op(aten.Where, b.Op(aten.Lt, x, y), b.Op(aten.Mul, x, x), b.Op(aten.BitwiseNot, sum))
				store(b.Op(aten.Add, chosen, x))
				store(b.Cast(b.Op(aten.Where, b.Op(aten.Gt, b.Op(aten.Mul, y, y), x), b.Op(aten.Sub, x, y), y), to))
				store(b.Cast(b.Op(aten.BitwiseAnd, b.Op(aten.Add, x, x), y), to))
				check(t, &b.Kernel, isa, 2, 77, 0, uint64(d)*16+uint64(to))
			}
		}
	}
}
