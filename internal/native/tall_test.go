package native

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// steps is how an operand of a kernel with a Height moves from row to row and from column to column.
type steps struct{ row, col int }

func (s steps) stride() loop.Stride {
	switch s.col {
	case 0:
		return loop.Fixed
	case 1:
		return loop.Unit
	}
	return loop.Free
}

func tallArg(b *looptest.Build, d ir.DType, s steps, write bool) int {
	arg := b.Arg(d, s.stride(), write)
	near := func(step int) int32 {
		if step > 16 {
			return loop.Far
		}
		return int32(step)
	}
	b.Args[arg].RowStep, b.Args[arg].ColStep = near(s.row), near(s.col)
	return arg
}

// tallReduction reduces x op y along rows.
func tallReduction(op ir.Op, in, out ir.DType, height int, x, y steps) *loop.Kernel {
	b := looptest.New(loop.Rows)
	b.Height = height
	v := b.Op(aten.Maximum, b.Load(tallArg(b, in, x, false)), b.Load(tallArg(b, in, y, false)))
	r := b.Reduce(op, out, v)
	b.Final(b.StoreOf(tallArg(b, out, steps{0, 1}, true), r))
	return &b.Kernel
}

// tallSteps are ways in which lines of a height lie, of columns far enough apart for the results to be none of another.
func tallSteps(height, cols int) (in, out []steps) {
	out = []steps{{cols, 1}, {cols + 3, 1}}
	if height > 1 {
		out = append(out, steps{1, height})
	}
	in = append(out, steps{1, height + 1}, steps{1, 8}, steps{0, 1}, steps{1, 0}, steps{2, 0}, steps{0, 0}, steps{1, 2}, steps{40 * cols, 3}, steps{5, 11})
	return in, out
}

// tallCompare runs a kernel with a Height against Eval, on memory that ends where the operands do, and against the loop over
// its rows, which gives the same bits.
func tallCompare(t *testing.T, k *loop.Kernel, by []steps, fill looptest.Fill, ulps float64, cols int, seed uint64) {
	t.Helper()
	alone := *k
	alone.Height = 0
	w := threeWays{rng: rand.New(rand.NewPCG(seed, uint64(cols))), fill: fill}
	defer w.free()
	for i, a := range k.Args {
		w.operand(i, a.DType, (k.Height-1)*by[i].row+(cols-1)*by[i].col+1, by[i].row, by[i].col)
	}
	w.run(t, k, &alone, k.Height, cols)
	frames, data := &w.frames, &w.data
	g := looptest.Grid{Rows: k.Height, Cols: cols, Data: [2][][]byte{data[0], data[1]}, Frame: [2]loop.Frame{frames[0], frames[1]}}
	if why := g.Compare(k, ulps); why != "" {
		t.Fatalf("height %d: %s", k.Height, why)
	}
	for i := range k.Args {
		if k.Args[i].Write && !sameElements(k.Args[i].DType, data[0][i], data[2][i]) {
			t.Fatalf("height %d, %d columns, operand %d: a loop over the rows gives other bits\n%v", k.Height, cols, i, k)
		}
	}
}

// sameElements reports whether elements are the same, or NaN.
func sameElements(d ir.DType, a, b []byte) bool {
	size := d.Size()
	for at := 0; at < len(a); at += size {
		if looptest.Differ(d, a[at:at+size], b[at:at+size], 0) != "" {
			return false
		}
	}
	return true
}

func hasAVX512() bool { return len(Available()) > 0 && Available()[0] == AVX512 }

func TestTallReductions(t *testing.T) {
	if !hasAVX512() {
		t.Skip("rows are taken whole with AVX-512 alone")
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
			for height := 1; height <= mostTall; height++ {
				for _, cols := range []int{1, 7, 16, 17, 40, 131} {
					in, _ := tallSteps(height, cols)
					for i, x := range in {
						y := in[(i+cols)%len(in)]
						k := tallReduction(op, d, result(d), height, x, y)
						if Tall(k, AVX512) {
							tried++
							tallCompare(t, k, []steps{x, y, {0, 1}}, fill, ulps, cols, uint64(op)+uint64(i))
						}
					}
				}
			}
		}
	}
	if tried < 10000 {
		t.Errorf("only %d kernels take rows whole", tried)
	}
}

// tallSoftmax is softmax of x along rows, with a second result that a later pass reads.
func tallSoftmax(height int, in ir.DType, x, scratch, y steps) *loop.Kernel {
	b := looptest.New(loop.Rows)
	b.Height = height
	from, kept, to := tallArg(b, in, x, false), tallArg(b, ir.F32, scratch, true), tallArg(b, in, y, true)
	most := b.Reduce(aten.Amax, ir.F32, b.Load(from))
	b.Passes = append(b.Passes, loop.Pass{})
	e := b.Op(aten.Sub, b.Load(from), most)
	sum := b.Reduce(aten.Sum, ir.F32, e)
	b.Store(kept, e)
	scale := b.Final(b.ApplyOf(aten.Neg, ir.F32, sum))
	b.Passes = append(b.Passes, loop.Pass{})
	b.Store(to, b.Op(aten.Mul, b.Load(kept), scale))
	return &b.Kernel
}

func TestTallPasses(t *testing.T) {
	if !hasAVX512() {
		t.Skip("rows are taken whole with AVX-512 alone")
	}
	for _, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		for height := 1; height <= mostTall; height++ {
			for _, cols := range []int{1, 5, 16, 33, 100} {
				in, out := tallSteps(height, cols)
				for i, x := range in {
					kept, y := out[i%len(out)], out[(i+1)%len(out)]
					k := tallSoftmax(height, d, x, kept, y)
					if !Tall(k, AVX512) {
						continue
					}
					tallCompare(t, k, []steps{x, kept, y}, looptest.Moderate, 4, cols, uint64(i))
				}
			}
		}
	}
}

// TestTallMoves has lines of all dtypes taken apart and put together again.
func TestTallMoves(t *testing.T) {
	if !hasAVX512() {
		t.Skip("rows are taken whole with AVX-512 alone")
	}
	for _, axis := range []loop.Axis{loop.None, loop.Rows} {
		for _, d := range looptest.Stored {
			for height := 2; height <= mostTall; height++ {
				for _, s := range [][2]steps{{{1, height}, {1, height}}, {{1, height}, {300, 1}}, {{300, 1}, {1, height}}} {
					b := looptest.New(axis)
					b.Height = height
					by := []steps{s[1], s[0], {0, 1}, {300, 1}}
					b.Store(tallArg(b, d, s[1], true), b.Load(tallArg(b, d, s[0], false)))
					if axis == loop.Rows {
						b.Final(b.StoreOf(tallArg(b, ir.F64, steps{0, 1}, true), b.Reduce(aten.Sum, ir.F64, b.Load(tallArg(b, ir.F64, steps{300, 1}, false)))))
					}
					if !Tall(&b.Kernel, AVX512) {
						t.Fatalf("no code for %v", &b.Kernel)
					}
					for _, cols := range []int{1, 8, 15, 16, 35, 99} {
						tallCompare(t, &b.Kernel, by, looptest.Elements, 300, cols, 1)
					}
				}
			}
		}
	}
}
