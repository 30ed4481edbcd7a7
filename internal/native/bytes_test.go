package native

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestBytes runs the ops that have a form in lanes of a byte on all bytes, or all pairs of them, with a tail of each length.
func TestBytes(t *testing.T) {
	ran := 0
	for _, sp := range ir.Ops() {
		if table[sp.Op].bytes == nil {
			continue
		}
		for _, d := range []ir.DType{ir.U8, ir.I8, ir.Bool} {
			if !looptest.Defined(sp, d) {
				continue
			}
			k := kernelOf(sp, d, loop.Unit, loop.Unit)
			if packedSize(k, AVX2) != 1 {
				t.Errorf("%v of %v does not take them", sp.Op, d)
			}
			for _, isa := range Available() {
				c, err := Compile(k, isa)
				if err != nil {
					t.Fatal(err)
				}
				cols := 256 + ran%vectorBytes
				compareRun(t, k, c, looptest.NewGrid(rand.New(rand.NewPCG(1, 2)), k, 256, cols, c.SpillBytes(), pairsOfBytes(cols)), 0)
			}
			ran++
		}
	}
	if ran < 60 {
		t.Errorf("only %d ops and dtypes", ran)
	}
}

// pairsOfBytes fills the first operand with the number of its row, and others with that of the column.
func pairsOfBytes(cols int) looptest.Fill {
	const between = 2 // elements from one row to the next
	filled := map[int]int{}
	return func(_ *rand.Rand, arg int, d ir.DType, to []byte) {
		at := filled[arg]
		filled[arg]++
		to[0] = byte(at % (cols + between))
		if arg == 0 {
			to[0] = byte(at / (cols + between))
		}
		if d == ir.Bool {
			to[0] &= 1
		}
	}
}
