package native

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
	"github.com/loris-ml/loris/ir"
)

// check runs a kernel natively and by Eval and compares all memory.
func check(t *testing.T, k *loop.Kernel, isa ISA, rows, cols int, ulps float64, seed uint64) {
	t.Helper()
	c, err := Compile(k, isa)
	if err != nil {
		t.Fatalf("%v\n%v", err, k)
	}
	compareRun(t, k, c, looptest.NewGrid(rand.New(rand.NewPCG(seed, 1)), k, rows, cols, c.SpillBytes(), looptest.Elements), ulps)
}

func compareRun(t *testing.T, k *loop.Kernel, c *Code, g *looptest.Grid, ulps float64) {
	t.Helper()
	c.Run(&g.Frame[0])
	loop.Eval(k, &g.Frame[1])
	if why := g.Compare(k, ulps); why != "" {
		t.Fatalf("%v, %s", c.ISA(), why)
	}
}

// lengths returns numbers of columns with all tails of the vectors, or some.
func lengths() (all []int) {
	if testing.Short() {
		return []int{1, 3, 8, 17, 39, 67}
	}
	for n := 1; n <= 67; n++ {
		all = append(all, n)
	}
	return all
}

func TestAdd(t *testing.T) {
	for _, isa := range Available() {
		for cols := 1; cols < 140; cols++ {
			b := looptest.New(loop.None)
			x, y, z := b.Arg(ir.F32, loop.Unit, false), b.Arg(ir.F32, loop.Unit, false), b.Arg(ir.F32, loop.Unit, true)
			b.Store(z, b.Op(ir.OpMul, b.Op(ir.OpAdd, b.Load(x), b.Load(y)), b.F32(3)))
			check(t, &b.Kernel, isa, 3, cols, 0, uint64(cols))
		}
	}
}

// TestCheck holds Check to what Compile says of kernels with code, without, and
// malformed.
func TestCheck(t *testing.T) {
	sum := func(d ir.DType) *loop.Kernel {
		b := looptest.New(loop.None)
		x, z := b.Arg(d, loop.Unit, false), b.Arg(d, loop.Unit, true)
		b.Store(z, b.Op(ir.OpAdd, b.Load(x), b.Load(x)))
		return &b.Kernel
	}
	fixed := sum(ir.F32)
	fixed.Args[1].Cols = loop.Fixed // a store that does not move
	late := sum(ir.F32)
	late.Instrs[2].In[0] = 7 // a value of later
	for _, isa := range Available() {
		for name, c := range map[string]struct {
			k    *loop.Kernel
			want error
		}{
			"sum":       {sum(ir.F32), nil},
			"no code":   {fixed, ErrUnsupported},
			"malformed": {late, loop.ErrKernel},
		} {
			_, built := Compile(c.k, isa)
			if err := Check(c.k, isa); !errors.Is(err, c.want) || !errors.Is(built, c.want) {
				t.Errorf("%v, %s: Check says %v and Compile %v, want %v", isa, name, err, built, c.want)
			}
		}
	}
}
