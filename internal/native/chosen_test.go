package native

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// chosenKernel is max(x[i], y) of rows, reduced along an axis if there is one. The indices are operands 2 and 3.
func chosenKernel(axis loop.Axis, d ir.DType, x, y loop.Stride) *loop.Kernel {
	b := looptest.New(axis)
	b.Arg(d, x, false)
	b.Arg(d, y, false)
	b.Choose(0)
	b.Choose(1)
	v := b.Op(aten.Maximum, b.Load(0), b.Load(1))
	if axis == loop.None {
		b.Store(b.Arg(d, loop.Unit, true), v)
		return &b.Kernel
	}
	if c := loop.ComputeDType(d); c.IsFloat() {
		v = b.Op(aten.Add, v, b.Add(loop.Instr{Code: loop.Const, DType: c})) // no -0: which 0 is the greatest is not defined
	}
	r := b.Reduce(aten.Amax, loop.ComputeDType(d), v)
	b.Final(b.StoreOf(b.Arg(d, loop.Unit, true), r))
	return &b.Kernel
}

// summedKernel adds max(x[i], y) of rows to rows of a result that an index chooses.
func summedKernel(d ir.DType, x loop.Stride) *loop.Kernel {
	b := looptest.New(loop.None)
	b.Arg(d, x, false)
	b.Arg(d, loop.Unit, false)
	b.Choose(0)
	out := b.Arg(d, loop.Unit, true)
	b.Choose(out)
	v := b.Op(aten.Maximum, b.Load(0), b.Load(1))
	sum := b.Op(aten.Sub, b.Load(out), v)
	b.Store(out, sum)
	return &b.Kernel
}

// chosenMemory has operands and indices in memory that ends where they do, and the frames of two sides.
func chosenMemory(rng *rand.Rand, k *loop.Kernel, rows, cols, spill int) (frames [2]loop.Frame, data [2][][]byte) {
	for i, a := range k.Args {
		size := a.DType.Size()
		row, col := cols*size, size
		switch {
		case a.By > 0 && !a.Moves && k.Width == 0:
			row = 0
		case k.Width > 0:
			row, col = int(a.RowStep)*size, int(a.ColStep)*size
		case a.Cols == loop.Fixed:
			row, col = size, 0
		case a.Cols == loop.Free:
			row, col = 2*cols*size, 2*size
		}
		steps, step := 0, 0
		if a.By > 0 {
			steps, step = 3, max((cols-1)*col+size, size)
		}
		whole := (rows-1)*row + (cols-1)*col + size + max(steps-1, 0)*step
		first := guardedMemory(whole)
		for at := 0; at < whole; at += size {
			looptest.Elements(rng, i, a.DType, first[at:])
			if k.Indexes(i) {
				*(*int64)(unsafe.Pointer(&first[at])) = rng.Int64N(3)
			}
		}
		for side, mem := range [][]byte{first, append([]byte{}, first...)} {
			f := &frames[side]
			f.Ptr[i], f.Row[i], f.Col[i], f.Size[i], f.Step[i] = unsafe.Pointer(&mem[0]), row, col, steps, step
			data[side] = append(data[side], mem)
		}
	}
	for side := range frames {
		frames[side].Rows, frames[side].Cols, frames[side].Spill = rows, cols, looptest.Aligned(spill)
	}
	return frames, data
}

func checkChosen(t *testing.T, k *loop.Kernel, isa ISA, rows, cols int, rng *rand.Rand) {
	t.Helper()
	c, err := Compile(k, isa)
	if errors.Is(err, ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatalf("%v\n%v", err, k)
	}
	frames, data := chosenMemory(rng, k, rows, cols, c.SpillBytes())
	c.Run(&frames[0])
	loop.Eval(k, &frames[1])
	g := looptest.Grid{Rows: rows, Cols: cols, Data: data, Frame: frames}
	if why := g.Compare(k, 0); why != "" {
		t.Fatalf("%v, width %d, %s", isa, k.Width, why)
	}
	for _, mem := range data[0] {
		freeGuarded(mem)
	}
}

