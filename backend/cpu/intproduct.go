package cpu

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/igemm"
)

func init() {
	composites[aten.IntMM] = true
	lowerings[aten.IntMM] = intMM
}

// intMacCost is macCost of a word of the native loops.
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
	multiplyWords[T, T, T](c, kn, p, out, false)
}

// intMM is the product of bytes that is summed in 32 bits.
func intMM(c *call) {
	p, out := productOf(c.upward(c.Operands[0]), c.upward(c.Operands[1])), c.result()
	if out.n == 0 {
		c.emit(0, 1, []operand{out}, nil, nil)
		return
	}
	if c.Operands[0].DType() == ir.U8 {
		multiplyWords[uint8, int8, int32](c, igemm.Best(), p, out, false)
	} else {
		multiplyWords[int8, int8, int32](c, igemm.Best(), p, out, true)
	}
}

// multiplyWords emits the product of operands in the kernel's words; signed says that the
// left one's signs count.
func multiplyWords[X, Y, R igemm.Integer](c *call, kn *igemm.Kernel, p *product, out operand, signed bool) {
	f := igemm.FormOf[X](kn)
	sizes := igemm.Product{Form: f, M: p.m, N: p.n, K: p.k, Signed: signed}
	a, aSize := packWords[X](c, f, p.a, kn.MR, p.m, p.k, p.aBatch, p.aOnce, p.aRow, p.aK, packLeft[X](sizes.Biased()))
	b, bSize := packWords[Y](c, f, p.b, kn.NR, p.n, p.k, p.bBatch, p.bOnce, p.bCol, p.bK, igemm.Pack[Y])
	reads := []operand{a, b}
	var excess operand
	excessSize := 0
	if sizes.Biased() {
		excess, excessSize = c.excess(kn, sizes, b, bSize, p)
		reads = append(reads, excess)
	}
	if p.aOnce {
		aSize = 0
	}
	if p.bOnce {
		bSize, excessSize = 0, 0
	}
	// A unit is some panels of rows by one of columns.
	rows, cols := ceilDiv(p.m, kn.MR), ceilDiv(p.n, kn.NR)
	rowTiles := ceilDiv(rows, tileRows)
	m, size := c.l.mem, p.m*p.n
	cost := intMacCost * float64(min(tileRows, rows)*kn.MR*kn.NR*f.Words(p.k))
	c.emit(p.batch*cols*rowTiles, c.l.grain(cost), []operand{out}, reads, func(lo, hi int) {
		dst, x, y := elements[R](m, out), elements[uint32](m, a), elements[uint32](m, b)
		var less []int32
		if sizes.Biased() {
			less = elements[int32](m, excess)
		}
		w := workers.Get().(*worker)
		defer workers.Put(w)
		tile := w.tile()
		for u := lo; u < hi; u++ {
			i, col, row := u/(cols*rowTiles), u/rowTiles%cols, u%rowTiles*tileRows
			igemm.Mul(kn, sizes, tile, dst[i*size:(i+1)*size], x[i*aSize:], y[i*bSize:], less[i*excessSize:], row, min(row+tileRows, rows), col, col+1)
		}
	})
}

// tile returns memory of the goroutine for the sums of a tile.
func (w *worker) tile() *igemm.Tile {
	return (*igemm.Tile)(as[int32](w.scratch.bytes(int(unsafe.Sizeof(igemm.Tile{})))))
}

// excess emits what the bias of the left operand's bytes adds to the sums of each column, and returns the
// elements of one matrix beside.
func (c *call) excess(kn *igemm.Kernel, sizes igemm.Product, b operand, bSize int, p *product) (dst operand, size int) {
	panels, count := ceilDiv(p.n, kn.NR), len(p.bBatch)
	if p.bOnce {
		count = 1
	}
	size = panels * kn.NR
	words := sizes.Form.Words(p.k)
	dst = c.l.bytesTemp(sizeOf[int32](), size*count)
	m := c.l.mem
	c.emit(count*panels, c.l.grain(intMacCost*float64(kn.MR*kn.NR*words)), []operand{dst}, []operand{b}, func(lo, hi int) {
		sums, y := elements[int32](m, dst), elements[uint32](m, b)
		w := workers.Get().(*worker)
		defer workers.Put(w)
		tile := w.tile()
		for u := lo; u < hi; u++ {
			i, col := u/panels, u%panels
			kn.Excess(tile, sums[i*size:], y[i*bSize:], words, col, col+1)
		}
	})
	return dst, size
}

// packer packs panels of an operand in a form.
type packer[T igemm.Integer] func(f igemm.Form, dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int)

// packLeft returns what packs left operands.
func packLeft[T igemm.Integer](biased bool) packer[T] {
	if !biased {
		return igemm.Pack[T]
	}
	return func(_ igemm.Form, dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int) {
		igemm.PackBiased(dst, src, width, n, k, off, step, kStep, lo, hi)
	}
}

// packWords emits the packing of one operand with n rows (or columns) and depth
// k, and returns the words of one matrix beside.
func packWords[T igemm.Integer](c *call, f igemm.Form, src, width, n, k int, batch []int, once bool, step, kStep int, pack packer[T]) (dst operand, size int) {
	if once {
		batch = batch[:1]
	}
	size = f.PackedLen(n, k, width)
	dst = c.l.bytesTemp(sizeOf[uint32](), size*len(batch))
	panels := ceilDiv(n, width)
	m := c.l.mem
	c.emit(len(batch)*panels, c.l.grain(float64(width*k)), []operand{dst}, []operand{{buf: src}}, func(lo, hi int) {
		to, from := elements[uint32](m, dst), as[T](m.bufs[src])
		for u := lo; u < hi; u++ {
			i, panel := u/panels, u%panels
			pack(f, to[i*size:(i+1)*size], from, width, n, k, batch[i], step, kStep, panel, panel+1)
		}
	})
	return dst, size
}

func ceilDiv(n, d int) int { return (n + d - 1) / d }
