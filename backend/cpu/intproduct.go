package cpu

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/kernels/igemm"
)

// intMacCost is macCost of the native loops.
const intMacCost = 0.02

// intMatmul is matmul by the processor's own loops for integers of at most 32
// bits, if it has any.
func intMatmul[T igemm.Integer](c *call) {
	kn := igemm.Native()
	if kn == nil {
		matmul[T](c)
		return
	}
	p, out, small := intProduct[T](c)
	if small {
		return
	}
	a, aSize := packWords[T](c, p.a, kn.MR, p.m, p.k, p.aBatch, p.aOnce, p.aRow, p.aK)
	b, bSize := packWords[T](c, p.b, kn.NR, p.n, p.k, p.bBatch, p.bOnce, p.bCol, p.bK)
	if p.aOnce {
		aSize = 0
	}
	if p.bOnce {
		bSize = 0
	}
	// A unit is some panels of rows by one of columns.
	rows, cols := ceilDiv(p.m, kn.MR), ceilDiv(p.n, kn.NR)
	rowTiles := ceilDiv(rows, tileRows)
	m, size := c.l.mem, p.m*p.n
	cost := intMacCost * float64(min(tileRows, rows)*kn.MR*kn.NR*p.k)
	c.emit(p.batch*cols*rowTiles, c.l.grain(cost), []operand{out}, []operand{a, b}, func(lo, hi int) {
		dst, x, y := elements[T](m, out), elements[uint32](m, a), elements[uint32](m, b)
		for u := lo; u < hi; u++ {
			i, col, row := u/(cols*rowTiles), u/rowTiles%cols, u%rowTiles*tileRows
			igemm.Mul(kn, dst[i*size:(i+1)*size], x[i*aSize:], y[i*bSize:], p.m, p.n, p.k, row, min(row+tileRows, rows), col, col+1)
		}
	})
}

// packWords emits the packing of one operand with n rows (or columns) and depth
// k, and returns the words of one matrix beside.
func packWords[T igemm.Integer](c *call, v plan.Value, width, n, k int, batch []int, once bool, step, kStep int) (dst operand, size int) {
	if once {
		batch = batch[:1]
	}
	size = igemm.PackedLen[T](n, k, width)
	dst = c.l.bytesTemp(sizeOf[uint32](), size*len(batch))
	panels := ceilDiv(n, width)
	m, src := c.l.mem, v.Buf
	c.emit(len(batch)*panels, c.l.grain(float64(width*k)), []operand{dst}, []operand{{buf: src}}, func(lo, hi int) {
		to, from := elements[uint32](m, dst), as[T](m.bufs[src])
		for u := lo; u < hi; u++ {
			i, panel := u/panels, u%panels
			igemm.Pack(to[i*size:(i+1)*size], from, width, n, k, batch[i], step, kStep, panel, panel+1)
		}
	})
	return dst, size
}

func ceilDiv(n, d int) int { return (n + d - 1) / d }