// TestChosenRows runs kernels whose rows an index chooses against Eval, in loops over columns and rows, whole rows and
// rows together, on memory that ends where the operands do.
func TestChosenRows(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range looptest.Stored {
			for seed, axis := range []loop.Axis{loop.None, loop.Columns, loop.Rows, loop.Both} {
				rng := rand.New(rand.NewPCG(uint64(seed), uint64(d)))
				for _, x := range []loop.Stride{loop.Unit, loop.Fixed, loop.Free} {
					for _, cols := range lengths() {
						checkChosen(t, chosenKernel(axis, d, x, loop.Unit), isa, 1+rng.IntN(5), cols, rng)
					}
				}
			}
			rng := rand.New(rand.NewPCG(9, uint64(d)))
			for _, cols := range lengths() {
				if d != ir.Bool {
					checkChosen(t, summedKernel(d, loop.Stride(rng.IntN(3))), isa, 1+rng.IntN(9), cols, rng)
				}
			}
			for width := 1; width <= 64; width += 1 + width/20*3 {
				k := chosenKernel(loop.None, d, loop.Unit, loop.Fixed)
				if width > 16 && width%2 == 0 && d != ir.Bool {
					k = summedKernel(d, loop.Unit)
				}
				k.Width, k.Args[0].Moves, k.Args[1].Moves = width, false, false
				k.Args[3].Moves = false
				for i := range k.Args {
					a := &k.Args[i]
					switch {
					case k.Indexes(i):
						a.RowStep = int32(rng.IntN(3))
					case a.By == 0:
						a.RowStep, a.ColStep = int32(width+rng.IntN(2)), 1
					case a.Cols == loop.Unit:
						a.ColStep = 1
					}
				}
				if width > 16 && !Whole(k, isa) {
					continue
				}
				if width <= 16 && !Short(k, isa) {
					continue
				}
				for rows := 1; rows <= 40; rows += 1 + rows/10*3 {
					checkChosen(t, k, isa, rows, width, rng)
				}
			}
		}
	}
}

// TestIndicesOutOfRange runs kernels with one index that is out of range, and with none afterwards.
func TestIndicesOutOfRange(t *testing.T) {
	fault := func(run func()) (v any) {
		defer func() { v = recover() }()
		run()
		return nil
	}
	for _, isa := range Available() {
		for _, width := range []int{0, 3, 9, 16, 40} {
			k := chosenKernel(loop.None, ir.F32, loop.Unit, loop.Unit)
			k.Width, k.Args[0].Moves, k.Args[1].Moves = width, width == 0, false
			for i := range k.Args {
				if a := &k.Args[i]; k.Indexes(i) {
					a.RowStep = 1
				} else if a.ColStep = 1; a.By == 0 {
					a.RowStep = int32(width)
				}
			}
			c, err := Compile(k, isa)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, uint64(width)))
			for _, wrong := range []int64{-1, 3, math.MinInt64, math.MaxInt64} {
				frames, data := chosenMemory(rng, k, 30, max(width, 21), c.SpillBytes())
				at := unsafe.Slice((*int64)(frames[0].Ptr[3]), 30)
				row := rng.IntN(30)
				right := at[row]
				at[row] = wrong
				if got, want := fault(func() { c.Run(&frames[0]) }), any(loop.IndexFault{Arg: 1, Index: wrong}); got != want {
					t.Errorf("%v, width %d: %v, want %v", isa, width, got, want)
				}
				unsafe.Slice((*int64)(frames[1].Ptr[3]), 30)[row] = wrong
				if got, want := fault(func() { loop.Eval(k, &frames[1]) }), any(loop.IndexFault{Arg: 1, Index: wrong}); got != want {
					t.Errorf("Eval: %v, want %v", got, want)
				}
				at[row] = right
				if got := fault(func() { c.Run(&frames[0]) }); got != nil {
					t.Errorf("%v, width %d: %v of indices in range", isa, width, got)
				}
				for _, mem := range data[0] {
					freeGuarded(mem)
				}
			}
		}
	}
}
