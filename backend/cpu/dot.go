package cpu

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// dotPart is the elements of a part of a long dot product: some ten microseconds of work. Shorter parts cost
// more than they share, as a part begins with waiting for the memory.
const dotPart = 128 << 10

// longDot emits a dot product in parts, so that processors can share it, and the sum of their results. Where
// the parts begin does not depend on the number of processors, and so neither does the result.
func longDot[R, T gemm.Element](c *call, p *product) {
	if unsafe.Sizeof(*new(T)) == 8 {
		dotParts[R, float64, T](c, p)
	} else {
		dotParts[R, float32, T](c, p)
	}
}

// dotParts is longDot with results of parts of type A.
func dotParts[R gemm.Element, A vec.Float, T gemm.Element](c *call, p *product) {
	parts := ceilDiv(p.k, dotPart)
	m, q, out, partials := c.l.mem, *p, c.result(), c.l.bytesTemp(sizeOf[A](), parts)
	x, y := p.aBatch[0], p.bBatch[0]
	c.emit(parts, 1, []operand{partials}, []operand{{buf: p.a}, {buf: p.b}}, func(lo, hi int) {
		left, right, sums := as[T](m.bufs[q.a])[x:], as[T](m.bufs[q.b])[y:], elements[A](m, partials)
		for u := lo; u < hi; u++ {
			at, n := u*dotPart, min(dotPart, q.k-u*dotPart)
			gemm.Mul(gemm.Dense(sums[u:u+1], 1, 1),
				gemm.Matrix[T]{Data: left[at*q.aK:], Rows: 1, Cols: n, RowStride: 1, ColStride: q.aK},
				gemm.Matrix[T]{Data: right[at*q.bK:], Rows: n, Cols: 1, RowStride: q.bK, ColStride: 1}, nil)
		}
	})
	c.emit(1, 1, []operand{out}, []operand{partials}, func(_, _ int) {
		sum := 0.0
		for _, v := range elements[A](m, partials) {
			sum += float64(v)
		}
		elements[R](m, out)[0] = vec.Narrow[R](sum)
	})
}
