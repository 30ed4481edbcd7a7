package native

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestWords runs the ops that have a form in lanes of a word on all words and on words next to powers of two,
// with a tail of each length. What compares chooses one of both operands.
func TestWords(t *testing.T) {
	ran := 0
	for _, sp := range ir.Ops() {
		for _, d := range []ir.DType{ir.I16, ir.F16, ir.BF16} {
			if wordForm(sp.Op, loop.ComputeDType(d)) == nil {
				continue
			}
			k := kernelOf(sp, d, loop.Unit, loop.Unit)
			if sp.Predicate {
				k = choosing(sp, d)
			}
			if packedSize(k, AVX2) != 2 {
				t.Errorf("%v of %v does not take them", sp.Op, d)
			}
			for _, isa := range Available() {
				c, err := Compile(k, isa)
				if err != nil {
					t.Fatal(err)
				}
				const rows = 48
				cols := 1<<12 + ran%(vectorBytes/2)
				compareRun(t, k, c, looptest.NewGrid(rand.New(rand.NewPCG(1, 2)), k, rows, cols, c.SpillBytes(), pairsOfWords(cols)), 0)
			}
			ran++
		}
	}
	if ran < 28 {
		t.Errorf("only %d ops and dtypes", ran)
	}
}

// choosing is a kernel of where(op(x, y), x, y), or of where(op(x), x, -x).
func choosing(sp *ir.Spec, d ir.DType) *loop.Kernel {
	b := looptest.New(loop.None)
	x := b.Load(b.Arg(d, loop.Unit, false))
	y, in := loop.Value(0), []loop.Value{x}
	if len(sp.Schema.Params) == 2 {
		y = b.Load(b.Arg(d, loop.Unit, false))
		in = append(in, y)
	} else {
		y = b.Op(aten.Neg, x)
	}
	b.Store(b.Arg(d, loop.Unit, true), b.Op(aten.Where, b.Op(sp.Op, in...), x, y))
	return &b.Kernel
}

// pairsOfWords fills the first operand with all words over sixteen rows, and others with a word of their row.
func pairsOfWords(cols int) looptest.Fill {
	const between = 2 // elements from one row to the next
	filled := map[int]int{}
	return func(_ *rand.Rand, arg int, d ir.DType, to []byte) {
		at := filled[arg]
		filled[arg]++
		row := at / (cols + between)
		word := uint16(at%(cols+between)<<4 + row%16)
		if arg > 0 {
			word = 1<<(row%16) - uint16(row/16)
		}
		binary.LittleEndian.PutUint16(to, word)
	}
}
