package native

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestInPlace runs kernels whose result lies in the memory of an operand: random ones, and one that goes through the
// memory of its result again, of rows with and without a vector before their tails.
func TestInPlace(t *testing.T) {
	for _, isa := range Available() {
		tried := 0
		for seed := range uint64(600) {
			k := looptest.Random(rand.New(rand.NewPCG(seed, 3)))
			if store, load, ok := inPlace(k); ok {
				tried++
				for _, cols := range []int{1, 9, 15, 17, 31, 33, 55, 83} {
					checkInPlace(t, k, isa, store, load, 1+int(seed%4), cols, seed)
				}
			}
		}
		if tried < 50 {
			t.Errorf("%v: only %d kernels are computed in place", isa, tried)
		}
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.F16, ir.I32, ir.I16, ir.I64, ir.I8} {
			k := thrice(d)
			for cols := 1; cols < 70; cols++ {
				checkInPlace(t, k, isa, 1, 0, 3, cols, uint64(cols))
			}
		}
	}
}

// inPlace returns operands of a kernel that is correct if what is stored lies in the memory of what is loaded in the same
// pass.
func inPlace(k *loop.Kernel) (store, load int, ok bool) {
	for i := range k.Passes {
		for _, v := range k.Passes[i].Body {
			s := &k.Instrs[v]
			if s.Code != loop.Store || k.Args[s.Arg].Cols != loop.Unit {
				continue
			}
			for _, w := range k.Passes[i].Body {
				l := &k.Instrs[w]
				if l.Code == loop.Load && k.Args[l.Arg].Cols == loop.Unit && k.Args[l.Arg].DType == k.Args[s.Arg].DType {
					return s.Arg, l.Arg, true
				}
			}
		}
	}
	return 0, 0, false
}

// thrice is a kernel of three passes: the greatest of a row, what each element is below it, and twice that.
func thrice(d ir.DType) *loop.Kernel {
	b := looptest.New(loop.Columns)
	x, out := b.Arg(d, loop.Unit, false), b.Arg(d, loop.Unit, true)
	first := b.Load(x)
	most := b.Reduce(aten.Amax, b.Instrs[first].Result(), first)
	b.Passes = append(b.Passes, loop.Pass{})
	b.Store(out, b.Op(aten.Sub, most, b.Load(x)))
	b.Passes = append(b.Passes, loop.Pass{})
	half := b.Load(out)
	b.Store(out, b.Op(aten.Add, half, half))
	return &b.Kernel
}

// checkInPlace holds what a kernel computes in place against what it does beside, and all that it does not compute.
func checkInPlace(t *testing.T, k *loop.Kernel, isa ISA, store, load, rows, cols int, seed uint64) {
	t.Helper()
	c, err := Compile(k, isa)
	if errors.Is(err, ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatalf("seed %d: %v\n%v", seed, err, k)
	}
	g := looptest.NewGrid(rand.New(rand.NewPCG(seed, 4)), k, rows, cols, c.SpillBytes(), looptest.Elements)
	g.Frame[1].Ptr[store] = g.Frame[1].Ptr[load]
	before := bytes.Clone(g.Data[1][load])
	c.Run(&g.Frame[0])
	c.Run(&g.Frame[1])
	row, size := g.Frame[0].Row[load], k.Args[load].DType.Size()
	for r := range rows {
		copy(before[r*row:], g.Data[0][store][r*row:][:cols*size])
	}
	if !bytes.Equal(g.Data[1][load], before) {
		t.Fatalf("%v, seed %d, %d×%d: operand %d in the memory of %d differs, or what is beside it\n%v", isa, seed, rows, cols, store, load, k)
	}
	for i := range k.Args {
		if i != store && i != load && !bytes.Equal(g.Data[0][i], g.Data[1][i]) {
			t.Fatalf("%v, seed %d, %d×%d: operand %d differs\n%v", isa, seed, rows, cols, i, k)
		}
	}
}
