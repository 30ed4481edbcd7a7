package cpu

import (
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

const (
	// narrowTogether is how many elements of lines of 16-bit floats are widened together, so that they stay in the
	// first caches, and narrowLonger the most of one line: those that do not fit the second are widened whole.
	narrowTogether, narrowLonger = 4 << 10, 64 << 10
	// narrowRows is how many lines kernels go along together.
	narrowRows = 4
)

// A lineKernel sets lines of n elements of dst, and those of places where there is a second result, from those of x.
type lineKernel func(dst, x []float32, places []int64, n, lines int)

// narrowLines emits an op along n elements of its operand by a kernel of float32, to and from which lines of 16-bit
// floats that adjoin are converted a few at a time. It reports whether the operand has such lines; all others are
// for widened.
func (c *call) narrowLines(n, inner int, kernel lineKernel) bool {
	if inner != 1 || n == 0 || n > narrowLonger {
		return false
	}
	switch c.Operands[0].DType() {
	case ir.BF16:
		emitNarrowLines[vec.BF16](c, n, kernel)
	case ir.F16:
		emitNarrowLines[vec.F16](c, n, kernel)
	default:
		return false
	}
	return true
}

func emitNarrowLines[E vec.BF16 | vec.F16](c *call, n int, kernel lineKernel) {
	x, out, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	writes := []operand{out}
	if len(c.Shapes) > 1 {
		writes = append(writes, c.result())
	}
	together := max(narrowTogether/n&^(narrowRows-1), 1)
	if together < narrowRows && narrowRows*n <= narrowLonger {
		together = narrowRows
	}
	c.emit(out.n/n, c.l.grain(float64(3*n)), writes, []operand{x}, func(lo, hi int) {
		w := workers.Get().(*worker)
		room := scratchOf[float32](w, 2*n*min(together, hi-lo))
		results := room[len(room)/2:]
		for ; lo < hi; lo += together {
			lines := min(together, hi-lo)
			wide, results, from, to := room[:lines*n], results[:lines*n], lo*n, (lo+lines)*n
			vec.Load(wide, elements[E](m, x)[from:to])
			var places []int64
			if len(writes) > 1 {
				places = elements[int64](m, writes[1])[from:to]
			}
			kernel(results, wide, places, n, lines)
			vec.Store(elements[E](m, out)[from:to], results)
		}
		workers.Put(w)
	})
}
