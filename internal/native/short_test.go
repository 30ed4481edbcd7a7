package native

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// shortKernel is z = max(x, y) + y of rows of few columns, and the number of the operands.
func shortKernel(d ir.DType, width int, steps [3][2]int) *loop.Kernel {
	b := looptest.New(loop.None)
	b.Width = width
	for i, s := range steps {
		cols := loop.Free
		switch s[1] {
		case 0:
			cols = loop.Fixed
		case 1:
			cols = loop.Unit
		}
		b.Arg(d, cols, i == 2)
		b.Args[i].RowStep, b.Args[i].ColStep = int32(s[0]), int32(s[1])
	}
	x, y := b.Load(0), b.Load(1)
	b.Store(2, b.Op(aten.Maximum, b.Op(aten.Maximum, x, y), y))
	return &b.Kernel
}

// shortSteps are ways in which rows of a width lie, for operands and results.
func shortSteps(width int) (in, out [][2]int) {
	for _, s := range [][2]int{{width, 1}, {width + 1, 1}, {2*width + 1, 1}, {2 * width, 2}, {1, width}, {3, 1}, {4, 1}, {3, 4}} {
		// No two elements of a result are the same.
		seen, apart := map[int]bool{}, true
		for r := range 16 {
			for c := range width {
				apart = apart && !seen[r*s[0]+c*s[1]]
				seen[r*s[0]+c*s[1]] = true
			}
		}
		if apart {
			out = append(out, s)
		}
		in = append(in, s)
	}
	return append(in, [2]int{0, 0}, [2]int{0, 1}, [2]int{1, 0}, [2]int{0, 2}, [2]int{2, 0}), out
}

// TestShortRows runs kernels whose rows are taken several at a time against Eval, of all numbers of rows, on
// operands that lie in many ways, and on memory that ends where the operands do.
func TestShortRows(t *testing.T) {
	tried := map[ir.DType]int{}
	for _, isa := range Available() {
		for _, d := range looptest.Stored {
			for width := 1; width <= 16; width++ {
				in, out := shortSteps(width)
				for i, x := range in {
					for j, z := range out {
						k := shortKernel(d, width, [3][2]int{x, in[(i+j)%len(in)], z})
						if !Short(k, isa) {
							continue
						}
						tried[d]++
						checkShort(t, k, isa, rand.New(rand.NewPCG(uint64(i), uint64(j))))
					}
				}
			}
		}
	}
	if len(Available()) > 0 && Available()[0] == AVX512 {
		for _, d := range looptest.Stored {
			if tried[d] < 30 || d.Size() >= 4 && d != ir.Bool && tried[d] < 200 {
				t.Errorf("only %d kernels of %v take rows together", tried[d], d)
			}
		}
	}
}

func checkShort(t *testing.T, k *loop.Kernel, isa ISA, rng *rand.Rand) {
	t.Helper()
	c, err := Compile(k, isa)
	if err != nil {
		t.Fatalf("%v\n%v", err, k)
	}
	for rows := 1; rows <= 70; rows += 1 + rows/20*7 {
		var frames [2]loop.Frame
		var data [2][][]byte
		for i, a := range k.Args {
			size := a.DType.Size()
			whole := ((rows-1)*int(a.RowStep) + (k.Width-1)*int(a.ColStep) + 1) * size
			first := guardedMemory(whole)
			for at := 0; at < whole; at += size {
				looptest.Elements(rng, i, a.DType, first[at:])
			}
			second := append([]byte{}, first...)
			for side, mem := range [][]byte{first, second} {
				data[side] = append(data[side], mem)
				frames[side].Ptr[i] = unsafe.Pointer(&mem[0])
				frames[side].Row[i], frames[side].Col[i] = int(a.RowStep)*size, int(a.ColStep)*size
			}
		}
		for side := range frames {
			frames[side].Rows, frames[side].Cols = rows, k.Width
			frames[side].Spill = looptest.Aligned(c.SpillBytes())
		}
		c.Run(&frames[0])
		loop.Eval(k, &frames[1])
		for i := range k.Args {
			g := looptest.Grid{Rows: rows, Cols: k.Width, Data: data, Frame: frames}
			if why := g.Compare(k, 0); why != "" {
				t.Fatalf("operand %d, steps %d, %d of %d: %s", i, k.Args[i].RowStep, k.Args[i].ColStep, rows, why)
			}
		}
		for _, mem := range data[0] {
			freeGuarded(mem)
		}
	}
}

// TestShortDivisions has divisions by zero in no lane but those of rows.
func TestShortDivisions(t *testing.T) {
	for _, isa := range Available() {
		for rows := 1; rows < 20; rows++ {
			for _, zero := range []int{-1, 0, rows*3 - 1} {
				b := looptest.New(loop.None)
				b.Width = 3
				for range 3 {
					b.Args[b.Arg(ir.I32, loop.Unit, len(b.Args) == 2)].RowStep = 3
				}
				for i := range b.Args {
					b.Args[i].ColStep = 1
				}
				b.Store(2, b.Op(aten.FloorDivide, b.Load(0), b.Load(1)))
				c, err := Compile(&b.Kernel, isa)
				if err != nil {
					t.Fatal(err)
				}
				var mem [3][]int32
				f := loop.Frame{Rows: rows, Cols: 3, Spill: looptest.Aligned(c.SpillBytes())}
				for i := range mem {
					mem[i] = make([]int32, 3*rows+32)
					for j := range 3 * rows {
						mem[i][j] = int32(j + 1)
					}
					f.Ptr[i], f.Row[i] = unsafe.Pointer(&mem[i][0]), 12
				}
				if zero >= 0 {
					mem[1][zero] = 0
				}
				fault := func() (fault any) {
					defer func() { fault = recover() }()
					c.Run(&f)
					return nil
				}()
				if (fault != nil) != (zero >= 0) {
					t.Fatalf("%v, %d rows, zero at %d: %v", isa, rows, zero, fault)
				}
			}
		}
	}
}
