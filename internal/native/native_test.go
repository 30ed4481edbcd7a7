package native

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
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
	if !longtest.Enabled() {
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
			b.Store(z, b.Op(aten.Mul, b.Op(aten.Add, b.Load(x), b.Load(y)), b.F32(3)))
			check(t, &b.Kernel, isa, 3, cols, 0, uint64(cols))
		}
	}
}

// TestFlush runs a product of subnormal numbers with and without Flush; Go's own
// arithmetic keeps them afterwards.
func TestFlush(t *testing.T) {
	for _, isa := range Available() {
		b := looptest.New(loop.None)
		x, y, z := b.Arg(ir.F32, loop.Unit, false), b.Arg(ir.F32, loop.Unit, false), b.Arg(ir.F32, loop.Unit, true)
		b.Store(z, b.Op(aten.Mul, b.Load(x), b.Load(y)))
		c, err := Compile(&b.Kernel, isa)
		if err != nil {
			t.Fatal(err)
		}
		// A subnormal operand, a subnormal result, and neither.
		left, right := []float32{1e-40, 1e-30, 2e-38, 3}, []float32{1 << 20, 1e-10, 4, 5}
		kept := []float32{left[0] * right[0], left[1] * right[1], left[2] * right[2], 15}
		for flush, want := range map[bool][]float32{false: kept, true: {0, 0, kept[2], 15}} {
			g := looptest.NewGrid(rand.New(rand.NewPCG(1, 1)), &b.Kernel, 1, len(left), c.SpillBytes(), looptest.Elements)
			f := &g.Frame[0]
			f.Flush = flush
			copy(unsafe.Slice((*float32)(f.Ptr[x]), len(left)), left)
			copy(unsafe.Slice((*float32)(f.Ptr[y]), len(right)), right)
			c.Run(f)
			if got := unsafe.Slice((*float32)(f.Ptr[z]), len(want)); !slices.Equal(got, want) {
				t.Errorf("%v, flush %v: %v, want %v", isa, flush, got, want)
			}
			if got := left[0] * right[0]; got != kept[0] || got == 0 {
				t.Errorf("%v, flush %v: Go multiplies to %v afterwards, want %v", isa, flush, got, kept[0])
			}
		}
	}
}

// TestCheck holds Check to what Compile says of kernels with code, without, and
// malformed.
func TestCheck(t *testing.T) {
	sum := func(d ir.DType) *loop.Kernel {
		b := looptest.New(loop.None)
		x, z := b.Arg(d, loop.Unit, false), b.Arg(d, loop.Unit, true)
		b.Store(z, b.Op(aten.Add, b.Load(x), b.Load(x)))
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
