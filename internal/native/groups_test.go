package native

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// groupCompare runs a kernel whose lines are finished together against Eval, on memory that ends where the operands do, and
// against the kernel that finishes each by itself, which gives the same bits.
func groupCompare(t *testing.T, k *loop.Kernel, fill looptest.Fill, ulps float64, rows int, seed uint64) {
	t.Helper()
	alone := *k
	alone.Width = 0
	w := threeWays{rng: rand.New(rand.NewPCG(seed, uint64(rows))), fill: fill}
	defer w.free()
	for i, a := range k.Args {
		col, step := 1, k.Width+3
		switch {
		case a.Cols == loop.Fixed:
			col, step = 0, int(max(a.RowStep, 0))
		case a.Cols == loop.Free:
			col, step = 3, 3*k.Width+2
		}
		n := (rows-1)*step + (k.Width-1)*col + 1
		if a.Scratch {
			n = max(n, 20*step)
		}
		w.operand(i, a.DType, n, step, col)
	}
	w.run(t, k, &alone, rows, k.Width)
	data := &w.data
	for i, a := range k.Args {
		size := a.DType.Size()
		for at := 0; a.Write && !a.Scratch && at < len(data[0][i]); at += size {
			if why := looptest.Differ(a.DType, data[0][i][at:at+size], data[1][i][at:at+size], ulps); why != "" {
				t.Fatalf("%d of %d columns, operand %d, element %d: %s\n%v", rows, k.Width, i, at/size, why, k)
			}
		}
		if a.Write && !a.Scratch && !sameElements(a.DType, data[0][i], data[2][i]) {
			t.Fatalf("%d of %d columns, operand %d: a line by itself gives other bits\n%v", rows, k.Width, i, k)
		}
	}
}

var groupRows = []int{1, 2, 7, 8, 9, 15, 16, 17, 33, 50}

func TestGroupedReductions(t *testing.T) {
	if !hasAVX512() {
		t.Skip("lines are finished together with AVX-512 alone")
	}
	tried := 0
	for op, result := range reduceResults {
		for _, d := range looptest.Computed {
			fill, ulps := looptest.Elements, 0.0
			if op == aten.Sum || op == aten.Prod {
				fill, ulps = looptest.Moderate, 4
				if d == ir.F64 {
					ulps = 300
				}
			}
			for _, width := range []int{2, 7, 8, 15, 16, 17, 24, 25, 32, 33, 40, 48, 49, 64, 65, 100, 128} {
				for _, s := range []loop.Stride{loop.Unit, loop.Free} {
					k := reduceKernel(loop.Columns, op, d, result(d), s)
					k.Width = width
					k.Args[0].RowStep, k.Args[0].ColStep = loop.Far, loop.Far
					k.Args[1].Cols, k.Args[1].RowStep = loop.Fixed, 1
					if !Grouped(k, AVX512) {
						continue
					}
					tried++
					for _, rows := range groupRows {
						groupCompare(t, k, fill, ulps, rows, uint64(op)+uint64(width))
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d kernels finish lines together", tried)
	}
}

// groupedPasses is (x - mean)·weight with the mean of each line, kept in scratch memory and read by a third pass, with a bool for
// each line that a later pass uses, a statistic from outside and one that is the same for all lines.
func groupedPasses(d ir.DType, width int) *loop.Kernel {
	b := looptest.New(loop.Columns)
	b.Width = width
	arg := func(d ir.DType, s loop.Stride, write bool, row int32) int {
		i := b.Arg(d, s, write)
		b.Args[i].RowStep, b.Args[i].ColStep = row, loop.Far
		return i
	}
	x, scale := arg(d, loop.Unit, false, loop.Far), arg(d, loop.Fixed, false, 1)
	weight, one := arg(d, loop.Unit, false, 0), arg(d, loop.Fixed, false, 0)
	kept, y := arg(loop.ComputeDType(d), loop.Unit, true, loop.Far), arg(d, loop.Unit, true, loop.Far)
	b.Args[kept].Scratch = true
	c := loop.ComputeDType(d)
	sum := b.Reduce(aten.Sum, c, b.Load(x))
	mean := b.Final(b.ApplyOf(aten.Mul, c, sum, b.Final(b.LoadOf(scale))))
	low := b.Final(b.ApplyOf(aten.Lt, ir.Bool, mean, b.Final(b.LoadOf(one))))
	b.Passes = append(b.Passes, loop.Pass{})
	z := b.Op(aten.Where, low, b.Op(aten.Sub, b.Load(x), mean), b.Op(aten.Mul, b.Load(weight), mean))
	b.Store(kept, z)
	top, bottom := b.Reduce(aten.Amax, c, z), b.Reduce(aten.Prod, c, b.Op(aten.Abs, b.Load(weight)))
	spread := b.Final(b.ApplyOf(aten.Sub, c, top, mean))
	b.Final(b.StoreOf(arg(d, loop.Fixed, true, 1), spread))
	b.Final(b.StoreOf(arg(ir.Bool, loop.Fixed, true, 1), low))
	b.Passes = append(b.Passes, loop.Pass{})
	b.Store(y, b.Op(aten.Mul, b.Op(aten.Add, b.Load(kept), b.Load(one)), b.Op(aten.Sub, spread, bottom)))
	return &b.Kernel
}

func TestGroupedPasses(t *testing.T) {
	if !hasAVX512() {
		t.Skip("lines are finished together with AVX-512 alone")
	}
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16} {
		for _, width := range []int{2, 9, 16, 25, 40, 64, 65} {
			k := groupedPasses(d, width)
			if !Grouped(k, AVX512) {
				t.Errorf("no code for %v of %d", d, width)
				continue
			}
			for _, rows := range groupRows {
				groupCompare(t, k, quarters, 8, rows, uint64(width))
			}
		}
	}
}

// quarters fills with numbers of which sums of few are exact.
func quarters(r *rand.Rand, _ int, d ir.DType, b []byte) {
	x := float64(r.IntN(8)+1) / 4
	switch d {
	case ir.F16:
		*(*uint16)(unsafe.Pointer(&b[0])) = half.F64ToF16(x)
	case ir.BF16:
		*(*uint16)(unsafe.Pointer(&b[0])) = half.F64ToBF16(x)
	case ir.F32:
		*(*float32)(unsafe.Pointer(&b[0])) = float32(x)
	case ir.F64:
		*(*float64)(unsafe.Pointer(&b[0])) = x
	default:
		b[0] = byte(r.IntN(2))
	}
}
