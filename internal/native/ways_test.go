package native

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// threeWays has the operands of a kernel that takes several lines, or rows, together three times: for its code, in memory
// that ends where they do, for Eval, and for the code that takes them one by one.
type threeWays struct {
	rng    *rand.Rand
	fill   looptest.Fill
	frames [3]loop.Frame
	data   [3][][]byte // by operand
}

// operand makes n elements of operand i, whose rows and columns are so many elements apart.
func (w *threeWays) operand(i int, d ir.DType, n, row, col int) {
	size := d.Size()
	n *= size
	first := guardedMemory(n)
	for at := 0; at < n; at += size {
		w.fill(w.rng, i, d, first[at:])
	}
	for side := range w.frames {
		mem := first
		if side > 0 {
			mem = append(make([]byte, 0, n+64*size), first...)
		}
		w.data[side] = append(w.data[side], mem)
		f := &w.frames[side]
		f.Ptr[i], f.Row[i], f.Col[i] = unsafe.Pointer(&mem[0]), row*size, col*size
	}
}

// free frees the memory that ends where operands do.
func (w *threeWays) free() {
	for _, mem := range w.data[0] {
		freeGuarded(mem)
	}
}

// run computes a kernel in the three ways; alone is the kernel without what has lines taken together.
func (w *threeWays) run(t *testing.T, k, alone *loop.Kernel, rows, cols int) {
	t.Helper()
	together, err := Compile(k, AVX512)
	if err != nil {
		t.Fatalf("%v\n%v", err, k)
	}
	single, err := Compile(alone, AVX512)
	if err != nil {
		t.Fatal(err)
	}
	for side := range w.frames {
		f := &w.frames[side]
		f.Rows, f.Cols, f.First = rows, cols, 5
		f.Spill = looptest.Aligned(max(together.SpillBytes(), single.SpillBytes()))
	}
	together.Run(&w.frames[0])
	loop.Eval(k, &w.frames[1])
	single.Run(&w.frames[2])
}
